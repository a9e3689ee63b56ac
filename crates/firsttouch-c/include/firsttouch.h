/* firsttouch.h - the memory behind arrays, for C11 and C++11.
 *
 * Allocators that compose, scratch buffers, placement with receipts, and what is behind each page.
 *
 *     firsttouch_allocator *pool;
 *     if (firsttouch_parse("limited(pool(), '4 GiB')", &pool) != FIRSTTOUCH_OK) {
 *         fprintf(stderr, "%s\n", firsttouch_last_error());
 *         return 1;
 *     }
 *     double *x = firsttouch_calloc(pool, 1000000, sizeof *x);
 *     ...
 *     firsttouch_free(pool, x);
 *     firsttouch_release(pool);
 *
 * Compile with `cc program.c $(pkg-config --cflags --libs firsttouch)`, or find_package(firsttouch) in CMake.
 *
 * Conventions
 *
 *   - A function that can fail returns a firsttouch_status, or NULL where it returns memory. The reason is then in
 *     firsttouch_last_error(), a text of the calling thread. No function throws, exits or aborts.
 *   - Every function but those of scratch buffers may be called from any thread at any time, and in a child after
 *     fork().
 *   - Wherever an allocator is expected, NULL stands for one pool() that the whole process shares.
 *   - Structures begin with struct_size, so that programs compiled against an older header keep working. Initialize
 *     results with FIRSTTOUCH_INIT, and options with the macro behind their declaration, which sets all defaults:
 *     `firsttouch_pool_options options = FIRSTTOUCH_POOL_OPTIONS; options.max_idle = 1 << 30;`
 *   - Sizes are in bytes, times in seconds. An alignment is a power of two up to 1 GiB; blocks are aligned to 64 bytes
 *     unless more is requested.
 */
#ifndef FIRSTTOUCH_H
#define FIRSTTOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIRSTTOUCH_VERSION_MAJOR 0
#define FIRSTTOUCH_VERSION_MINOR 1
#define FIRSTTOUCH_VERSION_PATCH 0

