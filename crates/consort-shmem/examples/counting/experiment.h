/* Shared by the experiments with counting puts: times, and the end of a program that found an
 * error. The experiments are those of Dinan, Cole, Jost, Smith, Underwood and Wisniewski 2014,
 * section 3. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the number in the argument at this place, or a default. */
static inline long given(int argc, char **argv, int place, long otherwise)
{
    return argc > place ? atol(argv[place]) : otherwise;
}

static inline void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
        shmem_global_exit(1);
    }
}

enum { BLOCKS = 9 };

/* Returns the median time of some blocks of rounds in seconds; the slowest PE's time counts. */
static inline double median(void (*rounds)(long), long count)
{
    static double own, slowest;
    double times[BLOCKS];
    rounds(count);
    for (int block = 0; block < BLOCKS; block++) {
        shmem_barrier_all();
        double begun = now();
        rounds(count);
        own = now() - begun;
        shmem_double_max_reduce(SHMEM_TEAM_WORLD, &slowest, &own, 1);
        int at = block;
        for (; at > 0 && times[at - 1] > slowest; at--)
            times[at] = times[at - 1];
        times[at] = slowest;
    }
    return times[BLOCKS / 2];
}
