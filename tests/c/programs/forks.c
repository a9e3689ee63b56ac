/* Forks while another thread makes the first call of a kind: the same call works in the child. */
#include <firsttouch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const EXPRESSIONS[] = {"pool()", "pages(numa=0)", "mimalloc()", "jemalloc()", "guarded(pool())"};
enum { KINDS = sizeof EXPRESSIONS / sizeof *EXPRESSIONS, TURNS = 40 };

static void *first_call(void *expression) {
    firsttouch_allocator *made;
    if (firsttouch_parse(expression, &made) == FIRSTTOUCH_OK) {
        firsttouch_free(made, firsttouch_malloc(made, 100000));
        firsttouch_release(made);
    }
    return NULL;
}

/* In a process that has not called the library yet; false where the child hangs. */
static int try(const char *expression, unsigned delay) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, first_call, (void *)(uintptr_t)expression) != 0) return 0;
    for (volatile unsigned n = 0; n < delay; n++) {
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        first_call((void *)(uintptr_t)expression);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    return status == 0;
}

int main(void) {
    for (int turn = 0; turn < KINDS * TURNS; turn++) {
        pid_t fresh = fork();
        if (fresh == 0) _exit(try(EXPRESSIONS[turn % KINDS], (unsigned)turn * 2000) ? 0 : 1);
        int status = 1;
        if (waitpid(fresh, &status, 0) != fresh || status != 0) {
            printf("%s hangs in the child (turn %d)\n", EXPRESSIONS[turn % KINDS], turn);
            return 1;
        }
    }
    puts("done");
    return 0;
}
