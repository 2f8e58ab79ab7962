/* A profiler: it defines a routine, and calls the library's. */
#include "check.h"

static int barriers;

void shmem_barrier_all(void) {
    barriers++;
    pshmem_barrier_all();
}

int main(void) {
    shmem_init();
    shmem_pcontrol(1, "with", 3, "arguments");
    shmem_barrier_all();
    shmem_barrier_all();
    CHECK(barriers == 2);
    shmem_finalize();
    return 0;
}
