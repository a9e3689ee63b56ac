/* Says that it has more rights than its caller, so the library must stand aside: prints whether it serves. */
#include "check.h"
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type) {
    (void)type;
    return SECURE;
}

int main(void) {
    uintptr_t at = (uintptr_t)malloc(MIB);
    printf("%s\n", at >> 40 >= 16 && at >> 40 < 40 ? "pool" : "C library");
    return 0;
}
