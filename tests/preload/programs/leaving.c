/* Ends by _exit: at once, in a signal handler that interrupts malloc, in several threads together, or only in children; by
   exit in such a handler, while a thread waits for input, or with the last thread, which is not the first. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int number) { _exit(number == SIGALRM ? 4 : 5); }

static void leave_by_exit(int number) { exit(number == SIGALRM ? 7 : 5); }

static void use(size_t size) {
    char *volatile block = malloc(size);
    block[0] = 1;
    free(block);
}

static char *kept;

/* What destructors do. */
static void clean(void) {
    kept = realloc(kept, 600000);
    use(700000);
    free(kept);
}

static pthread_barrier_t together;

static void *leave_together(void *nothing) {
    pthread_barrier_wait(&together);
    _exit(9);
    return nothing;
}

static void *wait_for_input(void *nothing) {
    getchar();
    return nothing;
}

static void finish(void) {
    use(40 << 20);
    usleep(300000);
    printf(", finished");
}

/* Until there is a thread that gives memory back. */
static void *go_on(void *nothing) {
    for (int n = 1; n < 30; n++) {
        use(n << 20);
        kept = malloc(n << 20);
        kept[0] = 1;
    }
    usleep(300000);
    return nothing;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    printf("not flushed");
    for (int n = 0; n < 3; n++) use(300000);
    if (strcmp(how, "signal") == 0) {
        struct itimerval soon = {{0, 0}, {0, 2000}};
        signal(SIGALRM, leave);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (size_t size = 1;; size = size % 400000 + 7919) use(size);
    }
    if (strcmp(how, "exit") == 0) {
        struct itimerval soon = {{0, 0}, {0, 2000}};
        kept = malloc(500000);
        atexit(clean);
        signal(SIGALRM, leave_by_exit);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) use(1 << 20), use(3 << 20);
    }
    if (strcmp(how, "together") == 0) {
        pthread_t thread;
        pthread_barrier_init(&together, NULL, 4);
        for (int n = 0; n < 3; n++) pthread_create(&thread, NULL, leave_together, NULL);
        leave_together(NULL);
    }
    if (strcmp(how, "waiting") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_input, NULL);
        usleep(100000);
        return 10;
    }
    if (strcmp(how, "last") == 0) {
        pthread_t thread;
        atexit(finish);
        pthread_create(&thread, NULL, go_on, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(how, "children") == 0) {
        pid_t child = vfork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
        child = fork();
        if (child == 0) _Exit(0);
        waitpid(child, NULL, 0);
        return 6;
    }
    _exit(3);
}
