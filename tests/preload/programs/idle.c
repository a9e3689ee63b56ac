/* A program that has used large blocks and now waits: `idle rounds size-in-KiB blocks`; prints resident KiB. */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 4);
    int rounds = atoi(words[1]), blocks = atoi(words[3]);
    size_t size = atol(words[2]) * KIB;
    char *p[64];
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < blocks; i++) memset(p[i] = malloc(size), 1, size);
        for (int i = 0; i < blocks; i++) {
            USED(p[i]);
            free(p[i]);
        }
    }
    sleep(2);
    printf("%ld\n", resident_kib());
    return 0;
}
