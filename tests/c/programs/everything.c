/* Calls every function of firsttouch.h, with right and with wrong arguments. Prints "done" at its end. */
#include <assert.h>
#include <errno.h>
#include <firsttouch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>

/* The library sets the errno of the Universal C Runtime. This program may be linked to an older one. */
#undef errno
#define errno (*universal_errno())
static int *universal_errno(void) {
    return ((int *(*)(void))(void (*)(void))GetProcAddress(LoadLibraryA("ucrtbase.dll"), "_errno"))();
}

static size_t page_size(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

/* Address space that nobody may access. */
static void *closed_pages(size_t size) { return VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS); }
#else
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void *closed_pages(size_t size) { return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
#endif

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
    "limited(filled(pool()), \"1 GiB\")",
    "guarded(side=\"before\", keep=\"1 MiB\")",
    "filled(pool())",
};

static void check_blocks(firsttouch_allocator *allocator) {
    for (size_t size = 0; size < 9000000; size = size * 3 + 1) {
        unsigned char *a = firsttouch_malloc(allocator, size), *b = firsttouch_calloc(allocator, size, 1);
        CHECK(a && b && a != b);
        CHECK((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
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
        firsttouch_free(allocator, a);
        firsttouch_free(allocator, b);
    }
    firsttouch_free(allocator, NULL);
    CHECK(!firsttouch_malloc(allocator, SIZE_MAX) && errno == ENOMEM);
    CHECK(!firsttouch_calloc(allocator, SIZE_MAX / 2, 4) && errno == ENOMEM);
    CHECK(!firsttouch_aligned_alloc(allocator, 3, 100) && errno == EINVAL);
    SAYS("alignment 3 is not a power of two");
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

static void check_adaptors(void) {
    firsttouch_allocator *pool, *outer;
    CHECK(firsttouch_parse("pool(decay=None)", &pool) == FIRSTTOUCH_OK);
    CHECK(firsttouch_parse_over("limited(budget=0)", pool, &outer) == FIRSTTOUCH_EXPRESSION);
    SAYS("budget=0: give a number of bytes, 1 to");
    CHECK(firsttouch_parse_over("limited(pool(), 5)", pool, &outer) == FIRSTTOUCH_EXPRESSION);
    SAYS("multiple values for argument 'upstream'");
    CHECK(firsttouch_parse_over("mimalloc()", pool, &outer) == FIRSTTOUCH_EXPRESSION);
    SAYS("mimalloc() takes no upstream");
    CHECK(firsttouch_parse_over("limited(budget=1000000)", pool, &outer) == FIRSTTOUCH_OK);
    void *kept = firsttouch_malloc(outer, 900000);
    CHECK(kept && !firsttouch_malloc(outer, 900000));
    SAYS("limit");
    firsttouch_stats stats;
    CHECK(firsttouch_get_stats(pool, &stats) == FIRSTTOUCH_OK && stats.in_use == 900000); /* the same pool */
    firsttouch_free(outer, kept);
    firsttouch_release(outer);
    CHECK(firsttouch_parse_over("filled", pool, &outer) == FIRSTTOUCH_OK);
    unsigned char *late = firsttouch_malloc(outer, 100);
    firsttouch_release(outer); /* its blocks stay valid */
    memset(late, 1, 100);
    firsttouch_release(pool);
}

static void check_scratch(void) {
    firsttouch_scratch *scratch;
    CHECK(firsttouch_scratch_create(NULL, NULL, 0, &scratch) == FIRSTTOUCH_OK);
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
        firsttouch_scratch_rewind(scratch, outer);
    }
    errno = 0;
    CHECK(!firsttouch_scratch_alloc(scratch, 3, 10) && errno == EINVAL);
    CHECK(!firsttouch_scratch_alloc(scratch, (size_t)1 << 40, 10) && errno == EINVAL);
    SAYS("alignment 1099511627776");
    CHECK(!firsttouch_scratch_alloc(scratch, 16, SIZE_MAX) && errno == ENOMEM);
    CHECK(firsttouch_scratch_alloc(scratch, 16, 0));
    firsttouch_scratch_reset(scratch);
    firsttouch_scratch_destroy(scratch);

    _Alignas(64) char storage[4096];
    CHECK(firsttouch_scratch_create(NULL, storage, sizeof storage, &scratch) == FIRSTTOUCH_OK);
    char *inside = firsttouch_scratch_alloc(scratch, 8, 4000);
    CHECK(inside >= storage && inside + 4000 <= storage + sizeof storage);
    CHECK(!firsttouch_scratch_alloc(scratch, 8, 200));
    SAYS("the fixed buffer has 4 KiB");
    firsttouch_scratch_destroy(scratch);
    CHECK(firsttouch_scratch_create(NULL, storage, SIZE_MAX, &scratch) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_scratch_create(NULL, NULL, 0, NULL) == FIRSTTOUCH_INVALID);
    firsttouch_allocator *upstream;
    CHECK(firsttouch_parse("limited(pool(), '1 GiB')", &upstream) == FIRSTTOUCH_OK);
    CHECK(firsttouch_scratch_create(upstream, NULL, 1 << 20, &scratch) == FIRSTTOUCH_OK);
    CHECK(firsttouch_scratch_alloc(scratch, 4096, 5000000));
    firsttouch_stats stats;
    CHECK(firsttouch_get_stats(upstream, &stats) == FIRSTTOUCH_OK && stats.in_use >= 5000000);
    firsttouch_scratch_destroy(scratch);
    firsttouch_release(upstream);
    firsttouch_scratch_destroy(NULL);

    /* Who uses a block of a checked buffer after its scope is stopped there. */
    CHECK(firsttouch_parse("guarded(keep=1000000)", &upstream) == FIRSTTOUCH_OK);
    CHECK(firsttouch_scratch_create(upstream, NULL, FIRSTTOUCH_CHECKED, &scratch) == FIRSTTOUCH_OK);
    char *kept = firsttouch_scratch_alloc(scratch, 64, 1000);
    firsttouch_mark mark = firsttouch_scratch_mark(scratch);
    char *late = firsttouch_scratch_alloc(scratch, 64, 1000);
    memset(late, 1, 1000);
    firsttouch_scratch_rewind(scratch, mark);
    memset(kept, 1, 1000);
#ifndef _WIN32
    pid_t child = fork();
    if (child == 0) {
        *(volatile char *)late = 1;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
#endif
    firsttouch_scratch_destroy(scratch);
    firsttouch_release(upstream);
}

static void check_pages(void) {
    firsttouch_allocator *pages;
    CHECK(firsttouch_parse("pages(numa=0, populate=True)", &pages) == FIRSTTOUCH_OK);
    size_t size = 1 << 20, page = page_size();
    char *block = firsttouch_malloc(pages, size);
    CHECK(block);
    firsttouch_receipt receipt;
    CHECK(firsttouch_get_receipt(block, &receipt) == FIRSTTOUCH_OK);
    CHECK(receipt.asked == size && receipt.mapped >= size && receipt.populate == FIRSTTOUCH_GRANTED);
    CHECK(firsttouch_get_receipt(&size, &receipt) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_get_receipt(NULL, &receipt) == FIRSTTOUCH_INVALID);
    firsttouch_allocator *plain;
    CHECK(firsttouch_parse("pool()", &plain) == FIRSTTOUCH_OK);
    void *other = firsttouch_malloc(plain, size);
    CHECK(firsttouch_get_receipt(other, &receipt) == FIRSTTOUCH_INVALID);
    CHECK(strstr(firsttouch_last_error(), "only blocks of pages() and numa() have one"));
    firsttouch_free(plain, other);
    firsttouch_release(plain);
    firsttouch_residency residency;
    CHECK(firsttouch_inspect(block, size, &residency, NULL, 0) == FIRSTTOUCH_OK);
    CHECK(residency.pages * page == size && residency.real == size && residency.absent == 0);
    firsttouch_free(pages, block);
    firsttouch_release(pages);
    CHECK(firsttouch_parse("pages(numa='bind:999')", &pages) == FIRSTTOUCH_EXPRESSION);
    CHECK(firsttouch_parse("pages(populate=1025)", &pages) == FIRSTTOUCH_EXPRESSION);
    SAYS("populate=1025: give");

    CHECK(firsttouch_parse("pages()", &pages) == FIRSTTOUCH_OK);
    block = firsttouch_malloc(pages, size);
    CHECK(firsttouch_inspect(block, size, &residency, NULL, 0) == FIRSTTOUCH_OK && residency.absent == size);
    block[5 * page] = 1;
    uint8_t states[256];
    CHECK(firsttouch_inspect(block, size, &residency, states, sizeof states) == FIRSTTOUCH_OK);
    CHECK(states[4] == FIRSTTOUCH_PAGE_ABSENT && states[5] != FIRSTTOUCH_PAGE_ABSENT);
    CHECK(firsttouch_inspect(block, size, NULL, NULL, 0) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_touch(block, size, true, 2) == FIRSTTOUCH_OK);
    CHECK(firsttouch_inspect(block, size, &residency, NULL, 0) == FIRSTTOUCH_OK && residency.absent == 0);
    CHECK(block[5 * page] == 1);
    firsttouch_migration migration;
    firsttouch_status moved = firsttouch_migrate(block, size, "0", &migration);
    CHECK(moved == FIRSTTOUCH_SYSTEM || (moved == FIRSTTOUCH_OK && migration.moved + migration.stayed == size));
    CHECK(firsttouch_migrate(block, size, "nowhere", NULL) == FIRSTTOUCH_INVALID);
    firsttouch_free(pages, block);
    firsttouch_release(pages);
    CHECK(firsttouch_inspect((void *)(UINTPTR_MAX - 10), 100, &residency, NULL, 0) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_inspect(NULL, 0, &residency, NULL, 0) == FIRSTTOUCH_OK && residency.pages == 0);
    char *closed = closed_pages(size);
    CHECK(firsttouch_touch(closed, size, true, 1) == FIRSTTOUCH_SYSTEM);
    CHECK(firsttouch_touch(closed, size, false, 1) == FIRSTTOUCH_SYSTEM);
    CHECK(firsttouch_touch(&size, SIZE_MAX, true, 0) == FIRSTTOUCH_INVALID);
    SAYS("beyond the end of the address space");
    firsttouch_residency nowhere;
    CHECK(firsttouch_inspect((void *)((uintptr_t)1 << 62), size, &nowhere, NULL, 0) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_touch((void *)((uintptr_t)1 << 62), size, true, 1) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_migrate(&size, SIZE_MAX / 2, "0", &migration) == FIRSTTOUCH_INVALID);

    firsttouch_node node;
    CHECK(firsttouch_get_node(-1, &node) == FIRSTTOUCH_OK && node.processors > 0 && node.number <= node.highest);
    CHECK(firsttouch_get_node(node.highest + 1, &node) == FIRSTTOUCH_INVALID);
    CHECK(firsttouch_get_node(-2, &node) == FIRSTTOUCH_INVALID);
    firsttouch_allocator *elsewhere;
    CHECK(firsttouch_parse("numa(1000)", &elsewhere) == FIRSTTOUCH_EXPRESSION);
    SAYS("there is no node 1000");
}

static void check_statistics(void) {
    firsttouch_allocator *pool;
    CHECK(firsttouch_parse("pool()", &pool) == FIRSTTOUCH_OK);
    void *block = firsttouch_malloc(pool, 10 << 20);
    memset(block, 1, 10 << 20);
    firsttouch_stats stats;
    CHECK(firsttouch_get_stats(pool, &stats) == FIRSTTOUCH_OK);
    CHECK(stats.in_use == 10 << 20 && stats.blocks == 1 && stats.allocations == 1);
    firsttouch_free(pool, block);
    CHECK(firsttouch_trim(pool) >= 10 << 20);
    firsttouch_release(pool);
    CHECK(firsttouch_get_stats(NULL, NULL) == FIRSTTOUCH_INVALID);
}

int main(void) {
    CHECK(strcmp(firsttouch_last_error(), "") == 0);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", FIRSTTOUCH_VERSION_MAJOR, FIRSTTOUCH_VERSION_MINOR,
             FIRSTTOUCH_VERSION_PATCH);
    CHECK(strcmp(version, firsttouch_version()) == 0);
    check_allocators();
    check_adaptors();
    check_scratch();
    check_pages();
    check_statistics();
    puts("done");
    return 0;
}
