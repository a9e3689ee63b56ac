/* What a program does at its end if REST is set: waits two seconds, and prints how many KiB are resident. */
#ifndef REST_H
#define REST_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void rest(void)
{
    long pages = 0, resident = 0;
    if (getenv("REST") == NULL)
        return;
    sleep(2);
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2)
        printf("%ld\n", resident * (sysconf(_SC_PAGESIZE) / 1024));
    if (file != NULL)
        fclose(file);
}

#endif
