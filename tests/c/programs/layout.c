/* The sizes of all structures, for a comparison with those of the last release. */
#include <firsttouch.h>
#include <stdio.h>

#define SHOW(type) printf("%s %zu\n", #type, sizeof(type))

int main(void) {
    SHOW(firsttouch_pool_options);
    SHOW(firsttouch_pages_options);
    SHOW(firsttouch_functions);
    SHOW(firsttouch_scratch);
    SHOW(firsttouch_mark);
    SHOW(firsttouch_scratch_options);
    SHOW(firsttouch_migration);
    SHOW(firsttouch_receipt);
    SHOW(firsttouch_node);
    SHOW(firsttouch_residency);
    SHOW(firsttouch_stats);
    return 0;
}
