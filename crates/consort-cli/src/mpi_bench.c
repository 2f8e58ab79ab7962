/* Times one collective of whatever MPI compiles this.
 *
 *     mpi_bench barrier|broadcast|reduce BUDGET_SECONDS LIMIT_SECONDS BYTES...
 *
 * Calls are made in a row, in blocks of about 2 ms, from root 0, on one buffer that is reused.
 * A sample is the maximum over the ranks of their local time for a block, divided by its calls.
 * Rank 0 prints, after "library" and the library's version,
 *
 *     figure BYTES SAMPLE_NS SAMPLE_NS ...
 *
 * for each size, which gets about the budget. Past the limit, which is for all sizes together,
 * a rank ends itself, and mpirun the others.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BLOCKS = 2000, MIN_BLOCKS = 5 };

static const double WARM_UP_SECONDS = 0.02, BLOCK_SECONDS = 0.002;

static const char *collective;
static void *buffer, *target;
static int bytes;

static void call(void)
{
    if (!strcmp(collective, "barrier"))
        MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(collective, "broadcast"))
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce(buffer, target, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* The seconds that the slowest rank took over so many calls; the same on every rank. */
static double block(int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        call();
    double local = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&local, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void figure(int rank, double budget_seconds)
{
    static double samples[MAX_BLOCKS];
    /* All ranks decide by the same maxima, so that they agree on every number of calls. */
    double seconds, spent = 0;
    int calls = 1, blocks = 0;
    while ((seconds = block(calls)) < WARM_UP_SECONDS && calls < 1 << 20)
        calls *= 2;
    calls = (int)(BLOCK_SECONDS / (seconds / calls)) + 1;
    while (blocks < MAX_BLOCKS && (blocks < MIN_BLOCKS || spent < budget_seconds)) {
        seconds = block(calls);
        spent += seconds;
        samples[blocks++] = seconds / calls * 1e9;
    }
    if (rank != 0)
        return;
    printf("figure %d", bytes);
    for (int i = 0; i < blocks; i++)
        printf(" %.2f", samples[i]);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 5) {
        fprintf(stderr, "%s: too few arguments\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    collective = argv[1];
    alarm((unsigned)atoi(argv[3]));
    int rank, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\r\n")] = 0;
    if (rank == 0)
        printf("library %s\n", version);
    for (int i = 4; i < argc; i++) {
        bytes = atoi(argv[i]);
        /* Some libraries want a buffer even for nothing. */
        buffer = malloc((size_t)bytes + 8);
        target = malloc((size_t)bytes + 8);
        if (!buffer || !target) {
            fprintf(stderr, "%s: no memory for %d bytes\n", argv[0], bytes);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        /* Pages that were never written are all the same one. */
        memset(buffer, 1, (size_t)bytes);
        memset(target, 1, (size_t)bytes);
        figure(rank, atof(argv[2]));
        free(buffer);
        free(target);
    }
    MPI_Finalize();
    return 0;
}
