/* The lower bound for a prefault: threads fault in fresh anonymous memory, in every way that the kernel offers. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define HUGE ((size_t)2 << 20)
#define CHUNK ((size_t)16 << 20)
#define MOST_THREADS 64

enum way { SLABS, CHUNKS, TOUCH, LAZY };

struct job {
    char *start;
    size_t size;
    int threads, way;
    atomic_size_t next;
    atomic_int failed;
};

struct worker {
    struct job *job;
    int number;
};

static void populate(struct job *job, size_t from, size_t len) {
    if (madvise(job->start + from, len, MADV_POPULATE_WRITE) != 0) job->failed = 1;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct job *job = worker->job;
    size_t slab = (job->size / job->threads + HUGE - 1) / HUGE * HUGE, from = slab * worker->number;
    size_t len = from >= job->size ? 0 : from + slab > job->size ? job->size - from : slab;
    if (job->way == SLABS && len) populate(job, from, len);
    if (job->way == TOUCH)
        for (size_t at = from; at < from + len; at += 4096) ((volatile char *)job->start)[at] = 0;
    if (job->way == CHUNKS)
        while ((from = atomic_fetch_add(&job->next, CHUNK)) < job->size)
            populate(job, from, job->size - from < CHUNK ? job->size - from : CHUNK);
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Seconds to map `size` bytes and fault them in and, with `written`, to write all of them afterwards. Negative on
   failure. */
double prefault(size_t size, int huge, int threads, int way, int written) {
    double began = now();
    char *all = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || threads > MOST_THREADS) return -1;
    struct job job = {(char *)(((uintptr_t)all + HUGE - 1) / HUGE * HUGE), size, threads, way, 0, 0};
    if (huge && madvise(job.start, size, MADV_HUGEPAGE) != 0) job.failed = 1;
    pthread_t ids[MOST_THREADS];
    struct worker workers[MOST_THREADS];
    for (int number = 0; number < threads; number++) {
        workers[number] = (struct worker){&job, number};
        if (number > 0) pthread_create(&ids[number], NULL, work, &workers[number]);
    }
    work(&workers[0]);
    for (int number = 1; number < threads; number++) pthread_join(ids[number], NULL);
    if (written)
        for (size_t at = 0; at < size; at += sizeof(double)) *(volatile double *)(job.start + at) = 1.0;
    double took = now() - began;
    munmap(all, size + HUGE);
    return job.failed ? -1 : took;
}
