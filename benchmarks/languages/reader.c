/* Reads 12 generated files of 12 MB each into a buffer that grows by half, and counts words. */
#include <ctype.h>
#include <string.h>

#include "rest.h"

#define CHUNK 65536

static size_t chunk(char *to, unsigned *state, size_t left)
{
    size_t n = left < CHUNK ? left : CHUNK;
    for (size_t i = 0; i < n; i++) {
        *state = *state * 1103515245u + 12345u;
        to[i] = (*state >> 16) % 6 ? 'a' + (*state >> 20) % 26 : ' ';
    }
    return n;
}

int main(void)
{
    unsigned state = 1;
    long words = 0;
    for (int file = 0; file < 12; file++) {
        size_t capacity = CHUNK, length = 0, left = 12000000;
        char *text = malloc(capacity);
        while (left > 0) {
            if (capacity - length < CHUNK) {
                capacity += capacity / 2 + CHUNK;
                text = realloc(text, capacity);
            }
            size_t n = chunk(text + length, &state, left);
            length += n;
            left -= n;
        }
        for (size_t i = 1; i < length; i++)
            words += text[i] == ' ' && text[i - 1] != ' ';
        free(text);
    }
    printf("%ld\n", words);
    rest();
}
