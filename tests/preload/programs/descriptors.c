/* Once main has begun, whoever opens a file is killed by the kernel. */
#include "check.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

static void kill_whoever_opens(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_open
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 6, 0),
#else
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 6, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pipe2, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_eventfd2, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int count, char **words) {
    kill_whoever_opens();
    if (count > 1) close(open(words[1], O_RDONLY)); /* to see that the filter works */
    size_t size = 200 * KIB;
    for (int i = 0; i < 120; i++) {
        size = size * 5 % (24 * MIB) + 200 * KIB;
        char *p = i % 3 ? malloc(size) : calloc(1, size);
        CHECK(p);
        for (size_t at = 0; at < size; at += 4096) p[at] = 1;
        p = realloc(p, size + size / 2);
        free(p);
        USED(malloc((size_t)1 << 46)); /* refused */
        if (i % 40 == 0) nanosleep(&(struct timespec){0, 150 * 1000 * 1000}, NULL);
    }
    write(1, "none opened\n", 12);
    _exit(0);
}
