/* Forks in a signal handler, which may interrupt malloc or free: fork(2) may be called there. With an argument the pool's
   thread runs already. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 100, SIZE = 1 << 20 };
static const struct itimerval soon = {{0, 0}, {0, 300}};

static volatile sig_atomic_t forks, failures, in_child;

static void on_alarm(int number) {
    int status = 0;
    pid_t child = fork();
    (void)number;
    if (child == 0) {
        in_child = 1; /* and goes on with what was interrupted */
        return;
    }
    failures += waitpid(child, &status, 0) != child || status != 0;
    if (++forks < FORKS) setitimer(ITIMER_REAL, &soon, NULL);
}

/* What a child does with memory of its parent's, and its own. */
static int go_on(char *old) {
    char *fresh = calloc(3, SIZE), *moved = NULL;
    if (fresh == NULL || fresh[2 * SIZE] != 0) return 1;
    memset(fresh, 7, SIZE);
    moved = realloc(old, 3 * SIZE);
    if (moved == NULL || moved[SIZE - 1] != 5 || fresh[SIZE - 1] != 7) return 2;
    free(moved);
    free(fresh);
    return 0;
}

int main(int count, char **words) {
    (void)words;
    for (int turn = 0; count > 1 && turn < 20; turn++) free(memset(malloc(20 * SIZE), 1, 20 * SIZE));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    char *kept = memset(malloc(SIZE), 5, SIZE);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (forks < FORKS) {
        char *one = malloc(SIZE), *other = malloc(3 * SIZE);
        one[0] = other[0] = 1;
        free(one);
        free(other);
        if (in_child) _exit(go_on(kept));
    }
    printf("%d failures\n", (int)failures);
    return 0;
}
