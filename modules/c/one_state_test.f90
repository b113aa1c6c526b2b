!> Of test_one_state.py: the sum of a section of a storage that others hold, to whose elements `value` is added first if `writes`.
subroutine add_to_section(handle, first, last, writes, value, total) bind(c)
  use, intrinsic :: iso_c_binding
  use gridbuf
  implicit none
  type(c_ptr), value :: handle
  integer(c_int), intent(in) :: first(3), last(3)
  integer(c_int), value :: writes
  real(c_double), value :: value
  real(c_double), intent(out) :: total
  type(storage) :: field
  real(c_double), pointer :: p(:, :, :)
  call field%share(handle)
  call field%host(p, merge(mode_read_write, mode_read, writes /= 0))
  associate (section => p(first(1):last(1), first(2):last(2), first(3):last(3)))
    if (writes /= 0) section = section + value
    total = sum(section)
  end associate
end subroutine add_to_section
