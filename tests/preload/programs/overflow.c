/* Writes behind a large block, for a sanitizer to see. */
#include "check.h"

int main(int count, char **words) {
    volatile char *p = malloc(MIB);
    p[0] = 1;
    p[MIB - 1 + (count > 1)] = words[0][0];
    free(strdup("a block of the runtime's own"));
    free((void *)p);
    puts("clean");
    return 0;
}
