/* PE 1 ends the job or itself, by the first argument, with the status of the second, while the
   others wait; by the third, late or at once. */
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
