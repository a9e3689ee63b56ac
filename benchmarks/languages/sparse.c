/* KiB of memory and page tables for one byte in every 2 MiB of four blocks of 1 GiB, from malloc and calloc. */
#include <string.h>

#include "rest.h"

static long used(void)
{
    char line[256];
    long sum = 0, found;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &found) == 1 || sscanf(line, "VmPTE: %ld", &found) == 1)
            sum += found;
    if (file != NULL)
        fclose(file);
    return sum;
}

int main(void)
{
    const size_t size = (size_t)1 << 30, step = (size_t)2 << 20;
    long before = (free(malloc(size)), used());
    for (int turn = 0; turn < 4; turn++) {
        char *block = turn % 2 ? malloc(size) : calloc(size, 1);
        for (size_t at = 0; at < size; at += step)
            block[at] = 1;
    }
    printf("%ld\n", used() - before);
}
