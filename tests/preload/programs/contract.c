/* What the manual pages promise, below the threshold, at it and above. */
#include "check.h"

static const size_t SIZES[] = {0, 1, 100, 4096, 128 * KIB - 1, 128 * KIB, 128 * KIB + 1, 300 * KIB, 2 * MIB, 5 * MIB + 7, 40 * MIB};
#define COUNT (sizeof SIZES / sizeof *SIZES)

static void alignment(void) {
    for (size_t i = 0; i < COUNT; i++) {
        unsigned char *p = malloc(SIZES[i]);
        CHECK(p && (uintptr_t)p % 16 == 0);
        CHECK(malloc_usable_size(p) >= SIZES[i]);
        memset(p, 1, malloc_usable_size(p));
        free(p);
        for (size_t align = 8; align <= 8 * MIB; align *= 2) {
            void *q = NULL;
            errno = 77;
            CHECK(posix_memalign(&q, align, SIZES[i]) == 0 && (uintptr_t)q % align == 0 && errno == 77);
            memset(q, 2, SIZES[i]);
            free(q);
            CHECK((uintptr_t)(q = aligned_alloc(align, SIZES[i])) % align == 0 && q);
            free(q);
            CHECK((uintptr_t)(q = memalign(align, SIZES[i])) % align == 0 && q);
            free(q);
        }
        void *q = valloc(SIZES[i]);
        CHECK(q && (uintptr_t)q % 4096 == 0);
        free(q);
    }
    void *q = (void *)1;
    CHECK(posix_memalign(&q, 3, MIB) == EINVAL && posix_memalign(&q, 4, MIB) == EINVAL);
    CHECK(posix_memalign(&q, 0, MIB) == EINVAL && q == (void *)1);
}

static void resizing(void) {
    unsigned char *p = malloc(MIB);
    CHECK(realloc(p, 0) == NULL);
    CHECK((p = realloc(NULL, MIB)));
    for (size_t i = 1; i < COUNT; i++) CHECK((p = realloc(p, SIZES[i])) && malloc_usable_size(p) >= SIZES[i]);
    free(p);
}

static void failures(void) {
    volatile size_t huge = SIZE_MAX / 2, half = SIZE_MAX / 4;
    unsigned char *p = malloc(MIB);
    memset(p, 3, MIB);
    errno = 0;
    CHECK(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(half, 5) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(reallocarray(p, half, 5) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(p, huge) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(memalign(4096, huge) == NULL && errno == ENOMEM);
    CHECK(all_are(p, MIB, 3));
    void *q = NULL;
    CHECK(posix_memalign(&q, 64, huge) == ENOMEM && q == NULL);
    free(p);
}

static void errno_is_kept(void) {
    for (size_t i = 0; i < COUNT; i++) {
        void *p = malloc(SIZES[i]);
        errno = 1234;
        free(p);
        CHECK(errno == 1234);
    }
    errno = 1234;
    free(NULL);
    CHECK(errno == 1234 && malloc_usable_size(NULL) == 0);
}

/* Nothing here may be left out because nobody sees its result. */
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);
#pragma weak free_sized
#pragma weak free_aligned_sized

int main(void) {
    alignment();
    resizing();
    failures();
    errno_is_kept();
    if (free_sized) free_sized(malloc(MIB), MIB);
    if (free_aligned_sized) free_aligned_sized(aligned_alloc(64, MIB), 64, MIB);
    malloc_trim(0);
    puts("kept");
    return 0;
}
