/* 1 GiB of which one page in every 2 MiB is used; prints resident KiB for malloc and for calloc. Before that, blocks that are
 * wholly used come and go, one at a time: they tell nothing of so large a block. */
#include "check.h"

static void use_densely(void) {
    for (int turn = 0; turn < 600; turn++) {
        char *p = calloc(1, 2 * MIB);
        CHECK(p);
        memset(p, 1, 2 * MIB);
        free(p);
    }
    for (int turn = 0; turn < 40; turn++) {
        char *p = malloc(MIB);
        for (size_t size = MIB; size <= 32 * MIB; size *= 2) {
            CHECK((p = realloc(p, size)));
            memset(p, 1, size);
        }
        free(p);
    }
}

int main(void) {
    long resident[2];
    use_densely();
    malloc_trim(0);
    for (int zeroed = 0; zeroed < 2; zeroed++) {
        char *p = zeroed ? calloc(1, GIB) : malloc(GIB);
        CHECK(p);
        for (size_t at = 0; at < GIB; at += 2 * MIB) p[at] = 1;
        resident[zeroed] = resident_kib();
        free(p);
    }
    printf("%ld %ld\n", resident[0], resident[1]);
    return 0;
}
