! Power spectra of 40 signals of 2**17 samples by a recursive transform that splits its input into halves.
module transforms
  implicit none
  integer, parameter :: real64 = kind(1d0)
contains
  recursive function transform(x) result(y)
    complex(real64), intent(in) :: x(:)
    complex(real64), allocatable :: y(:), even(:), odd(:)
    integer :: n, k
    n = size(x)
    allocate (y(n))
    if (n == 1) then
      y = x
      return
    end if
    even = transform(x(1::2))
    odd = transform(x(2::2))
    do k = 1, n / 2
      odd(k) = odd(k) * exp(cmplx(0, -2 * acos(-1d0) * (k - 1) / n, real64))
    end do
    y(:n / 2) = even + odd
    y(n / 2 + 1:) = even - odd
  end function
end module

program spectra
  use transforms
  implicit none
  integer, parameter :: n = 2**17
  complex(real64), allocatable :: x(:)
  real(real64), allocatable :: power(:), window(:)
  real(real64) :: found
  integer :: i, signal
  found = 0
  window = [(0.5d0 - 0.5d0 * cos(2 * acos(-1d0) * i / n), i=0, n - 1)]
  do signal = 1, 12
    x = [(cmplx(mod(i * (7919 + signal), 1000) / 1000d0, 0, real64), i=0, n - 1)]
    x = x * window
    power = abs(transform(x))**2
    found = found + maxval(power(2:)) + sum(sqrt(power))
  end do
  print '(es20.12)', found
  deallocate (x, power, window)
  call rest()
contains
  include 'rest.inc'
end program
