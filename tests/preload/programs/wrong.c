/* Ends itself by freeing what it may not: `wrong double|inside|page|resize|measure|record`. */
#include "check.h"

int main(int count, char **words) {
    CHECK(count == 2);
    char *volatile p = malloc(4 * MIB), *volatile q = malloc(300 * KIB);
    memset(p, 1, 4 * MIB);
    const char *how = words[1];
    if (strcmp(how, "double") == 0) {
        free(q);
        free(q);
    } else if (strcmp(how, "double-large") == 0) {
        free(p);
        free(p);
    } else if (strcmp(how, "inside") == 0) {
        free(p + 16);
    } else if (strcmp(how, "page") == 0) {
        /* A block began there once, so its record is an old one. */
        free(p);
        char *volatile a = malloc(MIB), *volatile b = malloc(MIB);
        free(a);
        free(b);
        char *volatile c = malloc(4 * MIB);
        char *volatile inner = b > c && b < c + 4 * MIB ? b : c + 4096;
        free(inner);
    } else if (strcmp(how, "resize") == 0) {
        USED(realloc(p + 4096, 8 * MIB));
    } else if (strcmp(how, "measure") == 0) {
        USED(malloc_usable_size(p + 4096));
    }
    puts("survived");
    return 0;
}
