/* Calls the library while there is no memory: each call works or fails with a message, and works again later. */
#include <firsttouch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void *hoard[1 << 16];

int main(void) {
    static const char *const expressions[] = {
        "pool()",
        "limited(filled(pool()), '1 GiB')",
        "guarded()",
        "pages(populate=True)",
        "pool(malloc())",
    };
    enum { KINDS = sizeof expressions / sizeof *expressions };
    firsttouch_allocator *ready[KINDS];
    firsttouch_scratch *scratch;
    for (int n = 0; n < KINDS; n++)
        if (firsttouch_parse(expressions[n], &ready[n]) != FIRSTTOUCH_OK) return 1;
    if (firsttouch_scratch_create(NULL, NULL, 0, &scratch) != FIRSTTOUCH_OK) return 1;
    struct rlimit before, limit = {256 << 20, 256 << 20};
    getrlimit(RLIMIT_AS, &before);
    limit.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    size_t held = 0;
    for (size_t size = 64 << 20; size >= 16; size /= 2)
        while (held < 1 << 16 && (hoard[held] = malloc(size))) held++;
    int worked = 0, refused = 0;
    (void)firsttouch_touch(hoard, sizeof hoard, true, 2);
    for (int turn = 0; turn < 200; turn++) {
        for (int n = 0; n < KINDS; n++) {
            firsttouch_allocator *made = NULL;
            firsttouch_status status = firsttouch_parse(expressions[n], &made);
            if (status != FIRSTTOUCH_OK && status != FIRSTTOUCH_NO_MEMORY) return 2;
            firsttouch_release(made);
            void *block = firsttouch_calloc(ready[n], 1, (size_t)3000000 + 4096 * (size_t)turn);
            if (!block && !*firsttouch_last_error()) return 3;
            block ? worked++ : refused++;
            firsttouch_free(ready[n], block);
        }
        firsttouch_allocator *jemalloc = NULL; /* its first use */
        if (firsttouch_parse("jemalloc()", &jemalloc) != FIRSTTOUCH_OK && strstr(firsttouch_last_error(), "MEMLOCK"))
            return puts(firsttouch_last_error()), 6;
        firsttouch_release(jemalloc);
        (void)firsttouch_scratch_alloc(scratch, 16, 100000);
        firsttouch_residency residency;
        (void)firsttouch_inspect(hoard, sizeof hoard, &residency, NULL, 0);
        firsttouch_node node;
        (void)firsttouch_get_node(-1, &node);
    }
    setrlimit(RLIMIT_AS, &before);
    while (held) free(hoard[--held]);
    for (int n = 0; n < KINDS; n++) {
        void *block = firsttouch_malloc(ready[n], 3000000);
        if (!block) return 4;
        firsttouch_free(ready[n], block);
        firsttouch_release(ready[n]);
    }
    firsttouch_scratch_destroy(scratch);
    printf("%d worked, %d were refused\ndone\n", worked, refused);
    return refused ? 0 : 5;
}
