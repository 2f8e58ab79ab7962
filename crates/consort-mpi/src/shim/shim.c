/* The functions of MPI that Consort needs, with an ABI that does not depend on the MPI. The MPI's
 * own compiler compiles this where it is used. Each function returns 0 or MPI's error, whose text
 * consort_mpi_error writes; a request is NULL if there was an error. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Communicators for frames and for long data. */
static MPI_Comm all = MPI_COMM_NULL, bulk = MPI_COMM_NULL;
/* For the MPI's own collectives: of all processes, and of the first of each node. */
static MPI_Comm team = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
static int last = MPI_SUCCESS;
static int is_over = 0;
/* The process that has begun MPI, as opposed to its forked children. */
static pid_t own = 0;

/* Returns whether all processes do the same as this one: begin a job, or end their use of MPI. */
static int agree(int begins)
{
    int own[2] = {begins, !begins}, any[2] = {0, 0};
    MPI_Allreduce(own, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !(any[0] && any[1]);
}

/* Ends all processes, with this status. Waits first: MPICH's launcher drops text that it has not
 * read when a process aborts, so the reason was sometimes lost. */
void consort_mpi_abort(int status)
{
    struct timespec tenth = {0, 100000000};
    is_over = 1;
    fflush(NULL);
    nanosleep(&tenth, NULL);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void finish(void)
{
    int done = 0, rank = 0;
    if (getpid() != own)
        return;
    MPI_Finalized(&done);
    if (done || is_over)
        return;
    is_over = 1;
    /* All wait for the last one: MPICH 4.0 over UCX often hangs if a process ends far earlier. */
    if (all != MPI_COMM_NULL || !agree(0)) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fprintf(stderr, "consort: process %d exits before the end of its program\n", rank);
        consort_mpi_abort(1);
    }
    MPI_Finalize();
}

static int failed(int error)
{
    if (error != MPI_SUCCESS)
        last = error;
    return error != MPI_SUCCESS;
}

/* Begins the use of MPI by this process; has no effect if it has already begun. */
int consort_mpi_begin(int *rank, int *processes)
{
    int there = 0, over = 0, level = 0, error;
    if (failed(MPI_Initialized(&there)) || failed(MPI_Finalized(&over)))
        return 1;
    if (over)
        return 3;
    if (!there) {
        /* Open MPI's messages queue behind the part of longer ones that TCP has accepted: with the
         * kernel's default buffers, megabytes. */
        setenv("OMPI_MCA_btl_tcp_sndbuf", "131072", 0);
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        if (failed(error))
            return 1;
        own = getpid();
        atexit(finish);
    } else if (failed(MPI_Query_thread(&level))) {
        return 1;
    }
    if (level < MPI_THREAD_SERIALIZED)
        return 2;
    return failed(MPI_Comm_rank(MPI_COMM_WORLD, rank)) ||
           failed(MPI_Comm_size(MPI_COMM_WORLD, processes));
}

/* Gathers words of all processes, the same number from each. */
int consort_mpi_gather(const uint64_t *words, int count, uint64_t *gathered)
{
    return failed(
        MPI_Allgather(words, count, MPI_UINT64_T, gathered, count, MPI_UINT64_T, all));
}

/* Declares whether this process takes part in the collectives of the first processes of the nodes.
 * All processes must call this, once. */
int consort_mpi_lead(int leads)
{
    int rank, error;
    MPI_Comm_rank(all, &rank);
    error = failed(MPI_Comm_dup(all, &team)) ||
            failed(MPI_Comm_set_errhandler(team, MPI_ERRORS_RETURN)) ||
            failed(MPI_Comm_split(all, leads ? 0 : MPI_UNDEFINED, rank, &leaders));
    if (!error && leads)
        error = failed(MPI_Comm_set_errhandler(leaders, MPI_ERRORS_RETURN));
    return error;
}

static void *begun(MPI_Request *request, int error)
{
    if (!request || failed(error)) {
        free(request);
        return NULL;
    }
    return request;
}

#ifdef OPEN_MPI

/* Receives from any process are posted in a ring, which the MPI fills in order: a message that
 * finds one takes a microsecond less than one that is probed for. A longer message is announced by
 * its length, and arrives on a separate communicator. */
enum { RECEIPTS = 16, WORDS = 2048, LONG = 1 };
static struct receipt {
    MPI_Request request;
    uint64_t words[WORDS];
} receipts[RECEIPTS];
static int first = 0;
static MPI_Comm longer = MPI_COMM_NULL;
/* The message that has arrived and is not received yet. */
static MPI_Status come;

static int wait_for(struct receipt *receipt)
{
    return failed(MPI_Irecv(receipt->words, WORDS, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, all,
                            &receipt->request));
}

static int begin_receipts(void)
{
    int at, error = failed(MPI_Comm_dup(all, &longer)) ||
                    failed(MPI_Comm_set_errhandler(longer, MPI_ERRORS_RETURN));
    first = 0;
    for (at = 0; at < RECEIPTS && !error; at++)
        error = wait_for(&receipts[at]);
    return error;
}

static int end_receipts(void)
{
    int at, error = failed(MPI_Comm_free(&longer));
    for (at = 0; at < RECEIPTS; at++)
        if (!failed(MPI_Cancel(&receipts[at].request)))
            error |= failed(MPI_Wait(&receipts[at].request, MPI_STATUS_IGNORE));
    return error;
}

static int send(const uint64_t *words, int count, int to, MPI_Request *request)
{
    uint64_t length = count;
    int error;
    if (count <= WORDS)
        return MPI_Isend(words, count, MPI_UINT64_T, to, 0, all, request);
    error = MPI_Send(&length, 1, MPI_UINT64_T, to, LONG, all);
    if (error == MPI_SUCCESS)
        error = MPI_Isend(words, count, MPI_UINT64_T, to, 0, longer, request);
    return error;
}

static int probe(int *has_come, int *from, int *count)
{
    int error = MPI_Test(&receipts[first].request, has_come, &come);
    if (error != MPI_SUCCESS || !*has_come)
        return error;
    *from = come.MPI_SOURCE;
    if (come.MPI_TAG != LONG)
        return MPI_Get_count(&come, MPI_UINT64_T, count);
    *count = receipts[first].words[0];
    return error;
}

static int receive(uint64_t *words, int count, MPI_Request *request)
{
    struct receipt *receipt = &receipts[first];
    int is_long = come.MPI_TAG == LONG;
    if (!is_long)
        memcpy(words, receipt->words, count * sizeof *words);
    first = (first + 1) % RECEIPTS;
    *request = MPI_REQUEST_NULL;
    /* After an error the words are freed, so nothing may be received into them. */
    if (wait_for(receipt))
        return last;
    if (is_long)
        return MPI_Irecv(words, count, MPI_UINT64_T, come.MPI_SOURCE, 0, longer, request);
    return MPI_SUCCESS;
}

#else

/* MPICH over UCX (4.3, 5.0) loses some messages for posted receives from any process. */
static MPI_Message come = MPI_MESSAGE_NULL;

static int begin_receipts(void)
{
    return 0;
}

static int end_receipts(void)
{
    return 0;
}

static int send(const uint64_t *words, int count, int to, MPI_Request *request)
{
    return MPI_Isend(words, count, MPI_UINT64_T, to, 0, all, request);
}

static int probe(int *has_come, int *from, int *count)
{
    MPI_Status status;
    int error = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, all, has_come, &come, &status);
    if (error != MPI_SUCCESS || !*has_come)
        return error;
    *from = status.MPI_SOURCE;
    return MPI_Get_count(&status, MPI_UINT64_T, count);
}

