/* Random requests from several threads, freed by others, with checks of content, and forks: `stress seed seconds`. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 4
#define SLOTS 64

struct slot {
    unsigned char *at;
    size_t size;
    unsigned char fill;
};

static struct slot slots[SLOTS];
static pthread_mutex_t locks[SLOTS];
static time_t end;

static size_t a_size(unsigned *seed) {
    static const size_t most[] = {1000, 100 * KIB, 160 * KIB, 600 * KIB, 3 * MIB, 12 * MIB};
    return (size_t)((double)rand_r(seed) / RAND_MAX * most[rand_r(seed) % 6]);
}

static int is_whole(struct slot *slot) {
    size_t middle = slot->size / 2, part = slot->size < 4096 ? slot->size : 4096;
    return all_are(slot->at, part, slot->fill) && all_are(slot->at + slot->size - part, part, slot->fill)
        && (slot->size == 0 || slot->at[middle] == slot->fill);
}

static void step(unsigned *seed) {
    int which = rand_r(seed) % SLOTS;
    struct slot *slot = &slots[which];
    pthread_mutex_lock(&locks[which]);
    if (slot->at) CHECK(is_whole(slot));
    size_t size = a_size(seed);
    int what = rand_r(seed) % 8;
    if (!slot->at || what < 3) {
        free(slot->at);
        if (what == 0) {
            slot->at = calloc(1, size);
            CHECK(slot->at && all_are(slot->at, size, 0));
        } else if (what == 1) {
            size_t align = (size_t)16 << rand_r(seed) % 18;
            CHECK(posix_memalign((void **)&slot->at, align, size) == 0 && (uintptr_t)slot->at % align == 0);
        } else {
            CHECK((slot->at = malloc(size)));
        }
        slot->size = size;
    } else if (what < 6) {
        size_t both = size < slot->size ? size : slot->size;
        unsigned char *moved = realloc(slot->at, size + 1);
        CHECK(moved && all_are(moved, both, slot->fill));
        slot->at = moved;
        slot->size = size + 1;
    } else {
        free(slot->at);
        slot->at = NULL;
    }
    if (slot->at) {
        CHECK(malloc_usable_size(slot->at) >= slot->size);
        memset(slot->at, slot->fill = (unsigned char)rand_r(seed), slot->size);
    }
    pthread_mutex_unlock(&locks[which]);
}

static void *work(void *seed) {
    while (time(NULL) < end) step(seed);
    return NULL;
}

static void in_child(unsigned seed) {
    alarm(120);
    for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&locks[i], NULL);
    for (int i = 0; i < SLOTS; i++) {
        free(slots[i].at);
        slots[i].at = NULL;
    }
    for (int i = 0; i < 200; i++) step(&seed);
    _exit(0);
}

int main(int count, char **words) {
    CHECK(count == 3);
    unsigned first = (unsigned)atoi(words[1]), seeds[THREADS];
    end = time(NULL) + atoi(words[2]);
    for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&locks[i], NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = first * 100 + (unsigned)i;
        CHECK(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0);
    }
    int forks = 0;
    while (time(NULL) < end) {
        /* Nobody else is between a request and its note then. */
        for (int i = 0; i < SLOTS; i++) pthread_mutex_lock(&locks[i]);
        pid_t child = fork();
        if (child == 0) in_child(first + (unsigned)forks);
        for (int i = 0; i < SLOTS; i++) pthread_mutex_unlock(&locks[i]);
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        forks++;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) free(slots[i].at);
    CHECK(forks > 0);
    puts("whole");
    return 0;
}
