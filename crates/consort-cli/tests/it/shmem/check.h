/* The check of these test programs: the first failure ends the job. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                        \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "PE %d, line %d: %s\n", shmem_my_pe(), __LINE__, #what);       \
            shmem_global_exit(3);                                                          \
        }                                                                                  \
    } while (0)
