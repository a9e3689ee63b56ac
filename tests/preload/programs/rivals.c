/* A program whose malloc is another allocator's: linked to it, preloaded with it or, with COUNTING, its own in front of the
   C library's, with no memalign. Says who serves its large blocks. */
#include "check.h"

#ifdef COUNTING
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static long live;
void *malloc(size_t size) { return live++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return live++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return __libc_realloc(old, size); }
void free(void *block) { live--, __libc_free(block); }
#endif

static void use(unsigned char *block, size_t size) {
    CHECK(block && malloc_usable_size(block) >= size);
    memset(block, 7, size);
    CHECK((block = realloc(block, 3 * size)) && all_are(block, size, 7));
    free(block);
}

int main(void) {
    void *block;
    for (size_t size = 1000; size <= 4 * MIB; size *= 8) {
        use(malloc(size), size);
        use(calloc(size, 1), size);
        use(memalign(64, size), size);
        use(aligned_alloc(64, size / 64 * 64), size / 64 * 64);
        use(valloc(size), size);
        CHECK(posix_memalign(&block, 4096, size) == 0);
        use(block, size);
        CHECK(posix_memalign(&block, 24, size) == EINVAL);
    }
    CHECK(block = malloc(4 * MIB));
    printf("%s\n", (uintptr_t)block >> 40 >= 16 && (uintptr_t)block >> 40 < 40 ? "pool" : "another");
    return 0;
}
