// A graph that is torn down: every second of so many blocks is freed. Prints the processor time of that in milliseconds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    char **blocks = malloc(count * sizeof *blocks);
    for (long i = 0; i < count; i++) {
        blocks[i] = malloc((128 << 10) + i % 7 * 4096);
        blocks[i][5] = 1;
    }
    clock_t began = clock();
    for (long i = 0; i < count; i += 2)
        free(blocks[i]);
    printf("%ld\n", (clock() - began) / (CLOCKS_PER_SEC / 1000));
    return 0;
}
