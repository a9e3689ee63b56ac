/* A large block, then many temporaries that are too small for the pool: prints the page faults that these took. */
#include "check.h"
#include <sys/resource.h>

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int main(void) {
    char *large = malloc(4 * MIB);
    memset(large, 1, 4 * MIB);
    free(large);
    long before = faults();
    for (int turn = 0; turn < 1000; turn++) {
        char *blocks[4];
        for (int at = 0; at < 4; at++) memset(blocks[at] = malloc(100 * KIB), turn, 100 * KIB);
        for (int at = 0; at < 4; at++) free(blocks[at]);
    }
    printf("%ld\n", faults() - before);
    return 0;
}
