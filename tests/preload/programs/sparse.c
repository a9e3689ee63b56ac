/* 1 GiB of which one page in every 2 MiB is used; prints resident KiB for malloc and for calloc. */
#include "check.h"

int main(void) {
    long resident[2];
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
