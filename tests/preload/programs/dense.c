/* Temporaries that are wholly used, again and again; prints KiB on huge pages in the first round and in the last. */
#include "check.h"

/* With the room to begin anywhere in its first page, a block takes 32 MiB. */
enum { SIZE = 32 * MIB - 4096 };

int main(void) {
    long huge[8];
    for (int round = 0; round < 8; round++) {
        char *p = malloc(SIZE), *q = malloc(SIZE);
        CHECK(p && q);
        memset(p, 1, SIZE);
        memset(q, 1, SIZE);
        USED(p);
        huge[round] = proc_value("/proc/self/smaps_rollup", "AnonHugePages:");
        free(q);
        free(p);
    }
    printf("%ld %ld\n", huge[0], huge[7]);
    return 0;
}
