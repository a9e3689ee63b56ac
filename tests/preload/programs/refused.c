/* Under a limit on private memory, after a refused request: what is freed is there for other requests, and for mmap.
   Prints how many of these two are served. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { BLOCKS = 60 };

int main(void) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) CHECK((blocks[i] = malloc(8 * MIB)));
    rlim_t limit = proc_value("/proc/self/status", "VmData:") * KIB + 100 * MIB;
    CHECK(setrlimit(RLIMIT_DATA, &(struct rlimit){limit, limit}) == 0);
    CHECK(malloc(600 * MIB) == NULL && errno == ENOMEM);
    for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    void *block = malloc(200 * MIB);
    int served = block != NULL;
    free(block);
    served += mmap(NULL, 200 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    printf("%d\n", served);
    return 0;
}
