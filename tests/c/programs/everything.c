/* Calls every function of firsttouch.h, with right and with wrong arguments. Prints "done" at its end. */
#include <assert.h>
#include <errno.h>
#include <firsttouch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, firsttouch_last_error()); \
            exit(1); \
        } \
    } while (0)
#define SAYS(text) CHECK(strstr(firsttouch_last_error(), text))

static const char *const EXPRESSIONS[] = {
    "pool()",
    "pool(max_idle=\"1 MiB\", decay=10)",
    "pool(pages(huge=False))",
    "pool(malloc())",
    "malloc()",
    "calloc()",
    "aligned(4096)",
    "pages()",
    "pages(huge=\"thp\", populate=True)",
    "limited(tracked(pool()), \"1 GiB\")",
    "guarded(pool(), side=\"before\", keep=\"1 MiB\")",
    "filled(pool())",
};

static void check_blocks(firsttouch_allocator *allocator) {
    for (size_t size = 0; size < 9000000; size = size * 3 + 1) {
        unsigned char *a = firsttouch_malloc(allocator, size), *b = firsttouch_calloc(allocator, size, 1);
        CHECK(a && b && a != b);
        CHECK((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
        CHECK(firsttouch_usable_size(allocator, a) >= size);
        for (size_t i = 0; i < size; i += 97) CHECK(b[i] == 0);
        memset(a, 7, size);
        a = firsttouch_realloc(allocator, a, size * 2);
        CHECK(a);
        for (size_t i = 0; i < size; i += 97) CHECK(a[i] == 7);
        errno = EAGAIN;
        firsttouch_free(allocator, a);
        CHECK(errno == EAGAIN);
        a = firsttouch_aligned_alloc(allocator, 8192, size);
        CHECK(a && (uintptr_t)a % 8192 == 0);
        a = firsttouch_aligned_realloc(allocator, a, 16384, size + 100);
        CHECK(a && (uintptr_t)a % 16384 == 0);
        (void)firsttouch_resize_in_place(allocator, a, size + 1);
        firsttouch_free(allocator, a);
        a = firsttouch_aligned_calloc(allocator, 256, size);
        CHECK(a && (uintptr_t)a % 256 == 0 && (size == 0 || a[size - 1] == 0));
        firsttouch_free(allocator, a);
        firsttouch_free(allocator, b);
    }
    firsttouch_free(allocator, NULL);
    CHECK(!firsttouch_malloc(allocator, SIZE_MAX) && errno == ENOMEM);
    CHECK(!firsttouch_calloc(allocator, SIZE_MAX / 2, 4) && errno == ENOMEM);
    CHECK(!firsttouch_aligned_alloc(allocator, 3, 100) && errno == EINVAL);
    SAYS("alignment 3 is not a power of two");
    CHECK(!firsttouch_resize_in_place(allocator, NULL, 1));
    CHECK(firsttouch_usable_size(allocator, NULL) == 0);
}

static void check_allocators(void) {
    firsttouch_allocator *allocator;
    for (size_t n = 0; n < sizeof EXPRESSIONS / sizeof *EXPRESSIONS; n++) {
        CHECK(firsttouch_parse(EXPRESSIONS[n], &allocator) == FIRSTTOUCH_OK);
        check_blocks(allocator);
        char text[256], cut[4];
        size_t length = firsttouch_describe(allocator, text, sizeof text);
        CHECK(length == strlen(text));
        CHECK(firsttouch_describe(allocator, cut, sizeof cut) == length && strlen(cut) == 3);
        firsttouch_allocator *same;
        CHECK(firsttouch_parse(text, &same) == FIRSTTOUCH_OK);
        firsttouch_release(same);
        CHECK(firsttouch_retain(allocator) == allocator);
        firsttouch_release(allocator);
        firsttouch_release(allocator);
    }
    check_blocks(NULL);
    CHECK(firsttouch_parse("limited(pool(), ", &allocator) == FIRSTTOUCH_EXPRESSION);
    CHECK(firsttouch_parse("puol()", &allocator) == FIRSTTOUCH_EXPRESSION);
    SAYS("pool");
    CHECK(firsttouch_parse(NULL, &allocator) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_parse("\xff()", &allocator) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_parse("pool()", NULL) == FIRSTTOUCH_INVALID);
    firsttouch_release(NULL);
}

static void *counted_malloc(void *context, size_t size) {
    ++*(int *)context;
    return malloc(size);
}

static void counted_free(void *context, void *block, size_t size) {
    (void)size;
    --*(int *)context;
    free(block);
}

static void check_constructors(void) {
    firsttouch_allocator *pool, *outer;
    firsttouch_pool_options options = FIRSTTOUCH_POOL_OPTIONS;
    options.max_idle = 1 << 20;
    options.decay = INFINITY;
    CHECK(firsttouch_pool(&options, &pool) == FIRSTTOUCH_OK);
    char text[256];
    firsttouch_describe(pool, text, sizeof text);
    CHECK(strstr(text, "decay=None"));
    check_blocks(pool);
    firsttouch_release(pool);
    options.decay = NAN;
    CHECK(firsttouch_pool(&options, &pool) == FIRSTTOUCH_INVALID);
    SAYS("give seconds, INFINITY for never, or a negative number for the default");
    options.struct_size = 0;
    CHECK(firsttouch_pool(&options, &pool) == FIRSTTOUCH_INVALID);
    SAYS("initialize the structure with FIRSTTOUCH_POOL_OPTIONS");
    CHECK(firsttouch_pool(NULL, &pool) == FIRSTTOUCH_OK);

    CHECK(firsttouch_limited(pool, 0, &outer) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_limited(pool, 1000000, &outer) == FIRSTTOUCH_OK);
    void *kept = firsttouch_malloc(outer, 900000);
    CHECK(kept && !firsttouch_malloc(outer, 900000));
    SAYS("limit");
    firsttouch_free(outer, kept);
    firsttouch_release(outer);
    CHECK(firsttouch_tracked(pool, &outer) == FIRSTTOUCH_OK);
    check_blocks(outer);
    firsttouch_release(outer);
    CHECK(firsttouch_guarded(pool, false, 0, &outer) == FIRSTTOUCH_OK);
    check_blocks(outer);
    unsigned char *late = firsttouch_malloc(outer, 100);
    firsttouch_release(outer); /* its blocks stay valid */
    memset(late, 1, 100);
    CHECK(firsttouch_filled(pool, 256, 0, &outer) == FIRSTTOUCH_INVALID);
    SAYS("on_allocate is 256: give 0 to 255, or -1 to leave memory as it is");
    CHECK(firsttouch_filled(pool, 0xAB, -1, &outer) == FIRSTTOUCH_OK);
    unsigned char *filled = firsttouch_malloc(outer, 100000);
    CHECK(filled[0] == 0xAB && filled[99999] == 0xAB);
    firsttouch_free(outer, filled);
    firsttouch_release(outer);
    firsttouch_release(pool);

    int living = 0;
    firsttouch_functions functions = FIRSTTOUCH_INIT(firsttouch_functions);
    CHECK(firsttouch_from_functions(&functions, &outer) == FIRSTTOUCH_INVALID);
    functions.malloc = counted_malloc;
    functions.free = counted_free;
    functions.context = &living;
    CHECK(firsttouch_from_functions(&functions, &outer) == FIRSTTOUCH_OK);
    check_blocks(outer);
    CHECK(living == 0);
    /* The last reference to what stands on the functions gives all of their memory back. */
    firsttouch_pool_options forever = FIRSTTOUCH_POOL_OPTIONS;
    firsttouch_allocator *limited;
    forever.upstream = outer;
    forever.decay = INFINITY;
    CHECK(firsttouch_pool(&forever, &pool) == FIRSTTOUCH_OK);
    firsttouch_release(outer);
    CHECK(firsttouch_limited(pool, 1 << 20, &limited) == FIRSTTOUCH_OK);
    firsttouch_free(pool, firsttouch_malloc(pool, 100000));
    firsttouch_release(pool);
    CHECK(living == 1);
    firsttouch_release(limited);
    CHECK(living == 0);
}

static void check_scratch(void) {
    firsttouch_scratch *scratch;
    CHECK(firsttouch_scratch_create(NULL, &scratch) == FIRSTTOUCH_OK);
    for (int turn = 0; turn < 100; turn++) {
        firsttouch_mark outer = firsttouch_scratch_mark(scratch);
        char *a = firsttouch_scratch_alloc(scratch, 64, 1000);
        CHECK(a && (uintptr_t)a % 64 == 0);
        memset(a, 1, 1000);
        firsttouch_mark inner = firsttouch_scratch_mark(scratch);
        for (size_t size = 1; size < 3000000; size = size * 2 + 1) {
            char *b = firsttouch_scratch_alloc(scratch, 16, size);
            CHECK(b && (uintptr_t)b % 16 == 0);
            memset(b, 2, size);
        }
        firsttouch_scratch_rewind(scratch, inner);
        for (int i = 0; i < 1000; i++) CHECK(a[i] == 1);
        if (turn % 10 == 9) firsttouch_scratch_trim(scratch);
        firsttouch_scratch_rewind(scratch, outer);
        CHECK(firsttouch_scratch_used(scratch) == 0);
    }
    size_t held = firsttouch_scratch_capacity(scratch);
    CHECK(held > 0 && held < 64 << 20);
    errno = 0;
    CHECK(!firsttouch_scratch_alloc(scratch, 3, 10) && errno == EINVAL);
    CHECK(!firsttouch_scratch_alloc(scratch, (size_t)1 << 40, 10) && errno == EINVAL);
    SAYS("alignment 1099511627776");
    CHECK(!firsttouch_scratch_alloc(scratch, 16, SIZE_MAX) && errno == ENOMEM);
    CHECK(firsttouch_scratch_alloc(scratch, 16, 0));
    firsttouch_scratch_reset(scratch);
    firsttouch_scratch_destroy(scratch);

    _Alignas(64) char storage[4096];
    CHECK(firsttouch_scratch_over(storage, sizeof storage, &scratch) == FIRSTTOUCH_OK);
    char *inside = firsttouch_scratch_alloc(scratch, 8, 4000);
    CHECK(inside >= storage && inside + 4000 <= storage + sizeof storage);
    CHECK(!firsttouch_scratch_alloc(scratch, 8, 200));
    SAYS("fixed at 4 KiB");
    firsttouch_scratch_destroy(scratch);
    CHECK(firsttouch_scratch_over(NULL, 10, &scratch) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_scratch_over(storage, SIZE_MAX, &scratch) == FIRSTTOUCH_INVALID);
    firsttouch_scratch_options options = FIRSTTOUCH_SCRATCH_OPTIONS;
    options.first_chunk = 1 << 20;
    options.max_chunk = 4096;
    CHECK(firsttouch_scratch_create(&options, &scratch) == FIRSTTOUCH_INVALID);
    options.first_chunk = 0; /* the default, but not above the largest */
    options.max_chunk = 1024;
    CHECK(firsttouch_scratch_create(&options, &scratch) == FIRSTTOUCH_OK);
    firsttouch_scratch_destroy(scratch);
    options.first_chunk = 1 << 20;
    CHECK(firsttouch_parse("pool()", &options.upstream) == FIRSTTOUCH_OK);
    options.max_chunk = 0;
    CHECK(firsttouch_scratch_create(&options, &scratch) == FIRSTTOUCH_OK);
    CHECK(firsttouch_scratch_alloc(scratch, 4096, 5000000));
    firsttouch_scratch_destroy(scratch);
    firsttouch_release(options.upstream);
    firsttouch_scratch_destroy(NULL);
}

static void check_pages(void) {
    firsttouch_allocator *pages;
    firsttouch_pages_options options = FIRSTTOUCH_PAGES_OPTIONS;
    options.numa = "0";
    options.populate = -1;
    CHECK(firsttouch_pages(&options, &pages) == FIRSTTOUCH_OK);
    size_t size = 1 << 20, page = firsttouch_page_size(), count = 0;
    char *block = firsttouch_malloc(pages, size);
    CHECK(block);
    firsttouch_receipt receipt = FIRSTTOUCH_INIT(firsttouch_receipt);
    CHECK(firsttouch_get_receipt(pages, block, &receipt) == FIRSTTOUCH_OK);
    CHECK(receipt.asked == size && receipt.mapped >= size && receipt.populate == FIRSTTOUCH_GRANTED);
    CHECK(firsttouch_get_receipt(pages, &size, &receipt) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_get_receipt(NULL, block, &receipt) == FIRSTTOUCH_UNSUPPORTED);
    firsttouch_allocator *plain;
    CHECK(firsttouch_pages(NULL, &plain) == FIRSTTOUCH_OK);
    void *other = firsttouch_malloc(plain, size);
    CHECK(firsttouch_get_receipt(plain, other, &receipt) == FIRSTTOUCH_UNSUPPORTED);
    CHECK(strstr(firsttouch_last_error(), "only pages() with"));
    firsttouch_free(plain, other);
    firsttouch_release(plain);
    firsttouch_residency residency = FIRSTTOUCH_INIT(firsttouch_residency);
    CHECK(firsttouch_inspect(block, size, &residency) == FIRSTTOUCH_OK);
    CHECK(residency.pages * page == size && residency.real == size && residency.absent == 0);
    firsttouch_free(pages, block);
    firsttouch_release(pages);
    options.numa = "bind:999";
    CHECK(firsttouch_pages(&options, &pages) == FIRSTTOUCH_INVALID);
    options.numa = NULL;
    options.huge = "7K";
    CHECK(firsttouch_pages(&options, &pages) == FIRSTTOUCH_INVALID);
    SAYS("give \"thp\", sizes like \"1G,2M\" in order of preference, or NULL for base pages");
    options.populate = 1025;
    options.huge = NULL;
    CHECK(firsttouch_pages(&options, &pages) == FIRSTTOUCH_INVALID);
    SAYS("populate is 1025: give a number up to 1024");

    CHECK(firsttouch_parse("pages()", &pages) == FIRSTTOUCH_OK);
    block = firsttouch_malloc(pages, size);
    CHECK(firsttouch_inspect(block, size, &residency) == FIRSTTOUCH_OK && residency.absent == size);
    block[5 * page] = 1;
    uint8_t states[256];
    CHECK(firsttouch_pagemap(block, size, states, sizeof states, &count) == FIRSTTOUCH_OK);
    CHECK(count == size / page && states[4] == FIRSTTOUCH_PAGE_ABSENT && states[5] != FIRSTTOUCH_PAGE_ABSENT);
    CHECK(firsttouch_touch(block, size, true, 2) == FIRSTTOUCH_OK);
    CHECK(firsttouch_inspect(block, size, &residency) == FIRSTTOUCH_OK && residency.absent == 0);
    CHECK(block[5 * page] == 1);
    firsttouch_migration migration = FIRSTTOUCH_INIT(firsttouch_migration);
    firsttouch_status moved = firsttouch_migrate(block, size, "0", &migration);
    CHECK(moved == FIRSTTOUCH_SYSTEM || (moved == FIRSTTOUCH_OK && migration.moved + migration.stayed == size));
    CHECK(firsttouch_migrate(block, size, "nowhere", NULL) == FIRSTTOUCH_INVALID);
    size_t huge = 1;
    (void)firsttouch_collapse(block, size, &huge);
    CHECK(huge <= size);
    firsttouch_free(pages, block);
    firsttouch_release(pages);
    CHECK(firsttouch_inspect((void *)(UINTPTR_MAX - 10), 100, &residency) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_inspect(NULL, 0, &residency) == FIRSTTOUCH_OK && residency.pages == 0);
    char *closed = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(firsttouch_touch(closed, size, true, 1) == FIRSTTOUCH_SYSTEM);
    CHECK(firsttouch_touch(closed, size, false, 1) == FIRSTTOUCH_SYSTEM);
    munmap(closed, size);
    CHECK(firsttouch_touch(&size, SIZE_MAX, true, 0) == FIRSTTOUCH_INVALID);
    SAYS("beyond the end of the address space");
    CHECK(firsttouch_collapse((void *)(UINTPTR_MAX - 10), 5, &huge) == FIRSTTOUCH_INVALID);
    firsttouch_residency nowhere = FIRSTTOUCH_INIT(firsttouch_residency);
    CHECK(firsttouch_inspect((void *)((uintptr_t)1 << 62), size, &nowhere) == FIRSTTOUCH_INVALID);
    SAYS("where no program of this system has memory");
    CHECK(firsttouch_touch((void *)((uintptr_t)1 << 62), size, true, 1) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_migrate(&size, SIZE_MAX / 2, "0", &migration) == FIRSTTOUCH_INVALID);

    firsttouch_node node = FIRSTTOUCH_INIT(firsttouch_node);
    CHECK(firsttouch_get_node(firsttouch_current_node(), &node) == FIRSTTOUCH_OK && node.processors > 0);
    CHECK(firsttouch_get_node(firsttouch_highest_node() + 1, &node) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_get_node(-1, &node) == FIRSTTOUCH_INVALID);
}

/* A structure as an older header may have it: what it lacks is not written. */
static void check_older_structures(void) {
    struct {
        firsttouch_stats stats;
        uint64_t behind;
    } given = {{.struct_size = sizeof(firsttouch_stats) + 8}, 42};
    CHECK(firsttouch_get_stats(NULL, &given.stats) == FIRSTTOUCH_OK && given.behind == 42);
    given.stats.struct_size = 8;
    CHECK(firsttouch_get_stats(NULL, &given.stats) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_get_stats(NULL, NULL) == FIRSTTOUCH_INVALID);
}

static void check_statistics(void) {
    firsttouch_allocator *pool;
    CHECK(firsttouch_pool(NULL, &pool) == FIRSTTOUCH_OK);
    void *block = firsttouch_malloc(pool, 10 << 20);
    memset(block, 1, 10 << 20);
    firsttouch_stats stats = FIRSTTOUCH_INIT(firsttouch_stats);
    CHECK(firsttouch_get_stats(pool, &stats) == FIRSTTOUCH_OK);
    CHECK(stats.in_use == 10 << 20 && stats.blocks == 1 && stats.allocations == 1);
    firsttouch_free(pool, block);
    CHECK(firsttouch_trim(pool) >= 10 << 20);
    firsttouch_release(pool);
}

static void check_fork(void) {
    void *block = firsttouch_malloc(NULL, 1 << 20);
    pid_t child = fork();
    if (child == 0) {
        firsttouch_free(NULL, block);
        block = firsttouch_calloc(NULL, 1 << 20, 2);
        _exit(block ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    firsttouch_free(NULL, block);
}

int main(void) {
    CHECK(strcmp(firsttouch_last_error(), "") == 0);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", FIRSTTOUCH_VERSION_MAJOR, FIRSTTOUCH_VERSION_MINOR,
             FIRSTTOUCH_VERSION_PATCH);
    CHECK(strcmp(version, firsttouch_version()) == 0);
    check_allocators();
    check_constructors();
    check_scratch();
    check_pages();
    check_statistics();
    check_older_structures();
    check_fork();
    puts("done");
    return 0;
}
