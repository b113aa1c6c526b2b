! Two fields with a halo, and a five-point stencil on the domain. The device is the emulated one.
! [program]
program laplacian
  use, intrinsic :: iso_fortran_env, only: real64
  use gridbuf
  implicit none
  integer, parameter :: n = 6, m = 5, halo(2, 2) = reshape([1, 1, 1, 1], [2, 2])
  type(storage) :: field, result, shared
  real(real64), pointer :: f(:, :), r(:, :)
  real(real64), allocatable, target :: model(:, :)
  real, pointer :: wrong(:, :)
  integer :: i, j, stat
  call use_emulated_device(.true.)
  call field%create([n + 2, m + 2], 'float64', halo=halo, kind=on_both, alignment_bytes=64)
  call result%create([n + 2, m + 2], 'float64', halo=halo, kind=on_both, zeroed=.true.)
  call field%host(f, mode_write)
  print '(a,4i3)', 'bounds', lbound(f), ubound(f)
  do j = 0, m + 1
    do i = 0, n + 1
      f(i, j) = real(i*i + j*j, real64)
    end do
  end do
  print '(a,l2)', 'device is current:', field%is_current(side_device)
  call field%update(side_device)
  print '(a,l2)', 'device is current:', field%is_current(side_device)
  call field%host(f)
  call result%host(r, mode_read_write)
  do j = 1, m
    do i = 1, n
      r(i, j) = f(i - 1, j) + f(i + 1, j) + f(i, j - 1) + f(i, j + 1) - 4*f(i, j)
    end do
  end do
  print '(a,f6.1)', 'sum of the Laplacian:', sum(r(1:n, 1:m))
  allocate (model(-2:3, 10:12))
  model = 1
  call shared%wrap(model, kind=on_both)
  call shared%host(r, mode_read_write)
  r(-2, 10) = 7
  print '(a,4i3,f4.1)', 'wrapped', lbound(r), ubound(r), model(-2, 10)
  call field%host(wrong, stat=stat)
  print '(i0,2a)', stat, ' ', error_text()
  result = field
  call field%release()
  call result%host(r)
  print '(f5.1)', r(n + 1, m + 1)
end program laplacian
! [/program]
