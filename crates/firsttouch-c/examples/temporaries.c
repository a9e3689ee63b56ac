/* The classic experiment with temporaries: a loop that allocates, fills and frees an array in each step, first with
 * malloc, then with a pool.
 *
 * malloc returns each large array to the kernel, which clears every page again for the next one. The pool keeps it.
 *
 *     cc temporaries.c $(pkg-config --cflags --libs firsttouch) -o temporaries && ./temporaries
 */
#define _POSIX_C_SOURCE 200809L
#include <firsttouch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ITEMS = 8 << 20, STEPS = 20 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* A step of any array program: x * 2 + 1, with a temporary for the product. */
static double step(firsttouch_allocator *allocator, int pooled, const double *x) {
    double *temporary = pooled ? firsttouch_malloc(allocator, ITEMS * sizeof *x) : malloc(ITEMS * sizeof *x);
    if (!temporary) {
        fprintf(stderr, "%s\n", pooled ? firsttouch_last_error() : "malloc failed");
        exit(1);
    }
    for (size_t i = 0; i < ITEMS; i++) temporary[i] = 2 * x[i];
    double sum = 0;
    for (size_t i = 0; i < ITEMS; i++) sum += temporary[i] + 1;
    if (pooled)
        firsttouch_free(allocator, temporary);
    else
        free(temporary);
    return sum;
}

int main(void) {
    firsttouch_allocator *pool;
    if (firsttouch_parse("pool()", &pool) != FIRSTTOUCH_OK) {
        fprintf(stderr, "%s\n", firsttouch_last_error());
        return 1;
    }
    double *x = firsttouch_calloc(pool, ITEMS, sizeof *x);
    if (!x) return 1;
    for (int pooled = 0; pooled < 2; pooled++) {
        long faults_before = faults();
        double begin = seconds(), sum = 0;
        for (int n = 0; n < STEPS; n++) sum += step(pool, pooled, x);
        printf("%-6s %6.3f s %7ld page faults, sum %.0f\n", pooled ? "pool" : "malloc", seconds() - begin,
               faults() - faults_before, sum);
    }
    firsttouch_free(pool, x);
    firsttouch_release(pool);
    return 0;
}
