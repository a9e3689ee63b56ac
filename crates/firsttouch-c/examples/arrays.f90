! Pointer arrays on a pool: each step of a solver allocates its work array, which the pool keeps for the next step.
!
!     gfortran $(pkg-config --variable=includedir firsttouch)/firsttouch.f90 arrays.f90 \
!         $(pkg-config --libs firsttouch) -o arrays && ./arrays
program arrays
    use firsttouch
    implicit none
    type(ft_allocator) :: pool, budget
    integer, parameter :: n = 500
    real(8), pointer :: cells(:), items(:), grid(:, :), work(:, :)
    integer :: step, stat

    pool = ft_parse("pool()")
    call ft_allocate(pool, cells, n * n, zeroed=.true.)
    grid(1:n, 1:n) => cells
    grid(250, 250) = 1
    do step = 1, 100
        call ft_allocate(pool, items, n * n)
        work(1:n, 1:n) => items
        work = grid
        work(2:499, 2:499) = (grid(1:498, 2:499) + grid(3:500, 2:499) + grid(2:499, 1:498) + grid(2:499, 3:500)) / 4
        grid = work
        call ft_deallocate(pool, items)
    end do
    print '(a, f8.6)', "heat left: ", sum(grid)

    budget = ft_parse("limited(budget='1 MiB')")
    call ft_allocate(budget, items, 500000, stat=stat)
    if (stat /= 0) print '(a)', ft_last_error()
    call ft_deallocate(pool, cells)
    call ft_release(budget)
    call ft_release(pool)
end program
