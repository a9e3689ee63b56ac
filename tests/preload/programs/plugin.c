/* A plug-in whose constructor waits for a thread that makes a small block large. */
#include "check.h"
#include <pthread.h>

static void *grow(void *unused) {
    char *block = malloc(100);
    CHECK((block = realloc(block, MIB)));
    free(block);
    return unused;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, grow, NULL) == 0 && pthread_join(thread, NULL) == 0);
}
