/* What a program does to the pages of a block ends with the block: its next user can write, finds its data in a child, and
   may lock as much. */
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

static const size_t SIZE = 48 * MIB; /* which the C library maps and unmaps each time */

static void use(void) {
    char *block = malloc(SIZE);
    memset(block, 3, SIZE);
    pid_t child = fork();
    if (child == 0) _exit(!all_are((unsigned char *)block, SIZE, 3));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    free(block);
}

static char *fresh(void) {
    char *block = aligned_alloc(4096, SIZE);
    memset(block, 1, SIZE);
    return block;
}

int main(void) {
    for (int turn = 0; turn < 4; turn++) use(); /* now the pool serves from what it keeps */
    char *block = fresh();
    CHECK(madvise(block, SIZE, MADV_WIPEONFORK) == 0);
    free(block);
    use();
    CHECK(madvise(block = fresh(), SIZE / 2, MADV_DONTFORK) == 0);
    free(block);
    use();
    CHECK(mprotect((block = fresh()) + SIZE / 2, 8192, PROT_READ) == 0);
    free(block);
    use();
    CHECK(mprotect(block = fresh(), SIZE, PROT_READ) == 0);
    block = realloc(block, SIZE + MIB);
    CHECK(all_are((unsigned char *)block, SIZE, 1));
    memset(block, 2, SIZE);
    free(block);
    use();
    for (int turn = 0; turn < 8; turn++) {
        CHECK(mlock((block = fresh()) + turn * 4 * MIB, MIB) == 0);
        free(block);
        CHECK(proc_value("/proc/self/status", "VmLck:") == 0);
    }
    for (int turn = 0; turn < 3; turn++) { /* more ranges than are remembered */
        block = fresh();
        for (size_t at = 0; at < SIZE; at += 64 * KIB) CHECK(mprotect(block + at, 4096, PROT_READ) == 0);
        free(block);
        use();
    }
    puts("plain");
    return 0;
}
