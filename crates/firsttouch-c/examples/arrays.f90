! Pointer arrays on a pool: each step of a solver allocates its work array, which the pool keeps for the next step.
!
!     gfortran $(pkg-config --variable=includedir firsttouch)/firsttouch.f90 arrays.f90 \
!         $(pkg-config --libs firsttouch) -o arrays && ./arrays
program arrays
    use firsttouch
    implicit none
    type(ft_allocator) :: pool, budget
    integer, parameter :: n = 500
    integer(8), parameter :: cells = n * n
    real(8), pointer :: grid(:, :), work(:, :)
    type(c_ptr) :: none
    integer :: step, stat

    pool = ft_parse("pool()")
    call c_f_pointer(ft_allocate(pool, cells, c_sizeof(1d0), zeroed=.true.), grid, [n, n])
    grid(250, 250) = 1
    do step = 1, 100
        call c_f_pointer(ft_allocate(pool, cells, c_sizeof(1d0)), work, [n, n])
        work = grid
        work(2:499, 2:499) = (grid(1:498, 2:499) + grid(3:500, 2:499) + grid(2:499, 1:498) + grid(2:499, 3:500)) / 4
        grid = work
        call ft_deallocate(pool, c_loc(work))
    end do
    print '(a, f8.6)', "heat left: ", sum(grid)

    budget = ft_parse("limited(budget='1 MiB')")
    none = ft_allocate(budget, 2 * cells, c_sizeof(1d0), stat=stat)
    if (stat /= 0) print '(a)', ft_last_error()
    call ft_deallocate(pool, c_loc(grid))
    call ft_release(budget)
    call ft_release(pool)
end program
