/* Times one collective, or messages between ranks 0 and 1, of the MPI that compiles this.
 *
 *     mpi_bench WORK BUDGET_SECONDS LIMIT_SECONDS BYTES...
 *
 * WORK is a name in the table below. BYTES is the size of a message or a block:
 *
 *     broadcast, reduce, all_reduce, scan    the whole buffer of a rank
 *     all_gather, gather                     the contribution of a rank
 *     scatter, reduce_scatter                the result of a rank
 *     exchange                               what each rank sends to each rank, itself included
 *
 * For vector variants it is the same, with pieces of equal length, so buffers with a part for each
 * rank have BYTES times the number of ranks. Reductions sum doubles.
 *
 * A call is a round trip of a message, or some messages to rank 1, each to its own place, and an
 * empty one back, so that rank 0 knows that all have arrived, as after a quiet.
 *
 * Calls are made in a row, in blocks of about 2 ms, from root 0, on one buffer that is reused. A
 * sample is the maximum over the ranks of their local time for a block, divided by its calls. Rank
 * 0 prints, after "library" and the library's version,
 *
 *     figure BYTES SAMPLE_NS SAMPLE_NS ...
 *
 * for each size, which gets about the budget. After the limit, which is for all sizes together, a
 * rank ends itself, and mpirun ends the others.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BLOCKS = 2000, MIN_BLOCKS = 5, TRIES = 3, MAX_MESSAGES = 64 };

static const double WARM_UP_SECONDS = 0.01, BLOCK_SECONDS = 0.002, RETRY_SECONDS = 0.1;

static void *buffer, *target;
static int bytes, rank;

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(void)
{
    MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(void)
{
    MPI_Reduce(buffer, target, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void all_reduce(void)
{
    MPI_Allreduce(buffer, target, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void all_gather(void)
{
    MPI_Allgather(buffer, bytes, MPI_BYTE, target, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void exchange(void)
{
    MPI_Alltoall(buffer, bytes, MPI_BYTE, target, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void scatter(void)
{
    MPI_Scatter(buffer, bytes, MPI_BYTE, target, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather(void)
{
    MPI_Gather(buffer, bytes, MPI_BYTE, target, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce_scatter(void)
{
    MPI_Reduce_scatter_block(buffer, target, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(void)
{
    MPI_Scan(buffer, target, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* One piece per rank. */
static int *counts, *places;

static void scatter_vector(void)
{
    MPI_Scatterv(buffer, counts, places, MPI_BYTE, target, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather_vector(void)
{
    MPI_Gatherv(buffer, bytes, MPI_BYTE, target, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void all_gather_vector(void)
{
    MPI_Allgatherv(buffer, bytes, MPI_BYTE, target, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void all_to_all_vector(void)
{
    MPI_Alltoallv(buffer, counts, places, MPI_BYTE, target, counts, places, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static void round_trip(void)
{
    if (rank == 0)
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank < 2)
        MPI_Recv(target, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void messages(void);

static const struct work {
    const char *name;
    void (*call)(void);
    /* Whether the buffer and the target have a block for each rank, at least on some rank. */
    int parts_in_buffer, parts_in_target;
    /* The number of messages of a call in one direction; 0 for a collective. */
    int messages;
} works[] = {
    {"barrier", barrier, 0, 0, 0},
    {"broadcast", broadcast, 0, 0, 0},
    {"reduce", reduce, 0, 0, 0},
    {"all_reduce", all_reduce, 0, 0, 0},
    {"all_gather", all_gather, 0, 1, 0},
    {"all_to_all", exchange, 1, 1, 0},
    {"scatter", scatter, 1, 0, 0},
    {"gather", gather, 0, 1, 0},
    {"reduce_scatter", reduce_scatter, 1, 0, 0},
    {"scan", scan, 0, 0, 0},
    {"scatter_vector", scatter_vector, 1, 0, 0},
    {"gather_vector", gather_vector, 0, 1, 0},
    {"all_gather_vector", all_gather_vector, 0, 1, 0},
    {"all_to_all_vector", all_to_all_vector, 1, 1, 0},
    {"put-signal", round_trip, 0, 0, 1},
    {"put-rate", messages, 0, 0, 64},
    {"put-bandwidth", messages, 0, 0, 16},
};

/* Looked up once: comparing names takes as long as a call may. */
static const struct work *work;

static void messages(void)
{
    MPI_Request requests[MAX_MESSAGES];
    char nothing;
    if (rank > 1)
        return;
    for (int i = 0; i < work->messages; i++) {
        if (rank == 0)
            MPI_Isend(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv((char *)target + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 0, 0,
                      MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(work->messages, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(&nothing, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&nothing, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static const struct work *named(const char *name)
{
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (!strcmp(name, works[i].name))
            return &works[i];
    return NULL;
}

/* Some libraries need memory even for empty data, and pages that were never written are all the
 * same one. */
static void *filled(size_t length)
{
    void *memory = malloc(length + 8);
    if (memory)
        memset(memory, 1, length + 8);
    return memory;
}

/* Returns the seconds that the slowest rank took over `calls` calls; the same on every rank. */
static double block(int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        work->call();
    double local = MPI_Wtime() - start, slowest;
    MPI_Allreduce(&local, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Returns the same; if that is long, the fastest of several tries, because one may be
 * interrupted. */
static double tried(int calls)
{
    double fastest = block(calls);
    for (int tries = 1; tries < TRIES && fastest >= WARM_UP_SECONDS && fastest < RETRY_SECONDS;
         tries++) {
        double seconds = block(calls);
        fastest = seconds < fastest ? seconds : fastest;
    }
    return fastest;
}

static void figure(double budget_seconds)
{
    static double samples[MAX_BLOCKS];
    /* All ranks decide by the same maxima, so that they agree on every number of calls. */
    double seconds, spent = 0;
    int calls = 1, blocks = 0;
    while ((seconds = tried(calls)) < WARM_UP_SECONDS && calls < 1 << 20)
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
    /* Before MPI begins: output that precedes an abort may be lost. */
    if (argc < 5) {
        fprintf(stderr, "%s: too few arguments\n", argv[0]);
        return 2;
    }
    work = named(argv[1]);
    if (!work) {
        fprintf(stderr, "%s: no work %s\n", argv[0], argv[1]);
        return 2;
    }
    MPI_Init(&argc, &argv);
    alarm((unsigned)atoi(argv[3]));
    int ranks, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\r\n")] = 0;
    if (rank == 0)
        printf("library %s\n", version);
    for (int i = 4; i < argc; i++) {
        bytes = atoi(argv[i]);
        int messages = work->messages ? work->messages : 1;
        buffer = filled((size_t)bytes * (size_t)(work->parts_in_buffer ? ranks : 1));
        target = filled((size_t)bytes * (size_t)(work->parts_in_target ? ranks : messages));
        counts = filled((size_t)ranks * sizeof *counts);
        places = filled((size_t)ranks * sizeof *places);
        if (!buffer || !target || !counts || !places) {
            fprintf(stderr, "%s: no memory for %d bytes\n", argv[0], bytes);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        for (int piece = 0; piece < ranks; piece++) {
            counts[piece] = bytes;
            places[piece] = piece * bytes;
        }
        figure(atof(argv[2]));
        free(buffer);
        free(target);
        free(counts);
        free(places);
    }
    MPI_Finalize();
    return 0;
}
