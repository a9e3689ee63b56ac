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
extern "C" {
#define FIRSTTOUCH_NOEXCEPT noexcept
#else
#define FIRSTTOUCH_NOEXCEPT
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
 *     pages(huge="thp", populate=True)  limited(pool(), "4 GiB")
 *     guarded(side="before")            mimalloc()  jemalloc()  malloc()  calloc()  aligned(4096)
 *
 * The reference of allocators has all of them, with their options. */
firsttouch_status firsttouch_parse(const char *expression, firsttouch_allocator **allocator) FIRSTTOUCH_NOEXCEPT;

/* Creates an allocator on an existing one: an expression without its upstream, such as "limited(budget='1 GiB')". */
firsttouch_status firsttouch_parse_over(const char *expression, firsttouch_allocator *upstream,
                                        firsttouch_allocator **allocator) FIRSTTOUCH_NOEXCEPT;

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

/* Changes the size of a block, which may move to another multiple of 64 bytes; content is kept up to the smaller size.
 * After a failure the block is as it was. NULL is allocated. A size of 0 is served as 1: nothing is freed. */
void *firsttouch_realloc(firsttouch_allocator *allocator, void *block, size_t size) FIRSTTOUCH_NOEXCEPT;

/* Frees a block; NULL is ignored. errno stays. */
void firsttouch_free(firsttouch_allocator *allocator, void *block) FIRSTTOUCH_NOEXCEPT;

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

/* Creates a buffer: of a fixed size on the caller's storage, which must live as long; or, where `storage` is NULL, one
 * that grows, in chunks from an allocator (NULL: the C library) of which the first has `size` bytes (0: 4 KiB) and each
 * further one is twice as large, up to 16 MiB. With FIRSTTOUCH_CHECKED as the size each block is requested of the
 * allocator and given back by the rewind, so that guarded(keep='1 MiB'), or a sanitizer's malloc, stops who uses it
 * afterwards. */
#define FIRSTTOUCH_CHECKED SIZE_MAX
firsttouch_status firsttouch_scratch_create(firsttouch_allocator *upstream, void *storage, size_t size,
                                            firsttouch_scratch **scratch) FIRSTTOUCH_NOEXCEPT;
/* Frees a buffer and all that was allocated in it; NULL is ignored. */
void firsttouch_scratch_destroy(firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;

/* Frees all that was allocated, and returns what exceeds 64 MiB to the upstream. Marks made before must not be used any
 * more. */
void firsttouch_scratch_reset(firsttouch_scratch *scratch) FIRSTTOUCH_NOEXCEPT;

/* The slow parts of the two functions below: not to be called directly. */
void *firsttouch_scratch_grow(firsttouch_scratch *scratch, size_t alignment, size_t size) FIRSTTOUCH_NOEXCEPT;
void firsttouch_scratch_rewind_far(firsttouch_scratch *scratch, firsttouch_mark mark) FIRSTTOUCH_NOEXCEPT;

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
        firsttouch_scratch_rewind_far(scratch, mark);
}

/* ---- Placement ------------------------------------------------------------------------------------------------- */

/* Makes the pages of some memory real, by `threads` threads (0: as many as suit), as by a write that changes nothing,
 * or as by a read. */
firsttouch_status firsttouch_touch(void *address, size_t size, bool write, int threads) FIRSTTOUCH_NOEXCEPT;

/* Moves pages to where a NUMA policy says, such as "0", "bind:0-1", "preferred:1" or "interleave:all"; `result` may be
 * NULL. */
typedef struct firsttouch_migration {
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

/* What was granted to a block of pages() with sizes of huge pages, numa, populate, lock or strict: there is
 * none where nothing was asked that the system could refuse. */
typedef struct firsttouch_receipt {
    uint64_t asked;     /* bytes requested */
    uint64_t mapped;    /* bytes mapped */
    uint64_t page_size; /* of explicit huge pages; otherwise of base pages, some of which may be on huge ones */
    int numa;           /* each of these a firsttouch_outcome */
    int populate;
    int lock;
    int threads; /* that made the pages real */
} firsttouch_receipt;
firsttouch_status firsttouch_get_receipt(const void *block, firsttouch_receipt *receipt) FIRSTTOUCH_NOEXCEPT;

/* A node of the machine; its memory is 0 where it has none. */
typedef struct firsttouch_node {
    int number;
    int highest; /* node that is online */
    int processors;
    uint64_t total;
    uint64_t free;
    uint64_t available; /* free, or page cache that can be reclaimed */
} firsttouch_node;

/* Describes a node; -1 is that of the processor that this thread runs on. */
firsttouch_status firsttouch_get_node(int number, firsttouch_node *node) FIRSTTOUCH_NOEXCEPT;

/* ---- What is behind memory ------------------------------------------------------------------------------------- */

#define FIRSTTOUCH_UNKNOWN UINT64_MAX /* the kernel does not tell */

/* Bytes of whole pages, by what is behind them. */
typedef struct firsttouch_residency {
    uint64_t pages;     /* their number */
    uint64_t absent;    /* nothing: the first touch faults them in */
    uint64_t zero_page; /* the kernel's shared page of zeros: read, but never written */
    uint64_t small;     /* memory on base pages */
    uint64_t huge;      /* memory on huge pages */
    uint64_t real;      /* memory, on pages of any size */
    uint64_t swapped;
} firsttouch_residency;

typedef enum firsttouch_page_state {
    FIRSTTOUCH_PAGE_ABSENT = 0,
    FIRSTTOUCH_PAGE_ZERO = 1,
    FIRSTTOUCH_PAGE_SMALL = 2,
    FIRSTTOUCH_PAGE_HUGE = 3,
    FIRSTTOUCH_PAGE_SWAPPED = 4,
    FIRSTTOUCH_PAGE_REAL = 5,
    FIRSTTOUCH_PAGE_PRESENT = 6, /* memory, or the page of zeros */
    FIRSTTOUCH_PAGE_UNKNOWN = 7
} firsttouch_page_state;

/* Tells what is behind memory, and writes the state of each of its pages, a byte for each, up to `capacity`; `states` may
 * be NULL. No page is touched to find out. */
firsttouch_status firsttouch_inspect(const void *address, size_t size, firsttouch_residency *residency, uint8_t *states,
                                     size_t capacity) FIRSTTOUCH_NOEXCEPT;

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/* In bytes, unless stated otherwise; zeros where an allocator keeps no count. */
typedef struct firsttouch_stats {
    uint64_t in_use;                    /* requested by live blocks */
    uint64_t active;                    /* size of the spans that hold them */
    uint64_t idle;                      /* kept for later requests */
    uint64_t mapped;                    /* address space mapped */
    uint64_t retained;                  /* of it, without memory behind it */
    uint64_t peak_in_use;               /* with several threads accurate to 1 MiB per processor */
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
    uint64_t refaulted_bytes;           /* of purged_bytes, what was needed again: purged too early */
    uint64_t failures;                  /* number of requests that failed */
} firsttouch_stats;
firsttouch_status firsttouch_get_stats(const firsttouch_allocator *allocator, firsttouch_stats *stats)
    FIRSTTOUCH_NOEXCEPT;

/* Returns what is kept idle to the operating system now; returns how many bytes that were. */
size_t firsttouch_trim(firsttouch_allocator *allocator) FIRSTTOUCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
