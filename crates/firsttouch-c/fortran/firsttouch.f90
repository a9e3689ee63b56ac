! The memory behind arrays, for Fortran 2008: pointer arrays on any allocator of firsttouch.
!
!     use firsttouch
!     type(ft_allocator) :: pool
!     real(8), pointer :: x(:), y(:, :)
!     pool = ft_parse("pool()")
!     call ft_allocate(pool, x, 1000000)
!     y(1:1000, 1:1000) => x       ! any shape: a pointer to the same items
!     ...
!     call ft_deallocate(pool, x)
!     call ft_release(pool)
!
! Failures stop the program with a message, unless `stat` is given: 0 where all is well, as for `allocate`.
! Arrays are uninitialized; with `zeroed=.true.` they are zero, and not touched for that where memory is fresh.
module firsttouch
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private
    public :: ft_allocator, ft_parse, ft_release, ft_allocate, ft_deallocate, ft_last_error, ft_trim

    !> A reference to an allocator; without a value it is the pool that the whole process shares.
    type :: ft_allocator
        type(c_ptr) :: handle = c_null_ptr
    end type

    interface ft_allocate
        module procedure allocate_r4, allocate_r8, allocate_c8, allocate_i4, allocate_i8
    end interface

    interface ft_deallocate
        module procedure deallocate_r4, deallocate_r8, deallocate_c8, deallocate_i4, deallocate_i8
    end interface

    interface
        function c_parse(expression, handle) bind(c, name="firsttouch_parse") result(status)
            import :: c_char, c_ptr, c_int
            character(kind=c_char), intent(in) :: expression(*)
            type(c_ptr), intent(out) :: handle
            integer(c_int) :: status
        end function
        subroutine c_release(handle) bind(c, name="firsttouch_release")
            import :: c_ptr
            type(c_ptr), value :: handle
        end subroutine
        function c_malloc(handle, bytes) bind(c, name="firsttouch_malloc") result(block)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: handle
            integer(c_size_t), value :: bytes
            type(c_ptr) :: block
        end function
        function c_calloc(handle, count, bytes) bind(c, name="firsttouch_calloc") result(block)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: handle
            integer(c_size_t), value :: count, bytes
            type(c_ptr) :: block
        end function
        subroutine c_free(handle, block) bind(c, name="firsttouch_free")
            import :: c_ptr
            type(c_ptr), value :: handle, block
        end subroutine
        function c_trim(handle) bind(c, name="firsttouch_trim") result(bytes)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: handle
            integer(c_size_t) :: bytes
        end function
        function c_last_error() bind(c, name="firsttouch_last_error") result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function
    end interface

