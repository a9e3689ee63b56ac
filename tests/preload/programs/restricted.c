/* After its start, only the system calls that the C library's malloc needs are allowed; any other ends the program. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void churn(int turns) {
    for (int turn = 0; turn < turns; turn++) {
        char *blocks[6];
        for (int at = 0; at < 6; at++) {
            size_t size = 200 * KIB << at;
            CHECK(blocks[at] = malloc(size));
            memset(blocks[at], 1, size);
        }
        for (int at = 0; at < 6; at++) free(blocks[at]);
        CHECK(blocks[0] = calloc(1, 33 * MIB));
        blocks[0][1] = 1;
        CHECK(blocks[0] = realloc(blocks[0], 40 * MIB));
        free(blocks[0]);
    }
}

int main(int count, char **words) {
    if (count > 1) churn(20); /* the pool's thread runs already */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(write), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise), ALLOW(brk), ALLOW(futex),
        ALLOW(exit_group), ALLOW(exit), ALLOW(rt_sigprocmask), ALLOW(clock_gettime), ALLOW(getrandom), ALLOW(gettid),
        ALLOW(getpid), ALLOW(fstat), ALLOW(newfstatat),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    churn(60);
    USED(words);
    puts("allowed");
    return 0;
}
