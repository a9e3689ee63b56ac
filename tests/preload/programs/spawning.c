/* vfork, posix_spawn and system, with large blocks before, in between and after. */
#include "check.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(void) {
    char *p = malloc(8 * MIB);
    memset(p, 1, 8 * MIB);
    for (int i = 0; i < 30; i++) {
        int status;
        char *words[] = {"true", NULL};
        pid_t child = vfork();
        if (child == 0) {
            execv("/bin/true", words);
            _exit(1);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) == 0);
        free(malloc(3 * MIB));
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(system("exit 3") == 3 << 8);
        CHECK((p = realloc(p, (8 + i) * MIB)) && all_are((unsigned char *)p, 8 * MIB, 1));
    }
    free(p);
    puts("spawned");
    return 0;
}