contains

    !> Creates the allocator that an expression describes.
    function ft_parse(expression, stat) result(allocator)
        character(*), intent(in) :: expression
        integer, intent(out), optional :: stat
        type(ft_allocator) :: allocator
        integer(c_int) :: status
        status = c_parse(expression // c_null_char, allocator%handle)
        call report(int(status), stat)
    end function

    !> Gives the reference up.
    subroutine ft_release(allocator)
        type(ft_allocator), intent(inout) :: allocator
        call c_release(allocator%handle)
        allocator%handle = c_null_ptr
    end subroutine

    !> Returns idle memory to the operating system; the bytes returned.
    function ft_trim(allocator) result(bytes)
        type(ft_allocator), intent(in) :: allocator
        integer(c_size_t) :: bytes
        bytes = c_trim(allocator%handle)
    end function

    !> Why the last call failed.
    function ft_last_error() result(text)
        character(:), allocatable :: text
        character(kind=c_char), pointer :: given(:)
        integer :: n
        call c_f_pointer(c_last_error(), given, [1024])
        n = 0
        do while (given(n + 1) /= c_null_char)
            n = n + 1
        end do
        allocate(character(n) :: text)
        text = transfer(given(1:n), text)
    end function

    subroutine report(status, stat)
        integer, intent(in) :: status
        integer, intent(out), optional :: stat
        if (present(stat)) then
            stat = status
        else if (status /= 0) then
            write(error_unit, '(2a)') "firsttouch: ", ft_last_error()
            error stop 1
        end if
    end subroutine

    !> Memory for items; the address is null, and `stat` not 0, where there is none.
    function memory(allocator, count, item, zeroed, stat) result(block)
        type(ft_allocator), intent(in) :: allocator
        integer(c_size_t), intent(in) :: count, item
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        integer(c_size_t) :: items
        logical :: clear
        items = min(max(count, 0_c_size_t), huge(count) / item) ! more than any machine has
        clear = .false.
        if (present(zeroed)) clear = zeroed
        if (clear) then
            block = c_calloc(allocator%handle, items, item)
        else
            block = c_malloc(allocator%handle, items * item)
        end if
        call report(merge(0, 1, c_associated(block)), stat)
    end function

    subroutine allocate_r4(allocator, array, n, zeroed, stat)
        type(ft_allocator), intent(in) :: allocator
        real(c_float), pointer, intent(out) :: array(:)
        integer, intent(in) :: n
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        nullify(array)
        block = memory(allocator, int(n, c_size_t), 4_c_size_t, zeroed, stat)
        if (c_associated(block)) call c_f_pointer(block, array, [max(n, 0)])
    end subroutine

    subroutine deallocate_r4(allocator, array)
        type(ft_allocator), intent(in) :: allocator
        real(c_float), pointer, intent(inout) :: array(:)
        if (associated(array)) call c_free(allocator%handle, c_loc(array))
        nullify(array)
    end subroutine

    subroutine allocate_r8(allocator, array, n, zeroed, stat)
        type(ft_allocator), intent(in) :: allocator
        real(c_double), pointer, intent(out) :: array(:)
        integer, intent(in) :: n
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        nullify(array)
        block = memory(allocator, int(n, c_size_t), 8_c_size_t, zeroed, stat)
        if (c_associated(block)) call c_f_pointer(block, array, [max(n, 0)])
    end subroutine

    subroutine deallocate_r8(allocator, array)
        type(ft_allocator), intent(in) :: allocator
        real(c_double), pointer, intent(inout) :: array(:)
        if (associated(array)) call c_free(allocator%handle, c_loc(array))
        nullify(array)
    end subroutine

    subroutine allocate_c8(allocator, array, n, zeroed, stat)
        type(ft_allocator), intent(in) :: allocator
        complex(c_double_complex), pointer, intent(out) :: array(:)
        integer, intent(in) :: n
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        nullify(array)
        block = memory(allocator, int(n, c_size_t), 16_c_size_t, zeroed, stat)
        if (c_associated(block)) call c_f_pointer(block, array, [max(n, 0)])
    end subroutine

    subroutine deallocate_c8(allocator, array)
        type(ft_allocator), intent(in) :: allocator
        complex(c_double_complex), pointer, intent(inout) :: array(:)
        if (associated(array)) call c_free(allocator%handle, c_loc(array))
        nullify(array)
    end subroutine

    subroutine allocate_i4(allocator, array, n, zeroed, stat)
        type(ft_allocator), intent(in) :: allocator
        integer(c_int32_t), pointer, intent(out) :: array(:)
        integer, intent(in) :: n
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        nullify(array)
        block = memory(allocator, int(n, c_size_t), 4_c_size_t, zeroed, stat)
        if (c_associated(block)) call c_f_pointer(block, array, [max(n, 0)])
    end subroutine

    subroutine deallocate_i4(allocator, array)
        type(ft_allocator), intent(in) :: allocator
        integer(c_int32_t), pointer, intent(inout) :: array(:)
        if (associated(array)) call c_free(allocator%handle, c_loc(array))
        nullify(array)
    end subroutine

    subroutine allocate_i8(allocator, array, n, zeroed, stat)
        type(ft_allocator), intent(in) :: allocator
        integer(c_int64_t), pointer, intent(out) :: array(:)
        integer, intent(in) :: n
        logical, intent(in), optional :: zeroed
        integer, intent(out), optional :: stat
        type(c_ptr) :: block
        nullify(array)
        block = memory(allocator, int(n, c_size_t), 8_c_size_t, zeroed, stat)
        if (c_associated(block)) call c_f_pointer(block, array, [max(n, 0)])
    end subroutine

    subroutine deallocate_i8(allocator, array)
        type(ft_allocator), intent(in) :: allocator
        integer(c_int64_t), pointer, intent(inout) :: array(:)
        if (associated(array)) call c_free(allocator%handle, c_loc(array))
        nullify(array)
    end subroutine

end module
