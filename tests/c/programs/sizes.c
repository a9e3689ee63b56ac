/* Structures of the sizes that the last release had, as programs that were compiled against it pass them: each is
 * accepted, one that is a byte smaller is not, and nothing behind it is read or written.
 *
 * Arguments: the structure's name and its size then. */
#include <firsttouch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t SPACE = 65536;
static void *at; /* memory to ask about */
static firsttouch_allocator *pages;

static void *allocate(void *context, size_t size) { return (void)context, malloc(size); }
static void give_back(void *context, void *block, size_t size) { (void)context, (void)size, free(block); }

/* Calls the function that takes the structure. */
static firsttouch_status call(const char *name, void *structure) {
    firsttouch_allocator *made = NULL;
    firsttouch_scratch *scratch = NULL;
    firsttouch_status status = FIRSTTOUCH_INTERNAL;
#define IS(type) (strcmp(name, #type) == 0)
    if IS (firsttouch_pool_options) status = firsttouch_pool(structure, &made);
    else if IS (firsttouch_pages_options) status = firsttouch_pages(structure, &made);
    else if IS (firsttouch_functions) status = firsttouch_from_functions(structure, &made);
    else if IS (firsttouch_scratch_options) status = firsttouch_scratch_create(structure, &scratch);
    else if IS (firsttouch_migration) status = firsttouch_migrate(at, SPACE, "0", structure);
    else if IS (firsttouch_receipt) status = firsttouch_get_receipt(pages, at, structure);
    else if IS (firsttouch_node) status = firsttouch_get_node(0, structure);
    else if IS (firsttouch_residency) status = firsttouch_inspect(at, SPACE, structure);
    else if IS (firsttouch_stats) status = firsttouch_get_stats(NULL, structure);
    firsttouch_release(made);
    firsttouch_scratch_destroy(scratch);
    return status;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    size_t size = strtoul(words[2], NULL, 10), wrong = size - 1;
    unsigned char memory[512], behind[sizeof memory];
    memset(behind, 0xa5, sizeof behind);
    memset(memory, 0xa5, sizeof memory);
    memset(memory, 0, size);
    if (strcmp(words[1], "firsttouch_functions") == 0) {
        firsttouch_functions functions = {sizeof functions, allocate, NULL, NULL, give_back, NULL};
        memcpy(memory, &functions, size);
    }
    if (firsttouch_parse("pages(populate=1)", &pages) != FIRSTTOUCH_OK) return 2;
    at = firsttouch_malloc(pages, SPACE);

    memcpy(memory, &wrong, sizeof wrong);
    if (call(words[1], memory) != FIRSTTOUCH_INVALID) return puts("smaller than ever, and accepted"), 1;
    memcpy(memory, &size, sizeof size);
    firsttouch_status status = call(words[1], memory);
    if (status != FIRSTTOUCH_OK && status != FIRSTTOUCH_SYSTEM) return puts(firsttouch_last_error()), 1;
    if (memcmp(memory + size, behind, sizeof memory - size) != 0) return puts("written behind its end"), 1;
    puts("done");
    firsttouch_free(pages, at);
    firsttouch_release(pages);
    return 0;
}
