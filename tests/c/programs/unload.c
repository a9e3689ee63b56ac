/* Loads the library at run time, lets it start its helper thread, unloads it, and goes on. */
#include <stdio.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>

#define dlopen(path, flags) ((void *)LoadLibraryA(path))
#define dlsym(library, name) ((void *)(INT_PTR)GetProcAddress(library, name))
#define dlclose(library) FreeLibrary(library)
#define usleep(microseconds) Sleep((microseconds) / 1000)
#else
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

int main(int argc, char **argv) {
    for (int turn = 0; turn < 2; turn++) {
        void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (!library) return 1;
        void *(*allocate)(void *, size_t);
        void (*deallocate)(void *, void *);
        *(void **)&allocate = dlsym(library, "firsttouch_malloc");
        *(void **)&deallocate = dlsym(library, "firsttouch_free");
        void *block = allocate(NULL, 50 << 20);
        if (!block) return 2;
        memset(block, 1, 50 << 20);
        deallocate(NULL, block); /* idle now: the helper thread waits to return it */
        dlclose(library);
        usleep(1200000);
#ifndef _WIN32
        pid_t child = fork();
        if (child == 0) _exit(0);
        int status = 1;
        if (waitpid(child, &status, 0) != child || status != 0) return 3;
#endif
    }
    puts("done");
    return 0;
}
