/* Primes in 100 ranges of 2,000,000 numbers; each range has a fresh table of zeros. */
#include <string.h>

#include "rest.h"

#define RANGE 2000000L
#define ROOT 20001L

int main(void)
{
    unsigned char *small = calloc(ROOT, 1);
    long primes[3000], known = 0, count = 0;
    for (long p = 2; p < ROOT; p++) {
        if (small[p])
            continue;
        primes[known++] = p;
        for (long m = p * p; m < ROOT; m += p)
            small[m] = 1;
    }
    for (long begin = 0; begin < 100 * RANGE; begin += RANGE) {
        unsigned char *composite = calloc(RANGE, 1);
        for (long i = 0; i < known && primes[i] * primes[i] < begin + RANGE; i++) {
            long p = primes[i], first = (begin + p - 1) / p * p;
            for (long m = first < p * p ? p * p : first; m < begin + RANGE; m += p)
                composite[m - begin] = 1;
        }
        for (long n = begin < 2 ? 2 - begin : 0; n < RANGE; n++)
            count += !composite[n];
        free(composite);
    }
    printf("%ld\n", count);
    free(small);
    rest();
}
