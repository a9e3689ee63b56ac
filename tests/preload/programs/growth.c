/* Buffers that grow by realloc: how often do they move? */
#include "check.h"

static long grow(size_t step, double factor, size_t most) {
    long moves = 0;
    size_t size = 64 * KIB;
    unsigned char *p = malloc(size);
    memset(p, 7, size);
    while (size < most) {
        size_t next = factor > 1 ? (size_t)(size * factor) : size + step;
        uintptr_t before = (uintptr_t)p;
        CHECK((p = realloc(p, next)));
        memset(p + size, 7, next - size);
        moves += (uintptr_t)p != before;
        size = next;
    }
    CHECK(all_are(p, size, 7));
    free(p);
    return moves;
}

static long in_turns(void) {
    enum { COUNT = 20 };
    long moves = 0;
    unsigned char *p[COUNT];
    for (int i = 0; i < COUNT; i++) p[i] = malloc(MIB);
    for (size_t size = MIB; size < 10 * MIB; size += 4 * KIB)
        for (int i = 0; i < COUNT; i++) {
            uintptr_t before = (uintptr_t)p[i];
            CHECK((p[i] = realloc(p[i], size)));
            p[i][size - 1] = 1;
            moves += (uintptr_t)p[i] != before;
        }
    for (int i = 0; i < COUNT; i++) free(p[i]);
    return moves;
}

int main(void) {
    long by_page = grow(4 * KIB, 0, 128 * MIB), by_half = grow(0, 1.5, 256 * MIB), twice = grow(0, 2, 256 * MIB);
    printf("%ld %ld %ld %ld\n", by_page, by_half, twice, in_turns());
    return 0;
}
