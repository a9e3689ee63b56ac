/* Nanoseconds of a pair of malloc and free, of 16 to 1,024 bytes with 64 blocks alive. */
#include <time.h>

#include "rest.h"

int main(void)
{
    enum { ALIVE = 64, PAIRS = 20000000 };
    static void *alive[ALIVE];
    struct timespec begin, end;
    unsigned state = 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int pair = 0; pair < PAIRS; pair++) {
        state = state * 1103515245u + 12345u;
        free(alive[state >> 26]);
        alive[state >> 26] = malloc(16 + (state >> 16) % 1009);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.3f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / PAIRS);
}