#ifdef __cplusplus
template <class T>
inline T firsttouch_init() noexcept {
    T value = T();
    value.struct_size = sizeof(T);
    return value;
}
extern "C" {
#define FIRSTTOUCH_NOEXCEPT noexcept
#define FIRSTTOUCH_INIT(type) (firsttouch_init<type>())
#else
#define FIRSTTOUCH_NOEXCEPT
/* FIRSTTOUCH_INIT(firsttouch_stats): a structure for results. */
#define FIRSTTOUCH_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

typedef enum firsttouch_status {
    FIRSTTOUCH_OK = 0,
    FIRSTTOUCH_NO_MEMORY = 1,   /* the message names the limit that was exceeded */
    FIRSTTOUCH_INVALID = 2,     /* an argument is out of range */
    FIRSTTOUCH_EXPRESSION = 3,  /* an expression cannot be parsed; the message says where */
    FIRSTTOUCH_UNSUPPORTED = 4, /* not on this machine, or not by this allocator */
    FIRSTTOUCH_SYSTEM = 5,      /* the operating system refused */
    FIRSTTOUCH_INTERNAL = 6     /* a fault of this library */
} firsttouch_status;

/* Returns why the last call in this thread failed: "" before the first failure. Valid until the next failure in this
 * thread. */
const char *firsttouch_last_error(void) FIRSTTOUCH_NOEXCEPT;

/* Returns the version of the library, such as "0.1.0". */
const char *firsttouch_version(void) FIRSTTOUCH_NOEXCEPT;

/* ---- Allocators ------------------------------------------------------------------------------------------------ */

/* A reference to an allocator. Blocks do not hold references: release the last one after the last block was freed.
 * Blocks that are live then stay valid, but their memory is lost. */
typedef struct firsttouch_allocator firsttouch_allocator;

/* Creates the allocator that an expression describes, as on firsttouch's command line:
 *
 *     pool()                            pool(max_idle="1 GiB", decay=10)
 *     pages(huge="thp", populate=True)  limited(tracked(pool()), "4 GiB")
 *     guarded(pool(), side="before")    mimalloc()  jemalloc()  malloc()  calloc()  aligned(4096)
 */
firsttouch_status firsttouch_parse(const char *expression, firsttouch_allocator **allocator) FIRSTTOUCH_NOEXCEPT;

/* A pool: freed blocks are kept for later requests, and returned to the operating system once they stay idle. */
typedef struct firsttouch_pool_options {
    size_t struct_size;
    firsttouch_allocator *upstream; /* where its memory comes from; NULL: pages of the operating system */
    size_t max_idle;                /* bytes kept idle at the most; SIZE_MAX: the pool decides */
    double decay;                   /* seconds that memory stays idle; INFINITY: for ever; negative: the pool decides */
} firsttouch_pool_options;
#define FIRSTTOUCH_POOL_OPTIONS {sizeof(firsttouch_pool_options), NULL, SIZE_MAX, -1.0}
firsttouch_status firsttouch_pool(const firsttouch_pool_options *options, firsttouch_allocator **allocator)
    FIRSTTOUCH_NOEXCEPT;

/* Pages of the operating system, each block a mapping of its own, whose receipt tells what was granted. */
typedef struct firsttouch_pages_options {
    size_t struct_size;
    const char *huge; /* "thp", or sizes of explicit huge pages in order of preference: "1G,2M"; NULL: base pages */
    const char *numa; /* "0", "bind:0-1", "preferred:1", "interleave:all", "local"; NULL: no policy */
    int populate;     /* threads that make the pages real at once; 0: none; negative: as many as suit */
    bool lock;        /* whether the pages are locked into memory */
    bool strict;      /* whether what is not granted is an error */
} firsttouch_pages_options;
#define FIRSTTOUCH_PAGES_OPTIONS {sizeof(firsttouch_pages_options), NULL, NULL, 0, false, false}
firsttouch_status firsttouch_pages(const firsttouch_pages_options *options, firsttouch_allocator **allocator)
    FIRSTTOUCH_NOEXCEPT;

/* Fails requests that would bring the bytes in use beyond a budget. */
firsttouch_status firsttouch_limited(firsttouch_allocator *upstream, size_t budget, firsttouch_allocator **allocator)
    FIRSTTOUCH_NOEXCEPT;

/* Counts blocks and bytes. */
firsttouch_status firsttouch_tracked(firsttouch_allocator *upstream, firsttouch_allocator **allocator)
    FIRSTTOUCH_NOEXCEPT;

/* Places an inaccessible page behind each block, or before it: an overrun ends the program where it happens. Of the
 * blocks that were freed last, `keep` bytes stay inaccessible. */
firsttouch_status firsttouch_guarded(firsttouch_allocator *upstream, bool before, size_t keep,
                                     firsttouch_allocator **allocator) FIRSTTOUCH_NOEXCEPT;

/* Fills new and freed blocks with bytes from 0 to 255; -1 leaves them as they are. */
firsttouch_status firsttouch_filled(firsttouch_allocator *upstream, int on_allocate, int on_free,
                                    firsttouch_allocator **allocator) FIRSTTOUCH_NOEXCEPT;

/* An allocator made of functions, which any thread may call, which do not throw, and which must stay callable as long
 * as a block lives. `free` is given the size that was requested. `calloc` and `realloc` may be NULL. */
typedef struct firsttouch_functions {
    size_t struct_size;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block, size_t size);
    void *context;
} firsttouch_functions;
firsttouch_status firsttouch_from_functions(const firsttouch_functions *functions, firsttouch_allocator **allocator)
    FIRSTTOUCH_NOEXCEPT;

/* Adds a reference; returns the allocator. */
firsttouch_allocator *firsttouch_retain(firsttouch_allocator *allocator) FIRSTTOUCH_NOEXCEPT;

/* Gives a reference up. The allocator ends with its last one. NULL is ignored. */
void firsttouch_release(firsttouch_allocator *allocator) FIRSTTOUCH_NOEXCEPT;

/* Writes the expression that creates the allocator, defaults shown, cut to `capacity` bytes with the zero at its end;
 * returns its length, as snprintf does. */
size_t firsttouch_describe(const firsttouch_allocator *allocator, char *buffer, size_t capacity) FIRSTTOUCH_NOEXCEPT;

