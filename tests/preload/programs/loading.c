/* Loads the plug-in, and then one that does not exist, of which dlerror tells even after blocks grew. */
#include "check.h"
#include <dlfcn.h>

int main(void) {
    alarm(120);
    CHECK(dlopen("./plugin-shared-fPIC", RTLD_NOW));
    CHECK(dlopen("./missing.so", RTLD_NOW) == NULL);
    char *block = realloc(malloc(100), MIB);
    CHECK(block && malloc_usable_size(block) >= MIB);
    free(block);
    malloc_trim(0);
    const char *error = dlerror();
    CHECK(error && strstr(error, "missing.so"));
    puts("loaded, missing");
    return 0;
}
