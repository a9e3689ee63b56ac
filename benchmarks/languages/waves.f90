! Shallow-water waves on 500 x 500: functions return arrays, whose storage is fresh in each step.
module fields
  implicit none
  integer, parameter :: n = 500, real64 = kind(1d0)
contains
  function dx(a) result(d)
    real(real64), intent(in) :: a(:, :)
    real(real64), allocatable :: d(:, :)
    allocate (d(n, n))
    d = cshift(a, 1, 1) - cshift(a, -1, 1)
  end function
  function dy(a) result(d)
    real(real64), intent(in) :: a(:, :)
    real(real64), allocatable :: d(:, :)
    allocate (d(n, n))
    d = cshift(a, 1, 2) - cshift(a, -1, 2)
  end function
end module

program waves
  use fields
  implicit none
  real(real64), allocatable :: h(:, :), u(:, :), v(:, :), hu(:, :), hv(:, :)
  integer :: i, j, step
  allocate (h(n, n), u(n, n), v(n, n))
  do j = 1, n
    do i = 1, n
      h(i, j) = 1 + 0.1d0 * exp(-((i - 250)**2 + (j - 250)**2) / 800d0)
    end do
  end do
  u = 0
  v = 0
  do step = 1, 60
    u = u - 0.05d0 * dx(h)
    v = v - 0.05d0 * dy(h)
    hu = h * u
    hv = h * v
    h = h - 0.05d0 * (dx(hu) + dy(hv))
  end do
  print '(f0.6)', sum(h**2)
  deallocate (h, u, v, hu, hv)
  call rest()
contains
  include 'rest.inc'
end program
