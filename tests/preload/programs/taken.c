/* Closes all descriptors, as daemons do, and opens many files of its own; one may get any number. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    struct stat stat;
    int file = 0, status = 0, written = 0;
    (void)count;
    for (file = 3; file < 1024; file++) close(file);
    for (file = 3; file < 700; file++) {
        if (open(words[1], O_CREAT | O_WRONLY, 0600) != file) return 1;
    }
    if (fork() == 0) {
        for (file = 3; file < 700; file++) status |= fstat(file, &stat) != 0;
        _exit(status);
    }
    wait(&status);
    free(malloc(1 << 20));
    written = printf("%s\n", status == 0 ? "open in the child" : "closed in the child");
    return written < 0;
}
