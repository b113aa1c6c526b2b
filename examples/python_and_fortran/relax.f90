! [step]
!> One step of diffusion on the domain of Python's storages, whose handles it gets.
subroutine relax(field_handle, result_handle) bind(c)
  use, intrinsic :: iso_c_binding, only: c_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  use gridbuf
  implicit none
  type(c_ptr), value :: field_handle, result_handle
  type(storage) :: field, result
  real(real64), pointer :: f(:, :), r(:, :)
  integer :: i, j
  call field%share(field_handle)
  call result%share(result_handle)
  call field%host(f)
  call result%host(r, mode_read_write)
  do j = 1, ubound(f, 2) - 1
    do i = 1, ubound(f, 1) - 1
      r(i, j) = f(i, j) + 0.125_real64*(f(i - 1, j) + f(i + 1, j) + f(i, j - 1) + f(i, j + 1) - 4*f(i, j))
    end do
  end do
end subroutine relax
! [/step]
