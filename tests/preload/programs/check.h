/* What the programs share: a check that names its line, and readers of /proc. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                         \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Keeps the compiler from seeing that memory is not used. */
#define USED(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* A value of a file of /proc in its own unit, or -1. */
static inline long proc_value(const char *path, const char *name) {
    char line[256];
    long found = -1;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) found = atol(line + strlen(name));
    if (file) fclose(file);
    return found;
}

static inline long resident_kib(void) { return proc_value("/proc/self/status", "VmRSS:"); }
static inline long thread_count(void) { return proc_value("/proc/self/status", "Threads:"); }

static inline int all_are(const unsigned char *at, size_t size, unsigned char byte) {
    return size == 0 || (at[0] == byte && memcmp(at, at + 1, size - 1) == 0);
}
