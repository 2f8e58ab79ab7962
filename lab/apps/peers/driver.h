/* Code that the drivers share: the entries that the applications fill their matrices with, and the
 * result, one JSON object on a line. */
#ifndef PEERS_DRIVER_H
#define PEERS_DRIVER_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The hash and the entries of lab/apps/kernels/src/entries.rs. */
static uint64_t hash(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double entry(uint64_t matrix, uint64_t row, uint64_t column)
{
    return (double)(hash((matrix << 60) ^ (row << 30) ^ column) >> 60) - 8.0;
}

/* Returns an argument, which must be a positive number. */
static inline int argument(int argc, char **argv, int at, const char *usage)
{
    int number = at < argc ? atoi(argv[at]) : 0;
    if (number <= 0) {
        fprintf(stderr, "usage: %s\n", usage);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return number;
}

/* Returns the time of a run that started after a barrier, on the slowest process. */
static inline double slowest(double begun)
{
    double own = MPI_Wtime() - begun, most;
    MPI_Allreduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Prints the times, and whether the result is right. */
static inline void report(const char *name, const double *seconds, int runs, int right)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("{\"application\":\"%s\",\"seconds\":[", name);
        for (int run = 0; run < runs; run++)
            printf("%s%.9f", run ? "," : "", seconds[run]);
        printf("],\"right\":%s}\n", right ? "true" : "false");
    }
}

#endif
