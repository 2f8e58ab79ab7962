/* PE 1 ends the job or itself (first argument) with a status (second argument), late or immediately
   (third argument), while the others wait. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 99;
    shmem_init();
    if (shmem_my_pe() == 1) {
        if (strcmp(argv[3], "late") == 0)
            usleep(200000);
        if (strcmp(argv[1], "all") == 0)
            shmem_global_exit(atoi(argv[2]));
        exit(atoi(argv[2]));
    }
    shmem_barrier_all();
    shmem_barrier_all();
    return 98;
}
