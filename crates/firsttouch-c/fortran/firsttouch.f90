! The memory behind arrays, for Fortran 2008: pointer arrays of any type and shape on any allocator of firsttouch.
!
!     use firsttouch
!     type(ft_allocator) :: pool
!     real(8), pointer :: x(:, :)
!     pool = ft_parse("pool()")
!     call c_f_pointer(ft_allocate(pool, 1000000_8, c_sizeof(1d0)), x, [1000, 1000])
!     ...
!     call ft_deallocate(pool, c_loc(x))
!     call ft_release(pool)
!
! Failures stop the program with a message, unless `stat` is given: 0 where all is well, as for `allocate`.
! Memory is uninitialized; with `zeroed=.true.` it is zero, and not touched for that where it is fresh.
module firsttouch
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private
    public :: ft_allocator, ft_parse, ft_release, ft_allocate, ft_deallocate, ft_last_error, ft_trim
    public :: c_ptr, c_loc, c_f_pointer, c_sizeof

    !> A reference to an allocator; without a value it is the pool that the whole process shares.
    type :: ft_allocator
        type(c_ptr) :: handle = c_null_ptr
    end type

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

    !> Memory for `count` items of `item` bytes each; the address is null, and `stat` not 0, where there is none.
    function ft_allocate(allocator, count, item, zeroed, stat) result(block)
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

    !> Gives memory back, by its address.
    subroutine ft_deallocate(allocator, block)
        type(ft_allocator), intent(in) :: allocator
        type(c_ptr), intent(in) :: block
        call c_free(allocator%handle, block)
    end subroutine

end module