static int receive(uint64_t *words, int count, MPI_Request *request)
{
    return MPI_Imrecv(words, count, MPI_UINT64_T, &come, request);
}

#endif

/* Begins a job, together with all processes, so that messages of different jobs do not mix. If a
 * process ends its use of MPI instead, all processes end. */
int consort_mpi_open(void)
{
    if (!agree(1))
        MPI_Barrier(MPI_COMM_WORLD);
    return failed(MPI_Comm_dup(MPI_COMM_WORLD, &all)) ||
           failed(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN)) ||
           failed(MPI_Comm_dup(all, &bulk)) ||
           failed(MPI_Comm_set_errhandler(bulk, MPI_ERRORS_RETURN)) || begin_receipts();
}

/* Sends words. */
void *consort_mpi_send(const uint64_t *words, int count, int to)
{
    MPI_Request *request = malloc(sizeof *request);
    return begun(request, request ? send(words, count, to, request) : MPI_ERR_NO_MEM);
}

/* Reports whether words have arrived that are not received yet, their sender and their number. */
int consort_mpi_probe(int *has_come, int *from, int *count)
{
    return failed(probe(has_come, from, count));
}

/* Receives the words that have arrived, which are `count`. */
void *consort_mpi_receive(uint64_t *words, int count)
{
    MPI_Request *request = malloc(sizeof *request);
    return begun(request, request ? receive(words, count, request) : MPI_ERR_NO_MEM);
}

