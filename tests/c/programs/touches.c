/* Makes pages real where the kernel does not know MADV_POPULATE_WRITE (before Linux 5.14), which a filter imitates. */
#include <errno.h>
#include <firsttouch.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(void) {
    struct sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 22, 0, 1), /* MADV_POPULATE_READ and what came later */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof refuse / sizeof *refuse, refuse};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        puts("skip");
        return 0;
    }
    size_t size = 1 << 20;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, size, 23) == 0) return 1;
    if (firsttouch_touch(memory, size, true, 1) != FIRSTTOUCH_OK) return 2;
    firsttouch_residency residency;
    if (firsttouch_inspect(memory, size, &residency, NULL, 0) != FIRSTTOUCH_OK) return 3;
    if (residency.absent != 0 || (residency.zero_page != 0 && residency.zero_page != FIRSTTOUCH_UNKNOWN)) return 4;
    puts("done");
    return 0;
}
