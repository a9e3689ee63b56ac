/* Temporaries that are wholly used, again and again; prints KiB on huge pages in the first round and in the last. */
#include "check.h"

int main(void) {
    long huge[8];
    for (int round = 0; round < 8; round++) {
        char *p = malloc(32 * MIB), *q = malloc(32 * MIB);
        CHECK(p && q);
        memset(p, 1, 32 * MIB);
        memset(q, 1, 32 * MIB);
        USED(p);
        huge[round] = proc_value("/proc/self/smaps_rollup", "AnonHugePages:");
        free(q);
        free(p);
    }
    printf("%ld %ld\n", huge[0], huge[7]);
    return 0;
}