/* Sends bytes directly from their memory. */
void *consort_mpi_push(const void *bytes, int count, int to, int tag)
{
    MPI_Request *request = malloc(sizeof *request);
    int error = MPI_ERR_NO_MEM;
    if (request)
        error = MPI_Isend(bytes, count, MPI_BYTE, to, tag, bulk, request);
    return begun(request, error);
}

/* Receives bytes directly into their memory. */
void *consort_mpi_pull(void *bytes, int count, int from, int tag)
{
    MPI_Request *request = malloc(sizeof *request);
    int error = MPI_ERR_NO_MEM;
    if (request)
        error = MPI_Irecv(bytes, count, MPI_BYTE, from, tag, bulk, request);
    return begun(request, error);
}

/* Begins a collective of all processes, or of the leaders. The numbers of collectives, types and
 * operators are those of VendorCall. */
void *consort_mpi_collect(int collective, int are_leaders, int root, int count, int type, int op,
                          const void *source, void *target)
{
    static const MPI_Datatype types[] = {MPI_BYTE,    MPI_UINT8_T, MPI_INT8_T,   MPI_UINT16_T,
                                         MPI_INT16_T, MPI_UINT32_T, MPI_INT32_T, MPI_UINT64_T,
                                         MPI_INT64_T, MPI_FLOAT,   MPI_DOUBLE};
    static const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_BAND, MPI_BOR,
                                 MPI_BXOR, MPI_MIN,  MPI_MAX};
    MPI_Request *request = malloc(sizeof *request);
    MPI_Comm comm = are_leaders ? leaders : team;
    MPI_Datatype of = types[type];
    MPI_Op by = ops[op];
    int rank, error = MPI_ERR_NO_MEM;
    if (!request)
        return begun(request, error);
    MPI_Comm_rank(comm, &rank);
    switch (collective) {
    case 0:
        error = MPI_Ibarrier(comm, request);
        break;
    case 1:
        error = MPI_Ibcast(rank == root ? (void *)source : target, count, of, root, comm, request);
        break;
    case 2:
        error = MPI_Iscatter(source, count, of, target, count, of, root, comm, request);
        break;
    case 3:
        error = MPI_Igather(source, count, of, target, count, of, root, comm, request);
        break;
    case 4:
        error = MPI_Iallgather(source, count, of, target, count, of, comm, request);
        break;
    case 5:
        error = MPI_Ialltoall(source, count, of, target, count, of, comm, request);
        break;
    case 6:
        error = MPI_Ireduce(source, target, count, of, by, root, comm, request);
        break;
    case 7:
        error = MPI_Iallreduce(source, target, count, of, by, comm, request);
        break;
    default:
        error = MPI_ERR_ARG;
    }
    return begun(request, error);
}

/* Cancels a receive for which nothing is sent. */
void consort_mpi_cancel(void *request)
{
    if (!failed(MPI_Cancel(request)))
        failed(MPI_Wait(request, MPI_STATUS_IGNORE));
    free(request);
}

/* Reports whether a request is done; a finished request is freed. */
int consort_mpi_test(void *request, int *is_done)
{
    if (failed(MPI_Test(request, is_done, MPI_STATUS_IGNORE)))
        return 1;
    if (*is_done)
        free(request);
    return 0;
}

/* Ends a job, together with all processes. After a failure, prints the reason and ends all. */
int consort_mpi_close(const char *failed_by)
{
    if (failed_by) {
        fprintf(stderr, "consort: %s\n", failed_by);
        consort_mpi_abort(1);
        return 1;
    }
    if (leaders != MPI_COMM_NULL && failed(MPI_Comm_free(&leaders)))
        return 1;
    if (team != MPI_COMM_NULL && failed(MPI_Comm_free(&team)))
        return 1;
    return end_receipts() || failed(MPI_Comm_free(&bulk)) || failed(MPI_Comm_free(&all));
}

/* Writes the text of the last error; the next function writes the library's version. */
void consort_mpi_error(char *text, int bytes)
{
    char long_text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(last, long_text, &length);
    strncpy(text, long_text, bytes - 1);
    text[bytes - 1] = 0;
}

void consort_mpi_version(char *text, int bytes)
{
    char long_text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(long_text, &length);
    strncpy(text, long_text, bytes - 1);
    text[bytes - 1] = 0;
}
