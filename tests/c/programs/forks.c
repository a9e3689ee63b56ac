/* Forks while another thread makes the first call of a kind: the same call works in the child. Registering for forks is
 * made slow, because a fork in the middle of it is what a child may wait for for ever. */
#include <dlfcn.h>
#include <firsttouch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const EXPRESSIONS[] = {"pool()", "pages(numa=0)", "mimalloc()", "jemalloc()", "guarded()"};
enum { KINDS = sizeof EXPRESSIONS / sizeof *EXPRESSIONS, SLOW = 20000 };

static useconds_t pause_of_registrations;

/* The C library's function behind pthread_atfork(). */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *owner) {
    union {
        void *found;
        int (*call)(void (*)(void), void (*)(void), void (*)(void), void *);
    } next = {dlsym(RTLD_NEXT, "__register_atfork")};
    usleep(pause_of_registrations);
    int result = next.call(prepare, parent, child, owner);
    usleep(pause_of_registrations);
    return result;
}

static void *first_call(void *expression) {
    firsttouch_allocator *made;
    if (firsttouch_parse(expression, &made) == FIRSTTOUCH_OK) {
        firsttouch_free(made, firsttouch_malloc(made, 100000));
        firsttouch_release(made);
    }
    return NULL;
}

/* In a process that has not called the library yet: whether its child does not hang. */
static int try(const char *expression, unsigned delay) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, first_call, (void *)(uintptr_t)expression) != 0) return 0;
    if (pause_of_registrations != 0) usleep(SLOW * (delay % 7) / 2);
    else
        for (volatile unsigned n = 0; n < delay * 400; n++) {
        }
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        first_call((void *)(uintptr_t)expression);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    return status == 0;
}

int main(int count, char **words) {
    unsigned turns = count > 1 ? (unsigned)atoi(words[1]) : 20;
    for (unsigned turn = 0; turn < KINDS * turns; turn++) {
        const char *expression = EXPRESSIONS[turn % KINDS];
        pause_of_registrations = turn % 2 != 0 ? SLOW : 0;
        pid_t fresh = fork();
        if (fresh == 0) _exit(try(expression, turn / KINDS) ? 0 : 1);
        int status = 1;
        if (waitpid(fresh, &status, 0) != fresh || status != 0) {
            printf("%s hangs in the child (turn %u)\n", expression, turn);
            return 1;
        }
    }
    puts("done");
    return 0;
}
