/* Where memory is refused: under RLIMIT_AS requests fail as they do plainly, and small ones go on. */
#include "check.h"
#include <sys/resource.h>

int main(void) {
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){300 * MIB, 300 * MIB}) == 0);
    for (int round = 0; round < 3; round++) {
        void *blocks[400];
        int count = 0;
        errno = 0;
        while (count < 400 && (blocks[count] = malloc(MIB))) memset(blocks[count++], 1, MIB);
        CHECK(errno == ENOMEM && count >= 200 && count < 300);
        for (int i = 0; i < count; i++) {
            CHECK(all_are(blocks[i], MIB, 1));
            free(blocks[i]);
        }
        char *p = malloc(200 * MIB); /* only if what was freed is there again */
        CHECK(p);
        p = realloc(p, 220 * MIB);
        CHECK(p);
        free(p);
        CHECK(malloc(GIB) == NULL && errno == ENOMEM);
        CHECK((p = malloc(100)));
        free(p);
    }
    puts("refused");
    return 0;
}
