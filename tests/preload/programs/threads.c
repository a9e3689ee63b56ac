/* How many threads does the process have: after little use, after much, in a forked child; and may it unshare?
   With an argument: beside a thread of the program's own, after little use that keeps its memory, and in a child after as
   much: it does not have that thread. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static void churn(size_t size, int rounds) {
    for (int i = 0; i < rounds; i++) {
        char *p = malloc(size);
        memset(p, 1, size);
        USED(p);
        free(p);
    }
}

static void keep(void) {
    for (int i = 0; i < 3; i++) USED(memset(malloc(3 * MIB), 1, 3 * MIB));
}

static void *sleeper(void *unused) {
    pause();
    return unused;
}

int main(int count, char **words) {
    (void)words;
    if (count > 1) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleeper, NULL) != 0) return 1;
        keep();
        long beside = thread_count();
        pid_t forked = fork();
        if (forked == 0) {
            keep();
            _exit((int)thread_count());
        }
        int its;
        waitpid(forked, &its, 0);
        printf("%ld %d\n", beside, WEXITSTATUS(its));
        return 0;
    }
    churn(MIB, 1000); /* few bytes, often */
    churn(6 * MIB, 1);
    churn(MIB, 1);
    churn(MIB + MIB / 4, 1);
    long little = thread_count();
    pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
    int status;
    waitpid(child, &status, 0);
    int may = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
    churn(20 * MIB, 20);
    long much = thread_count();
    child = fork();
    if (child == 0) {
        churn(MIB, 10);
        _exit((int)thread_count());
    }
    int of_child;
    waitpid(child, &of_child, 0);
    printf("%ld %ld %d %d %d\n", little, much, WEXITSTATUS(of_child), WEXITSTATUS(status), may);
    return 0;
}
