! What programs do with the fields of ECMWF's FIELD_API, by gridbuf's storages: a list of scenarios of our words, made of its manual and
! of the names of its tests. docs/how-to/use-from-fortran.md has the table of its calls. The device is the emulated one.
module fields
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64, int32, error_unit
  use gridbuf
  implicit none
  integer :: failures = 0, checks = 0

  type, bind(c) :: memory_info
    integer(c_size_t) :: struct_bytes = 80
    integer(c_int64_t) :: live_blocks, live_bytes, peak_live_bytes, cached_blocks, cached_bytes, cache_limit_bytes
    integer(c_int64_t) :: hits, misses, refusals
  end type memory_info
  interface
    integer(c_int32_t) function statistics(info) bind(c, name='gridbuf_memory_statistics')
      import
      type(memory_info), intent(inout) :: info
    end function
    integer(c_int) function fill(address, count, value) bind(c, name='fields_fill')
      import
      type(c_ptr), value :: address
      integer(c_int64_t), value :: count
      real(c_double), value :: value
    end function
    integer(c_int64_t) function count_there(address, count, value) bind(c, name='fields_count')
      import
      type(c_ptr), value :: address
      integer(c_int64_t), value :: count
      real(c_double), value :: value
    end function
  end interface

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    checks = checks + 1
    if (holds) return
    failures = failures + 1
    write (error_unit, '(2a)') 'FAILED: ', what
  end subroutine check

  !> A new field on both sides, zero on the device and with a value on the host.
  subroutine make(field, p, value)
    type(storage), intent(inout) :: field
    real(real64), pointer, intent(out) :: p(:, :)
    real(real64), intent(in) :: value
    call field%create([5, 5], 'float64', kind=on_both, zeroed=.true.)
    call field%host(p, mode_write)
    p = value
  end subroutine make

  !> Writes on the device, as work of a program there does.
  subroutine write_there(field, mode, extents, value)
    type(storage), intent(in) :: field
    integer, intent(in) :: mode, extents(:)
    real(real64), intent(in) :: value
    call check(fill(field%device(mode), int(product(extents), c_int64_t), value) == 0, 'work on the device')
    call field%end_write()
  end subroutine write_there

  !> Whether all elements on the device are equal to the value.
  logical function all_there(field, extents, value)
    type(storage), intent(in) :: field
    integer, intent(in) :: extents(:)
    real(real64), intent(in) :: value
    integer(c_int64_t) :: total
    total = product(extents)
    all_there = count_there(field%device(mode_read), total, value) == total
  end function all_there

  integer(c_int64_t) function live_bytes()
    type(memory_info) :: info
    call check(statistics(info) == 0, 'statistics')
    live_bytes = info%live_bytes
  end function live_bytes

  ! ---- Fields that own their memory ----

  subroutine an_owner_has_the_bounds_that_were_asked_for
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    integer :: stat
    call field%create([12, 11], 'float64', lower=[10, 1])
    call field%host(p, mode_write)
    call check(all(lbound(p) == [10, 1]) .and. all(ubound(p) == [21, 11]), 'bounds of an owner')
    p = 42
    call check(p(10, 1) == 42 .and. p(21, 11) == 42, 'elements at the bounds')
    call field%create([12, 11], 'float64', lower=[10], stat=stat)
    call check(stat == 1 .and. index(error_text(), 'lower has the shape (1), but') == 1, 'a wrong list of bounds')
  end subroutine

  subroutine an_owner_has_an_initial_value
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call field%create([10, 10], 'float64', kind=on_both)
    call field%host(p, mode_write)
    p = 3
    call check(all_there(field, [10, 10], 3.0_real64), 'an initial value on the device')
    call field%create([10, 10], 'float64', kind=on_both, zeroed=.true.)
    call check(all_there(field, [10, 10], 0.0_real64), 'zeros on the device')
  end subroutine

  subroutine a_delayed_owner_allocates_at_its_first_use
    type(storage) :: field, unused
    real(real64), pointer :: p(:, :)
    integer(c_int64_t) :: before
    integer, parameter :: n = 1024
    integer :: stat
    before = live_bytes()
    call unused%create([n, n], 'float64', delayed=.true.)
    call unused%release()
    call field%create([n, n], 'float64', lower=[0, 0], delayed=.true.)
    call check(live_bytes() == before, 'a delayed owner has no memory')
    call field%host(p, mode_write)
    call check(live_bytes() >= before + 8*n*n, 'the first use allocates')
    call check(all(lbound(p) == 0), 'bounds of a delayed owner')
    call field%create([n, n], 'float64', kind=on_both, delayed=.true.)
    call write_there(field, mode_write, [n, n], 42.0_real64)
    call field%host(p)
    call check(all(p == 42), 'a delayed owner, first used on the device')
    call field%create([n, n], 'float64', kind=on_both, delayed=.true.)
    call field%host(p, mode_write)
    p = 7
    call check(all_there(field, [n, n], 7.0_real64), 'a delayed owner, first used on the host')
    call field%create([-1, n], 'float64', delayed=.true., stat=stat)
    call check(stat == 1, 'errors of options are not delayed')
  end subroutine

  subroutine an_empty_owner_goes_to_the_device_and_back
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call field%create([0, 11], 'float64', kind=on_both, lower=[10, 1])
    call field%host(p, mode_read_write)
    call check(size(p) == 0, 'an empty field')
    call field%update(side_device)
    call field%set_modified(side_device)
    call field%update(side_host)
    call check(field%is_current(side_host), 'an empty field is current')
  end subroutine

  subroutine a_halo_knows_how_deep_it_is_valid
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    integer :: depths(2, 2), stat
    call field%create([8, 9], 'float64', halo=reshape([2, 1, 0, 3], [2, 2]))
    call field%valid_halo(depths)
    call check(all(depths == 0), 'no point of new memory is valid')
    call field%mark_halo()
    call field%valid_halo(depths)
    call check(all(depths == reshape([2, 1, 0, 3], [2, 2])), 'all points are valid')
    call field%host(p, mode_read_write)
    call field%valid_halo(depths)
    call check(all(depths == 0), 'a write makes them stale')
    call field%mark_halo(reshape([1, 1, 0, 2], [2, 2]))
    call field%valid_halo(depths)
    call check(all(depths == reshape([1, 1, 0, 2], [2, 2])), 'so many points are valid')
    call field%mark_halo(reshape([3, 1, 0, 2], [2, 2]), stat)
    call check(stat == 1, 'more than the halo has')
    call field%mark_halo(reshape([1, 1], [2, 1]), stat)
    call check(stat == 1, 'of a dimension too few')
    call field%valid_halo(depths(:1, :), stat)
    call check(stat == 1, 'a shape that is not that of depths')
  end subroutine

  subroutine an_owner_is_made_again_with_another_size
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call field%create([12, 11], 'float64', lower=[10, 1])
    call field%create([100, 100], 'float64')
    call field%host(p, mode_write)
    p = 7
    call check(all(ubound(p) == 100) .and. all(p == 7), 'another size')
  end subroutine

  subroutine an_end_twice_and_of_nothing_is_fine
    type(storage) :: field
    call field%release()
    call field%create([3], 'float64')
    call field%release()
    call field%release()
    call check(.not. c_associated(field%c_handle()), 'a released field')
  end subroutine

  subroutine a_clone_is_independent
    type(storage) :: field, copy
    real(real64), pointer :: p(:, :), q(:, :)
    integer :: stat
    call field%create([4, 3], 'float64', kind=on_both, lower=[0, 5])
    call field%host(p, mode_write)
    p = 7
    call write_there(field, mode_read_write, [4, 3], 8.0_real64)
    call copy%clone(field)
    call copy%host(q, mode_read_write)
    call check(all(q == 8) .and. all(lbound(q) == [0, 5]), 'a clone has what the device wrote')
    q = 9
    call field%host(p)
    call check(all(p == 8), 'the original of a clone')
    call field%release()
    call copy%clone(field, stat)
    call check(stat == 1, 'a clone of nothing')
    call check(all(q == 9), 'a failed clone changes nothing')
  end subroutine

  subroutine two_variables_share_a_field
    type(storage) :: field, other
    real(real64), pointer :: p(:, :), q(:, :)
    call field%create([4, 3], 'float64', lower=[0, 0])
    call field%host(p, mode_write)
    p = 1
    other = field
    call field%release()
    call other%host(q, mode_read_write)
    call check(all(q == 1) .and. all(lbound(q) == 0), 'the memory lives with its last owner')
  end subroutine

  ! ---- Fields over existing memory ----

  subroutine a_wrapper_keeps_bounds_and_memory
    type(storage) :: field
    real(real64), allocatable, target :: a(:, :, :)
    real(real64), pointer :: p(:, :), q(:, :, :)
    allocate (a(0:10, 5:10, 100:200))
    a = 7
    call wrap_pointer(a)
    call field%host(q, mode_read_write)
    call check(all(lbound(q) == [0, 5, 100]), 'bounds of a wrapper')
    q(0, 5, 100) = 1
    call check(a(0, 5, 100) == 1, 'memory of a wrapper')
    call field%wrap(a(:, 7, :), lower=[0, 100])
    call field%host(p, mode_read_write)
    call check(all(lbound(p) == [0, 100]) .and. all(ubound(p) == [10, 200]), 'bounds of a wrapped section')
    p = 42
    call check(all(a(:, 7, :) == 42) .and. all(a(:, 8, :) == 7), 'memory of a wrapped section')
    call field%release()
    call check(a(3, 7, 150) == 42, 'memory after the wrapper')
  contains
    subroutine wrap_pointer(whole)
      real(real64), allocatable, target, intent(inout) :: whole(:, :, :)
      q => whole
      call field%wrap(q)
    end subroutine
  end subroutine

  subroutine a_wrapper_of_every_second_element_on_the_device
    type(storage) :: field
    real(real64), target :: a(10, 10)
    real(real64), pointer :: p(:, :)
    a = 7
    call field%wrap(a(1:9:2, ::3), kind=on_both)
    call field%update(side_device)
    call field%set_modified(side_device)
    a(1, 1) = -1
    call field%host(p)
    call check(p(1, 1) == 7 .and. a(2, 1) == 7 .and. all(shape(p) == [5, 4]), 'a strided wrapper through the device')
  end subroutine

  subroutine the_end_of_a_wrapper_brings_back_what_the_device_wrote
    type(storage) :: field
    real(real64), target :: a(10, 10)
    a = 7
    call field%wrap(a, kind=on_both)
    call write_on_device(field)
    call check(all(a == 7), 'the host is not written before it is used')
    call field%release()
    call check(a(2, 3) == 42, 'the end of a wrapper')
    a = 7
    call in_scope
    call check(a(2, 3) == 42, 'the end of the scope of a wrapper')
  contains
    subroutine write_on_device(wrapper)
      type(storage), intent(in) :: wrapper
      call write_there(wrapper, mode_read_write, [10, 10], 42.0_real64)
    end subroutine
    subroutine in_scope
      type(storage) :: wrapper
      call wrapper%wrap(a, kind=on_both)
      call write_on_device(wrapper)
    end subroutine
  end subroutine

  subroutine wrappers_of_two_precisions
    type(storage) :: single, double
    real(real32), target :: a(3)
    real(real64), target :: b(3)
    real(real32), pointer :: p(:)
    real(real64), pointer :: q(:)
    integer :: stat
    a = 1
    b = 2
    call single%wrap(a)
    call double%wrap(b)
    call single%host(p)
    call double%host(q)
    call check(all(p == 1) .and. all(q == 2), 'two precisions')
    call single%host(q, stat=stat)
    call check(stat == 2 .and. index(error_text(), 'float64, but must be float32') > 0, 'the wrong precision')
  end subroutine

  ! ---- Accesses ----

  subroutine reading_on_the_device_brings_nothing_back
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call make(field, p, 7.0_real64)
    ! Against the promise, so that a copy would be seen.
    call check(fill(field%device(mode_read), 25_c_int64_t, 11.0_real64) == 0, 'work on the device')
    call field%host(p, mode_read_write)
    call check(all(p == 7), 'reading on the device')
  end subroutine

  subroutine reading_and_writing_on_the_device_comes_back
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call make(field, p, 7.0_real64)
    call check(count_there(field%device(mode_read_write), 25_c_int64_t, 7.0_real64) == 25, 'the device has what the host wrote')
    call write_there(field, mode_read_write, [5, 5], 11.0_real64)
    call check(.not. field%is_current(side_host), 'the host is old')
    call field%host(p)
    call check(all(p == 11), 'what the device wrote')
  end subroutine

  subroutine writing_on_the_device_saves_the_copy
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call make(field, p, 42.0_real64)
    call check(count_there(field%device(mode_write), 25_c_int64_t, 42.0_real64) == 0, 'writing only does not copy')
    call write_there(field, mode_write, [5, 5], 1.0_real64)
    call field%host(p)
    call check(all(p == 1), 'what writing only wrote')
  end subroutine

  subroutine writing_on_the_host_makes_the_device_old
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call make(field, p, 1.0_real64)
    call field%update(side_device)
    call field%host(p)
    call check(field%is_current(side_device), 'reading on the host')
    call field%host(p, mode_read_write)
    p = 2
    call check(.not. field%is_current(side_device), 'writing on the host')
    call check(all_there(field, [5, 5], 2.0_real64), 'the device has the newest')
  end subroutine

  subroutine transfers_without_a_pointer
    type(storage) :: field
    real(real64), pointer :: p(:, :)
    call make(field, p, 1.0_real64)
    call field%update(side_device)
    call field%set_modified(side_device)
    call field%synchronize()
    call check(field%is_current(side_host) .and. field%is_current(side_device), 'both sides are current')
  end subroutine

  subroutine threads_work_on_the_blocks_of_a_field
    type(storage) :: field
    real(real64), pointer :: p(:, :, :), block(:, :)
    integer :: number
    call field%create([24, 5, 40], 'float64', lower=[1, 0, 1])
    call field%host(p, mode_write)
    !$omp parallel do private(block)
    do number = 1, 40
      block(1:, 0:) => p(:, :, number)
      block = number
    end do
    call check(all([(all(p(:, :, number) == number), number=1, 40)]), 'blocks by threads')
  end subroutine

  subroutine threads_have_fields_of_each_one
    integer :: number, wrong
    wrong = 0
    !$omp parallel do reduction(+:wrong)
    do number = 1, 100
      wrong = wrong + of_a_thread(number)
    end do
    call check(wrong == 0, 'a field for each thread')
  end subroutine

  integer function of_a_thread(number) result(wrong)
    integer, intent(in) :: number
    type(storage) :: field
    integer(int32), pointer :: p(:)
    call field%create([50], 'int32', kind=on_both, delayed=mod(number, 2) == 0)
    call field%host(p, mode_write)
    p = number
    call field%update(side_device)
    call field%set_modified(side_device)
    call field%host(p)
    wrong = count(p /= number)
  end function

  subroutine ranks_and_kinds
    type(storage) :: field
    real(real64), pointer :: a(:), b(:, :, :, :, :)
    logical(c_bool), pointer :: l(:, :)
    call field%create([3], 'float64', lower=[-1])
    call field%host(a, mode_write)
    call check(lbound(a, 1) == -1, 'rank 1')
    call field%create([2, 3, 4, 5, 6], 'float64', lower=[1, 2, 3, 4, 5])
    call field%host(b, mode_write)
    call check(all(lbound(b) == [1, 2, 3, 4, 5]) .and. all(shape(b) == [2, 3, 4, 5, 6]), 'rank 5')
    call field%create([2, 3], 'bool')
    call field%host(l, mode_write)
    l = .true.
    call check(count(l) == 6, 'logical')
  end subroutine

end module fields

program fields_test
  use fields
  implicit none
  call use_emulated_device(.true.)
  call an_owner_has_the_bounds_that_were_asked_for
  call an_owner_has_an_initial_value
  call a_delayed_owner_allocates_at_its_first_use
  call an_empty_owner_goes_to_the_device_and_back
  call a_halo_knows_how_deep_it_is_valid
  call an_owner_is_made_again_with_another_size
  call an_end_twice_and_of_nothing_is_fine
  call a_clone_is_independent
  call two_variables_share_a_field
  call a_wrapper_keeps_bounds_and_memory
  call a_wrapper_of_every_second_element_on_the_device
  call the_end_of_a_wrapper_brings_back_what_the_device_wrote
  call wrappers_of_two_precisions
  call reading_on_the_device_brings_nothing_back
  call reading_and_writing_on_the_device_comes_back
  call writing_on_the_device_saves_the_copy
  call writing_on_the_host_makes_the_device_old
  call transfers_without_a_pointer
  call threads_work_on_the_blocks_of_a_field
  call threads_have_fields_of_each_one
  call ranks_and_kinds
  print '(i0,a,i0,a)', checks, ' checks, ', failures, ' failed'
  if (failures > 0) error stop 1
end program fields_test