/* ---- Blocks ---------------------------------------------------------------------------------------------------- */

/* Each returns NULL with errno set (ENOMEM, or EINVAL for an alignment) where it fails. A size of 0 is served as 1. A
 * block is freed by the allocator that it came from. */
void *firsttouch_malloc(firsttouch_allocator *allocator, size_t size) FIRSTTOUCH_NOEXCEPT;
void *firsttouch_calloc(firsttouch_allocator *allocator, size_t count, size_t size) FIRSTTOUCH_NOEXCEPT;
void *firsttouch_aligned_alloc(firsttouch_allocator *allocator, size_t alignment, size_t size) FIRSTTOUCH_NOEXCEPT;
void *firsttouch_aligned_calloc(firsttouch_allocator *allocator, size_t alignment, size_t size) FIRSTTOUCH_NOEXCEPT;

/* Changes the size of a block, which may move; content is kept up to the smaller size. After a failure the block is as
 * it was. NULL is allocated. A size of 0 is served as 1: nothing is freed. The second form keeps an alignment. */
void *firsttouch_realloc(firsttouch_allocator *allocator, void *block, size_t size) FIRSTTOUCH_NOEXCEPT;
void *firsttouch_aligned_realloc(firsttouch_allocator *allocator, void *block, size_t alignment, size_t size)
    FIRSTTOUCH_NOEXCEPT;

/* Changes the size of a block where it is; returns whether that was possible. */
bool firsttouch_resize_in_place(firsttouch_allocator *allocator, void *block, size_t size) FIRSTTOUCH_NOEXCEPT;

/* Frees a block; NULL is ignored. errno stays. */
void firsttouch_free(firsttouch_allocator *allocator, void *block) FIRSTTOUCH_NOEXCEPT;

/* Returns how many bytes of a block may be used: at least those requested. */
size_t firsttouch_usable_size(firsttouch_allocator *allocator, const void *block) FIRSTTOUCH_NOEXCEPT;

/* ---- Scratch buffers ------------------------------------------------------------------------------------------- */

/* Memory that is used again when a scope ends: allocation moves a pointer, and a rewind moves it back.
 *
 *     firsttouch_mark mark = firsttouch_scratch_mark(scratch);
 *     double *work = firsttouch_scratch_alloc(scratch, 64, n * sizeof *work);
 *     ...
 *     firsttouch_scratch_rewind(scratch, mark);   // the memory of `work` is free again
 *
 * A buffer is used by one thread at a time. */
typedef struct firsttouch_scratch {
    char *top;       /* of the free part of the current chunk */
    uintptr_t floor; /* of it; nothing lower is ours */
    uint64_t depth;  /* which chunk that is */
    /* more follows: buffers are made by the functions below */
} firsttouch_scratch;

typedef struct firsttouch_mark {
    char *top;
    uint64_t depth;
} firsttouch_mark;

typedef struct firsttouch_scratch_options {
    size_t struct_size;
    firsttouch_allocator *upstream; /* where chunks come from; NULL: the C library */
    size_t first_chunk;             /* each further chunk is twice as large; 0: 4 KiB */
    size_t max_chunk;               /* the largest; 0: 16 MiB */
    size_t keep;                    /* bytes that a reset may keep; 0: 64 MiB */
} firsttouch_scratch_options;
#define FIRSTTOUCH_SCRATCH_OPTIONS {sizeof(firsttouch_scratch_options), NULL, 0, 0, 0}

/* Creates a buffer that grows. */
firsttouch_status firsttouch_scratch_create(const firsttouch_scratch_options *options, firsttouch_scratch **scratch)
    FIRSTTOUCH_NOEXCEPT;
/* Creates a buffer of a fixed size on the caller's storage, which must live as long. */
firsttouch_status firsttouch_scratch_over(void *storage, size_t size, firsttouch_scratch **scratch)
    FIRSTTOUCH_NOEXCEPT;
