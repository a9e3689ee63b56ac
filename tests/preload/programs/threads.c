/* How many threads does the process have: after little use, after much, in a forked child; and may it unshare? */
#include "check.h"
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

int main(void) {
    churn(MIB, 1000); /* few bytes, often */
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
