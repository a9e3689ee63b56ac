/* Fork handlers that allocate and free large blocks; compiled with EARLY, they are registered before all constructors. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static unsigned char *kept;

static void use(void) {
    unsigned char *p = malloc(MIB);
    CHECK(p);
    memset(p, 9, MIB);
    CHECK((p = realloc(p, 3 * MIB)) && all_are(p, MIB, 9));
    free(kept);
    CHECK((kept = calloc(1, 2 * MIB)) && all_are(kept, 2 * MIB, 0));
    memset(kept, 4, 2 * MIB);
    free(p);
}

#ifdef EARLY
static int value(void) { return 1; }
static int (*resolve(void))(void) {
    pthread_atfork(use, use, use);
    void *p = malloc(MIB); /* inside the loader */
    free(p);
    return value;
}
int indirect(void) __attribute__((ifunc("resolve")));
#endif

static void *churn(void *stop) {
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
        char *p = malloc(400 * KIB);
        p[0] = 1;
        USED(p);
        free(p);
    }
    return NULL;
}

int main(void) {
#ifdef EARLY
    CHECK(indirect() == 1);
#else
    CHECK(pthread_atfork(use, use, use) == 0);
#endif
    int stop = 0;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, churn, &stop) == 0);
    unsigned char *mine = malloc(MIB);
    memset(mine, 1, MIB);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(120);
            CHECK(all_are(mine, MIB, 1));
            use();
            free(mine);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(all_are(kept, 2 * MIB, 4));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    puts("forked");
    return 0;
}
