/* Uses large blocks on the smallest stacks: of a thread, and of a signal handler. Prints how much of the latter is used. */
#include "check.h"
#include <limits.h>
#include <pthread.h>
#include <signal.h>

static void use(void) {
    char *blocks[4];
    for (int turn = 0; turn < 50; turn++) {
        for (int at = 0; at < 4; at++) {
            CHECK(blocks[at] = malloc(256 * KIB << at << turn % 4));
            blocks[at][0] = 1;
        }
        for (int at = 0; at < 4; at++) {
            CHECK(blocks[at] = realloc(blocks[at], 300 * KIB << at << turn % 4));
            free(blocks[at]);
        }
        CHECK(blocks[0] = calloc(1, 40 * MIB));
        blocks[0][5] = 1;
        free(blocks[0]);
    }
}

static void *run(void *nothing) { return use(), nothing; }
static void handle(int signal) {
    USED(&signal);
    use();
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
    for (int turn = 0; turn < 3; turn++)
        CHECK(pthread_create(&thread, &attributes, run, NULL) == 0 && pthread_join(thread, NULL) == 0);
    static unsigned char room[64 * KIB];
    memset(room, 0x5a, sizeof room);
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int turn = 0; turn < 4; turn++) raise(SIGUSR1);
    size_t left = 0;
    while (room[left] == 0x5a) left++;
    printf("%zu\n", sizeof room - left);
    return 0;
}
