! Storages in arrays, components, function results and arguments: each scenario ends with as many blocks of memory as it began with.
! And the arguments of create, wrap and host of every wrong shape and type.
!
! docs/limits.md lists what gfortran does not finalize; the scenarios name how many blocks it may leave.
module scenarios
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: compiler_version, error_unit, int32, int64, real32, real64
  use gridbuf
  implicit none
  integer, parameter :: n = 300000  ! a block that the statistics count
  logical, parameter :: gfortran = index(compiler_version(), 'GCC version') == 1
  logical, parameter :: gfortran_12 = index(compiler_version(), 'GCC version 12') == 1
  integer :: failures = 0, checks = 0

  type :: model
    type(storage) :: one
    type(storage) :: fixed(2)
    type(storage), allocatable :: many(:)
  end type model
  type, extends(storage) :: named
    integer :: number = 0
  end type named
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

  integer function live()
    type(memory_info) :: info
    if (statistics(info) /= 0) error stop
    live = int(info%live_blocks)
  end function live

  impure elemental subroutine make(s, value)
    class(storage), intent(inout) :: s
    integer, intent(in) :: value
    real(real64), pointer :: p(:)
    call s%create([n], 'float64')
    call s%host(p, mode_write)
    p = value
  end subroutine make

  impure elemental integer function value_of(s) result(value)
    class(storage), intent(in) :: s
    real(real64), pointer :: p(:)
    integer :: stat
    value = -1
    call s%host(p, stat=stat)
    if (stat == 0) value = int(p(n))
  end function value_of

  subroutine allocatable_array
    type(storage), allocatable :: s(:), t(:)
    allocate (s(3))
    call make(s, [1, 2, 3])
    call check(all(value_of(s) == [1, 2, 3]), 'allocatable')
    call move_alloc(s, t)
    call check(all(value_of(t) == [1, 2, 3]), 'move_alloc')
    allocate (s(2))
    call make(s, [4, 5])
    deallocate (s)
    allocate (s(2))
    call make(s, 7)
  end subroutine

  subroutine automatic_arrays
    call automatic_array(4)
  end subroutine
  subroutine automatic_array(m)
    integer, intent(in) :: m
    type(storage) :: s(m), t(2, m)
    call make(s, 1)
    call make(t, 2)
    call check(all(value_of(s) == 1), 'automatic')
  end subroutine

  subroutine array_assignment
    type(storage) :: s(3), t(3)
    type(storage), allocatable :: a(:)
    call make(t, [1, 2, 3])
    s = t
    call t%release()
    call check(all(value_of(s) == [1, 2, 3]), 'array assignment')
    t(1:2) = s(2:3)
    call check(all(value_of(t) == [2, 3, -1]), 'section')
    t = s(1)
    call check(all(value_of(t) == 1), 'scalar to array')
    allocate (a(3))
    a = s
    call check(all(value_of(a) == [1, 2, 3]), 'to allocatable')
    s = s
    call check(all(value_of(s) == [1, 2, 3]), 'self')
    if (gfortran_12) return
    t([3, 1]) = s(1:2)
    call check(all(value_of(t) == [2, 1, 1]), 'vector subscript')
  end subroutine

  !> The end of a wrapper copies back what the device has written, which set_modified says.
  subroutine wrapped_assigned_to_itself
    type(storage) :: s(2)
    real(real64), target :: memory(n)
    memory = 1
    call s(1)%wrap(memory, kind=on_both)
    s = s
    s(1) = s(1)
    call s(1)%update(side_device)
    call s(1)%set_modified(side_device)
    memory = 5
    call s%release()
    call check(all(memory == 1), 'a wrapper that is assigned to itself')
  end subroutine

  subroutine overlapping
    type(storage) :: s(3)
    call make(s, [1, 2, 3])
    s(2:3) = s(1:2)
    call check(all(value_of(s) == [1, 1, 2]), 'overlapping')
    call make(s, [1, 2, 3])
    s(1:2) = s(2:3)
    call check(all(value_of(s) == [2, 3, 3]), 'overlapping forward')
    call make(s, [1, 2, 3])
    s = s(3:1:-1)
    call check(all(value_of(s) == [3, 2, 1]), 'reversed')
  end subroutine

  subroutine constructors
    type(storage) :: s(2), a, b
    call make(a, 1)
    call make(b, 2)
    s = [a, b]
    call check(all(value_of(s) == [1, 2]), 'constructor')
    call check(all(value_of([b, a]) == [2, 1]), 'constructor as argument')
    call check(value_of(a) == 1 .and. value_of(b) == 2, 'elements after constructors')
  end subroutine

  function made(value) result(s)
    integer, intent(in) :: value
    type(storage) :: s
    call make(s, value)
  end function
  function made_array(value) result(s)
    integer, intent(in) :: value
    type(storage) :: s(2)
    call make(s, value)
  end function
  function made_allocatable(value) result(s)
    integer, intent(in) :: value
    type(storage), allocatable :: s(:)
    allocate (s(2))
    call make(s, value)
  end function
  function made_scalar_allocatable(value) result(s)
    integer, intent(in) :: value
    type(storage), allocatable :: s
    allocate (s)
    call make(s, value)
  end function
  function made_pointer(value) result(s)
    integer, intent(in) :: value
    type(storage), pointer :: s
    allocate (s)
    call make(s, value)
  end function

  subroutine function_result
    type(storage) :: s
    s = made(3)
    call check(value_of(s) == 3, 'function result')
  end subroutine
  subroutine function_result_again
    type(storage) :: s
    s = made(3)
    s = made(4)
    call check(value_of(s) == 4, 'function result again')
  end subroutine
  subroutine function_result_as_argument
    call check(value_of(made(4)) == 4, 'result as argument')
  end subroutine
  subroutine function_result_array
    type(storage) :: s(2)
    s = made_array(5)
    call check(all(value_of(s) == 5), 'array result')
  end subroutine
  subroutine function_result_allocatable
    type(storage) :: s(2)
    s = made_allocatable(6)
    call check(all(value_of(s) == 6), 'allocatable result')
  end subroutine
  subroutine function_result_scalar_allocatable
    type(storage) :: s
    s = made_scalar_allocatable(6)
    call check(value_of(s) == 6, 'scalar allocatable result')
  end subroutine
  subroutine function_result_pointer
    type(storage), pointer :: s
    s => made_pointer(7)
    call check(value_of(s) == 7, 'pointer result')
    deallocate (s)
  end subroutine

  subroutine out_scalar(s)
    type(storage), intent(out) :: s
    call make(s, 8)
  end subroutine
  subroutine out_array(s)
    type(storage), intent(out) :: s(:)
    call make(s, 9)
  end subroutine
  subroutine out_allocatable(s)
    type(storage), allocatable, intent(out) :: s(:)
    allocate (s(2))
    call make(s, 10)
  end subroutine
  subroutine intent_out_scalar
    type(storage) :: s
    call make(s, 1)
    call out_scalar(s)
    call check(value_of(s) == 8, 'intent(out)')
  end subroutine
  subroutine intent_out_array
    type(storage) :: t(2)
    call make(t, 1)
    call out_array(t)
    call check(all(value_of(t) == 9), 'intent(out) array')
  end subroutine
  subroutine intent_out_allocatable
    type(storage), allocatable :: a(:)
    allocate (a(3))
    call make(a, 1)
    call out_allocatable(a)
    call check(all(value_of(a) == 10), 'intent(out) allocatable')
  end subroutine

  subroutine pointers
    type(storage), pointer :: p, q(:)
    type(storage), target :: t(3)
    class(storage), pointer :: c
    allocate (p, q(2))
    call make(p, 1)
    call make(q, 2)
    deallocate (p, q)
    call make(t, [1, 2, 3])
    q => t(1:3:2)
    q = t(2)
    call check(all(value_of(t) == 2), 'pointer to a section')
    allocate (named :: c)
    call make(c, 4)
    deallocate (c)
  end subroutine

  subroutine fill(m)
    type(model), intent(inout) :: m
    call make(m%one, 1)
    call make(m%fixed, 2)
    allocate (m%many(3))
    call make(m%many, 3)
  end subroutine
  logical function is_filled(m)
    type(model), intent(in) :: m
    is_filled = value_of(m%one) == 1 .and. all(value_of(m%fixed) == 2) .and. all(value_of(m%many) == 3)
  end function
  subroutine component_ends
    type(model) :: a
    type(model), allocatable :: c(:)
    call fill(a)
    allocate (c(2))
    call fill(c(1))
    call fill(c(2))
    call check(is_filled(a) .and. is_filled(c(2)), 'component')
  end subroutine
  subroutine component_one
    type :: box
      type(storage) :: one
    end type
    type(box) :: a, b
    call make(a%one, 1)
    call make(b%one, 2)
    b = a
    call a%one%release()
    call check(value_of(b%one) == 1, 'component one')
  end subroutine
  subroutine component_fixed
    type :: box
      type(storage) :: s(2)
    end type
    type(box) :: a, b
    call make(a%s, 1)
    call make(b%s, 2)
    b = a
    call a%s%release()
    call check(all(value_of(b%s) == 1), 'component fixed')
  end subroutine
  subroutine component_allocatable
    type :: box
      type(storage), allocatable :: s(:)
    end type
    type(box) :: a, b
    allocate (a%s(2), b%s(2))
    call make(a%s, 1)
    call make(b%s, 2)
    b = a
    call a%s%release()
    call check(all(value_of(b%s) == 1), 'component allocatable')
  end subroutine
  subroutine array_of_components
    type :: box
      type(storage) :: one
    end type
    type(box) :: a(2), b(2)
    call make(a%one, 1)
    call make(b%one, 2)
    b = a
    call a%one%release()
    call check(all(value_of(b%one) == 1), 'array of components')
  end subroutine

  subroutine extended
    type(named) :: a, b(2)
    class(storage), allocatable :: c
    call make(a, 1)
    call make(b, 2)
    allocate (named :: c)
    call make(c, 3)
    call check(value_of(c) == 3, 'polymorphic')
  end subroutine
  subroutine extended_assignment
    type(named) :: a, b
    call make(a, 1)
    a%number = 5
    b = a
    call a%release()
    call check(value_of(b) == 1, 'extended assignment')
  end subroutine
  subroutine molded
    type(storage), allocatable :: s(:)
    type(storage) :: t(2)
    call make(t, [1, 2])
    allocate (s(2), mold=t)
    call make(s, 3)
    call check(all(value_of(s) == 3), 'mold=')
  end subroutine
  subroutine unallocated_assignment
    type(storage), allocatable :: s
    type(storage) :: t
    call make(t, 1)
    allocate (s)
    s = t
    call t%release()
    call check(value_of(s) == 1, 'allocatable scalar')
  end subroutine
  subroutine block_construct
    integer :: i
    do i = 1, 3
      block
        type(storage) :: s, a(2)
        call make(s, i)
        call make(a, i)
      end block
    end do
  end subroutine
  subroutine associated_name
    type(storage) :: s(2)
    call make(s, [1, 2])
    associate (t => s(2))
      call check(value_of(t) == 2, 'associate')
    end associate
    associate (t => [s(2), s(1)])
      call check(all(value_of(t) == [2, 1]), 'associate constructor')
    end associate
    call check(all(value_of(s) == [1, 2]), 'after associate')
  end subroutine
  subroutine by_value
    type(storage) :: s
    call make(s, 1)
    call takes((s))
    call check(value_of(s) == 1, 'after (s)')
  end subroutine
  subroutine takes(t)
    type(storage), intent(in) :: t
    call check(value_of(t) == 1, '(s)')
  end subroutine

  subroutine explicit_shape
    type(storage) :: s(4)
    call make(s, [1, 2, 3, 4])
    call set_two(s(1:4:2))
    call check(all(value_of(s) == [7, 2, 8, 4]), 'copy-in, copy-out')
  end subroutine
  subroutine set_two(t)
    type(storage), intent(inout) :: t(2)
    call make(t, [7, 8])
  end subroutine

  ! ---- Arguments ----

  subroutine wrong_shapes
    type(storage) :: s
    real(real64), target :: memory(3, 4)
    integer :: rows, columns, count, stat
    integer, allocatable :: halo(:, :), list(:)
    memory = 1
    do rows = 0, 4
      do columns = 0, 16
        if (rows == 2 .and. columns == 2) cycle
        allocate (halo(rows, columns), source=0)
        call s%wrap(memory, halo=halo, stat=stat)
        call check(is_refused(stat, 'halo', [rows, columns], [2, 2]), 'halo of wrap')
        call s%create([3, 4], 'float64', halo=halo, stat=stat)
        call check(is_refused(stat, 'halo', [rows, columns], [2, 2]), 'halo of create')
        deallocate (halo)
      end do
    end do
    do count = 0, 16
      if (count == 2) cycle
      allocate (list(count), source=1)
      call s%wrap(memory, lower=list, stat=stat)
      call check(is_refused(stat, 'lower', [count], [2]), 'lower of wrap')
      call s%create([3, 4], 'float64', lower=list, stat=stat)
      call check(is_refused(stat, 'lower', [count], [2]), 'lower of create')
      call s%create([3, 4], 'float64', layout=list, stat=stat)
      call check(is_refused(stat, 'layout', [count], [2]), 'layout of create')
      deallocate (list)
    end do
    call s%create([(1, count=1, 16)], 'float64', stat=stat)
    call check(stat == 1 .and. index(error_text(), 'at most 15') > 0, 'rank 16')
    call s%wrap(memory, halo=reshape([1, 1, 0, 1], [2, 2]), lower=[5, 6], stat=stat)
    call check(stat == 0, 'right shapes')
  end subroutine
  logical function is_refused(stat, name, found, wanted)
    integer, intent(in) :: stat, found(:), wanted(:)
    character(len=*), intent(in) :: name
    character(len=200) :: text
    write (text, '(2a, *(i0, :, ", "))') name, ' has the shape (', found
    write (text(len_trim(text) + 1:), '(a, *(i0, :, ", "))') '), but must have the shape (', wanted
    is_refused = stat == 1 .and. index(error_text(), trim(text)//')') == 1
    if (.not. is_refused) write (error_unit, '(i0, 4a)') stat, ' ', error_text(), '; expected ', trim(text)
  end function

  !> A pointer of each kind, to storages of every element type.
  subroutine types_of_pointers
    character(len=16), parameter :: names(21) = [character(len=16) :: 'float32', 'float64', 'int32', 'int64', 'bool', 'complex64', &
                                                 'complex128', 'int8', 'uint8', 'int16', 'uint16', 'uint32', 'uint64', 'float16', &
                                                 'bfloat16', '>f4', '>f8', '>i4', '<M8[s]', '|S8', '|V16']
    type(storage) :: s
    real(real32), pointer :: p1(:)
    real(real64), pointer :: p2(:)
    integer(int32), pointer :: p3(:)
    integer(int64), pointer :: p4(:)
    logical(c_bool), pointer :: p5(:)
    complex(c_float_complex), pointer :: p6(:)
    complex(c_double_complex), pointer :: p7(:)
    integer :: i, k, stats(7)
    do i = 1, size(names)
      call s%create([3], trim(names(i)), zeroed=.true.)
      call s%host(p1, stat=stats(1))
      call s%host(p2, stat=stats(2))
      call s%host(p3, stat=stats(3))
      call s%host(p4, stat=stats(4))
      call s%host(p5, stat=stats(5))
      call s%host(p6, stat=stats(6))
      call s%host(p7, stat=stats(7))
      call check(all(stats == [(merge(0, 2, k == i), k=1, 7)]), 'pointers to '//names(i))
      call check(all([associated(p1), associated(p2), associated(p3), associated(p4), associated(p5), associated(p6), &
                      associated(p7)] .eqv. stats == 0), 'pointers after an error')
    end do
  end subroutine
  !> Blocks of a workspace: aligned, ended in the opposite order, and refused beyond the limit.
  subroutine temporaries
    type(workspace) :: space
    real(real64), pointer :: a(:, :), b(:)
    type(c_ptr) :: first, second
    integer :: stat
    ! [workspace]
    call space%create(2_int64**20)
    first = space%push(8_int64*6*5) ! bytes, on 64 bytes
    call c_f_pointer(first, a, [6, 5])
    second = space%push(8_int64*100, alignment_bytes=4096_int64)
    call c_f_pointer(second, b, [100])
    a = 1
    b = 2
    ! [/workspace]
    call check(all(a == 1) .and. all(b == 2), 'blocks do not overlap')
    call check(modulo(transfer(first, 0_int64), 64_int64) == 0, 'the default alignment')
    call check(modulo(transfer(second, 0_int64), 4096_int64) == 0, 'another alignment')
    call space%pop(first, stat)
    call check(stat /= 0 .and. index(error_text(), 'opposite order') > 0, 'another block is refused')
    call space%pop(second)
    second = space%push(2_int64**20, stat=stat)
    call check(stat /= 0 .and. .not. c_associated(second), 'beyond the limit')
    call space%pop(first)
    call space%release()
    call space%pop(first, stat)
    call check(stat /= 0, 'after its end')
  end subroutine

end module

program arrays_test
  use scenarios
  implicit none
  call use_emulated_device(.true.)
  call run(allocatable_array, 'allocatable_array')
  call run(automatic_arrays, 'automatic_arrays')
  call run(array_assignment, 'array_assignment')
  call run(wrapped_assigned_to_itself, 'wrapped_assigned_to_itself')
  call run(overlapping, 'overlapping')
  call run(constructors, 'constructors')
  call run(function_result, 'function_result', 1)
  call run(function_result_again, 'function_result_again', 2)
  call run(function_result_as_argument, 'function_result_as_argument', 1, 1)
  call run(function_result_array, 'function_result_array', 2)
  call run(function_result_scalar_allocatable, 'function_result_scalar_allocatable', 1)
  call run(function_result_pointer, 'function_result_pointer')
  call run(intent_out_scalar, 'intent_out_scalar')
  call run(intent_out_array, 'intent_out_array')
  call run(intent_out_allocatable, 'intent_out_allocatable')
  call run(pointers, 'pointers')
  call run(component_ends, 'component_ends', 3)
  call run(component_one, 'component_one')
  call run(component_fixed, 'component_fixed', 2)
  call run(array_of_components, 'array_of_components')
  call run(extended, 'extended')
  call run(extended_assignment, 'extended_assignment')
  call run(molded, 'molded')
  call run(unallocated_assignment, 'unallocated_assignment')
  call run(block_construct, 'block_construct')
  call run(associated_name, 'associated_name')
  call run(by_value, 'by_value')
  call run(temporaries, 'temporaries')
  call run(explicit_shape, 'explicit_shape')
  call run(wrong_shapes, 'wrong_shapes')
  call run(types_of_pointers, 'types_of_pointers')
  if (.not. gfortran) then
    call run(component_allocatable, 'component_allocatable')
    call run(function_result_allocatable, 'function_result_allocatable')
  end if
  print '(i0,a,i0,a)', checks, ' checks, ', failures, ' failed'
  if (failures > 0) error stop 1
contains
  !> The blocks that gfortran 12 may leave, and those that later ones may leave.
  subroutine run(work, name, left, left_later)
    interface
      subroutine work
      end subroutine
    end interface
    character(len=*), intent(in) :: name
    integer, intent(in), optional :: left, left_later
    integer :: before, most
    most = 0
    if (gfortran .and. present(left_later)) most = left_later
    if (gfortran_12 .and. present(left)) most = left
    before = live()
    call work
    call check(live() >= before .and. live() <= before + most, 'memory after '//name)
  end subroutine
end program