/* Frees a buffer and all that was allocated in it; NULL is ignored. */
void firsttouch_scratch_destroy(firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;

/* Frees all that was allocated; marks made before must not be used any more. */
void firsttouch_scratch_reset(firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;
/* Returns memory that is not in use to the upstream. */
void firsttouch_scratch_trim(firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;
/* Bytes in use, alignment gaps included; bytes held. */
size_t firsttouch_scratch_used(const firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;
size_t firsttouch_scratch_capacity(const firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;

/* The slow parts of the two functions below: not to be called directly. */
void *firsttouch_scratch_grow(firsttouch_scratch *scratch, size_t alignment, size_t size) FIRSTTOUCH_NOEXCEPT;
void firsttouch_scratch_rewind_far(firsttouch_scratch *scratch, char *top, uint64_t depth) FIRSTTOUCH_NOEXCEPT;

/* Allocates `size` bytes, uninitialized, at a multiple of `alignment`. NULL, with errno set as by firsttouch_malloc(),
 * where that fails. */
static inline void *firsttouch_scratch_alloc(firsttouch_scratch *scratch, size_t alignment, size_t size)
    FIRSTTOUCH_NOEXCEPT {
    uintptr_t top = (uintptr_t)scratch->top;
    uintptr_t start = (top - size) & ~(alignment - 1);
    if (size == 0 || size > top || start < scratch->floor || (alignment & (alignment - 1)) != 0)
        return firsttouch_scratch_grow(scratch, alignment, size);
    return scratch->top -= top - start;
}

/* Marks what is allocated now. */
static inline firsttouch_mark firsttouch_scratch_mark(const firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT {
    firsttouch_mark mark = {scratch->top, scratch->depth};
    return mark;
}

/* Frees all that was allocated since the mark. Marks are undone in reverse order; one may be rewound to again. */
static inline void firsttouch_scratch_rewind(firsttouch_scratch *scratch, firsttouch_mark mark) FIRSTTOUCH_NOEXCEPT {
    if (scratch->depth == mark.depth)
        scratch->top = mark.top;
    else
        firsttouch_scratch_rewind_far(scratch, mark.top, mark.depth);
}

/* ---- Placement ------------------------------------------------------------------------------------------------- */

/* Makes the pages of some memory real, by `threads` threads (0: as many as suit), as by a write that changes nothing,
 * or as by a read. */
firsttouch_status firsttouch_touch(void *address, size_t size, bool write, int threads) FIRSTTOUCH_NOEXCEPT;

/* Moves memory onto huge pages now; `*huge` receives the bytes that are on them. */
firsttouch_status firsttouch_collapse(void *address, size_t size, size_t *huge) FIRSTTOUCH_NOEXCEPT;

/* Moves pages to where a NUMA policy says, as in firsttouch_pages_options. */
typedef struct firsttouch_migration {
    size_t struct_size;
    uint64_t moved;  /* bytes that moved */
    uint64_t stayed; /* bytes that were there before */
    uint64_t absent; /* bytes that are not real yet */
    uint64_t failed; /* bytes that could not be moved */
} firsttouch_migration;
firsttouch_status firsttouch_migrate(void *address, size_t size, const char *numa, firsttouch_migration *result)
    FIRSTTOUCH_NOEXCEPT;

typedef enum firsttouch_outcome {
    FIRSTTOUCH_NOT_ASKED = 0,
    FIRSTTOUCH_GRANTED = 1,
    FIRSTTOUCH_PARTLY = 2,
    FIRSTTOUCH_REFUSED = 3
} firsttouch_outcome;

/* What was granted to a block of firsttouch_pages() with sizes of huge pages, numa, populate, lock or strict: there is
 * none where nothing was asked that the system could refuse. */
typedef struct firsttouch_receipt {
    size_t struct_size;
    uint64_t asked;     /* bytes requested */
    uint64_t mapped;    /* bytes mapped */
    uint64_t page_size; /* of explicit huge pages; otherwise of base pages, some of which may be on huge ones */
    int numa;           /* each of these a firsttouch_outcome */
    int populate;
    int lock;
    int threads; /* that made the pages real */
} firsttouch_receipt;
firsttouch_status firsttouch_get_receipt(const firsttouch_allocator *allocator, const void *block,
                                         firsttouch_receipt *receipt) FIRSTTOUCH_NOEXCEPT;

/* The node of the processor that this thread runs on, and the highest one that is online. */
int firsttouch_current_node(void) FIRSTTOUCH_NOEXCEPT;
int firsttouch_highest_node(void) FIRSTTOUCH_NOEXCEPT;

/* A node of the machine; its memory is 0 where it has none. */
typedef struct firsttouch_node {
    size_t struct_size;
    uint64_t total;
    uint64_t free;
    uint64_t available; /* free, or page cache that can be reclaimed */
    int processors;
} firsttouch_node;
firsttouch_status firsttouch_get_node(int number, firsttouch_node *node) FIRSTTOUCH_NOEXCEPT;

/* ---- What is behind memory ------------------------------------------------------------------------------------- */

#define FIRSTTOUCH_UNKNOWN UINT64_MAX /* the kernel does not tell */

/* Bytes of whole pages, by what is behind them. No page is touched to find out. */
typedef struct firsttouch_residency {
    size_t struct_size;
    uint64_t pages;     /* their number */
    uint64_t absent;    /* nothing: the first touch faults them in */
    uint64_t zero_page; /* the kernel's shared page of zeros: read, but never written */
    uint64_t small;     /* memory on base pages */
    uint64_t huge;      /* memory on huge pages */
    uint64_t real;      /* memory, on pages of any size */
    uint64_t swapped;
    uint64_t cached; /* in the page cache, but not touched by this process */
    uint64_t locked;
} firsttouch_residency;
firsttouch_status firsttouch_inspect(const void *address, size_t size, firsttouch_residency *residency)
    FIRSTTOUCH_NOEXCEPT;

typedef enum firsttouch_page_state {
    FIRSTTOUCH_PAGE_ABSENT = 0,
    FIRSTTOUCH_PAGE_ZERO = 1,
    FIRSTTOUCH_PAGE_SMALL = 2,
    FIRSTTOUCH_PAGE_HUGE = 3,
    FIRSTTOUCH_PAGE_SWAPPED = 4,
    FIRSTTOUCH_PAGE_CACHED = 5,
    FIRSTTOUCH_PAGE_REAL = 6,
    FIRSTTOUCH_PAGE_PRESENT = 7, /* memory, or the page of zeros */
    FIRSTTOUCH_PAGE_UNKNOWN = 8
} firsttouch_page_state;

/* Writes the state of each page, a byte for each, up to `capacity`; `*pages` receives their number. */
firsttouch_status firsttouch_pagemap(const void *address, size_t size, uint8_t *states, size_t capacity,
                                     size_t *pages) FIRSTTOUCH_NOEXCEPT;

size_t firsttouch_page_size(void) FIRSTTOUCH_NOEXCEPT;

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/* In bytes, unless stated otherwise; zeros where an allocator keeps no count. */
typedef struct firsttouch_stats {
    size_t struct_size;
    uint64_t in_use;                    /* requested by live blocks */
    uint64_t active;                    /* size of the spans that hold them */
    uint64_t idle;                      /* kept for later requests */
    uint64_t mapped;                    /* address space mapped */
    uint64_t retained;                  /* of it, without memory behind it */
    uint64_t peak_in_use;               /* accurate to 1 MiB per processor */
    uint64_t peak_active;               /* the same */
    uint64_t peak_held;                 /* of active and idle together */
    uint64_t blocks;                    /* number of live blocks */
    uint64_t allocations;               /* number of requests served */
    uint64_t recycled;                  /* number of those served from recycled memory alone */
    uint64_t allocated_bytes;           /* requested by all requests served */
    uint64_t recycled_bytes;            /* the part that was recycled */
    uint64_t first_touched_small_bytes; /* the part that was fresh, on base pages */
    uint64_t first_touched_huge_bytes;  /* the part for which huge pages were requested */
    uint64_t purged_bytes;              /* returned to the operating system */
    uint64_t failures;                  /* number of requests that failed */
    uint64_t refaulted_bytes;           /* of purged_bytes, what was soon faulted in again: purged too early */
} firsttouch_stats;
firsttouch_status firsttouch_get_stats(const firsttouch_allocator *allocator, firsttouch_stats *stats)
    FIRSTTOUCH_NOEXCEPT;

/* Returns what is kept idle to the operating system now; returns how many bytes that were. */
size_t firsttouch_trim(firsttouch_allocator *allocator) FIRSTTOUCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
