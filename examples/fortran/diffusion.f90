!> A small model in Fortran: it owns a field with a halo, and has a kernel for fields of any owner.
!>
!> What other languages see are procedures with bind(c). Arrays go through them as C descriptors
!> (Fortran 2018, ISO_Fortran_binding.h), which hold address, extents and strides in bytes.
module diffusion
  use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_int
  implicit none
  private

  integer, parameter :: halo = 1
  real(c_double), allocatable, target, save :: temperature(:, :, :)

contains

  ! [owner]
  !> Allocates the model's field: ni x nj columns of nk levels, and a halo around the columns.
  !> Returns a value other than 0 if the field exists already or the allocation fails.
  function model_start(ni, nj, nk) result(status) bind(c)
    integer(c_int), value :: ni, nj, nk
    integer(c_int) :: status
    integer :: i, j, k

    allocate (temperature(1 - halo:ni + halo, 1 - halo:nj + halo, nk), stat=status)
    if (status /= 0) return
    do concurrent(k=1:nk, j=1 - halo:nj + halo, i=1 - halo:ni + halo)
      temperature(i, j, k) = 100*k + 10*j + i
    end do
  end function model_start

  !> The field. In a bind(c) procedure, a pointer that is intent(out) fills the C descriptor of
  !> the caller. The lower bounds give the width of the halo.
  subroutine model_temperature(field) bind(c)
    real(c_double), pointer, intent(out) :: field(:, :, :)

    field(1 - halo:, 1 - halo:, 1:) => temperature
  end subroutine model_temperature
  ! [/owner]

  !> The sum over the domain, as Fortran sees it.
  function model_total() result(total) bind(c)
    real(c_double) :: total

    total = sum(temperature(1:ubound(temperature, 1) - halo, 1:ubound(temperature, 2) - halo, :))
  end function model_total

  function model_is_running() result(running) bind(c)
    logical(c_bool) :: running

    running = allocated(temperature)
  end function model_is_running

  subroutine model_stop() bind(c)
    if (allocated(temperature)) deallocate (temperature)
  end subroutine model_stop

  ! [kernel]
  !> One step of diffusion on a field of any layout. An array of assumed shape has strides.
  subroutine diffuse(field, next, rate) bind(c)
    real(c_double), intent(in) :: field(:, :, :)
    real(c_double), intent(inout) :: next(:, :, :)
    real(c_double), value :: rate
    integer :: i, j, k

    do k = 1, size(field, 3)
      do j = 2, size(field, 2) - 1
        do i = 2, size(field, 1) - 1
          next(i, j, k) = field(i, j, k) + rate*(field(i - 1, j, k) + field(i + 1, j, k) &
                                                 + field(i, j - 1, k) + field(i, j + 1, k) &
                                                 - 4*field(i, j, k))
        end do
      end do
    end do
  end subroutine diffuse
  ! [/kernel]

end module diffusion
