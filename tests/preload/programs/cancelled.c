/* A thread that is to be cancelled forks first, while memory is given back in another one. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

static void *cancelled(void *unused) {
    CHECK(pthread_cancel(pthread_self()) == 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    return unused;
}

int main(void) {
    alarm(120);
    USED(memset(malloc(8 * MIB), 1, 8 * MIB)); /* enough for the pool's thread, once there is another one */
    for (int i = 0; i < 200; i++) {
        void *block = malloc(3 * MIB);
        CHECK(block);
        memset(block, 1, 3 * MIB);
        free(block);
        int place;
        void *result;
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, cancelled, &place) == 0 && pthread_join(thread, &result) == 0);
        CHECK(result == &place);
        fork_once();
    }
    puts("forked");
    return 0;
}
