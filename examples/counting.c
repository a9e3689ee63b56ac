/* An allocator in NumPy's own form (NEP 49) that counts its calls. The counts are the context. */

#include <stddef.h>
#include <stdlib.h>

struct counts { long long allocations, frees; };

void *counting_malloc(void *context, size_t size) {
    __atomic_add_fetch(&((struct counts *)context)->allocations, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

void *counting_calloc(void *context, size_t count, size_t size) {
    __atomic_add_fetch(&((struct counts *)context)->allocations, 1, __ATOMIC_RELAXED);
    return calloc(count, size);
}

void counting_free(void *context, void *block, size_t size) {
    (void)size;
    __atomic_add_fetch(&((struct counts *)context)->frees, 1, __ATOMIC_RELAXED);
    free(block);
}
