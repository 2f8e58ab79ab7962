/* What Consort needs of MPI, as functions whose interface does not depend on which MPI it is. The
 * MPI's own compiler compiles this where it is used. Each function returns 0, or MPI's error, whose
 * text consort_mpi_error writes; a request is NULL if there was an error. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm all = MPI_COMM_NULL;
static int last = MPI_SUCCESS;
static int is_over = 0;

static void finish(void)
{
    int done = 0, rank = 0;
    MPI_Finalized(&done);
    if (done || is_over)
        return;
    is_over = 1;
    if (all != MPI_COMM_NULL) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fprintf(stderr, "consort: process %d exits in the midst of its program\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}

static int failed(int error)
{
    if (error != MPI_SUCCESS)
        last = error;
    return error != MPI_SUCCESS;
}

/* Begins the use of MPI by this process; has no effect if it has begun. */
int consort_mpi_begin(int *rank, int *processes)
{
    int there = 0, level = 0, error;
    if (failed(MPI_Initialized(&there)))
        return 1;
    if (!there) {
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        if (failed(error))
            return 1;
        atexit(finish);
    } else if (failed(MPI_Query_thread(&level))) {
        return 1;
    }
    if (level < MPI_THREAD_SERIALIZED)
        return 2;
    return failed(MPI_Comm_rank(MPI_COMM_WORLD, rank)) || failed(MPI_Comm_size(MPI_COMM_WORLD, processes));
}

/* Messages of one job do not meet those of another: all processes begin it. */
int consort_mpi_open(void)
{
    return failed(MPI_Comm_dup(MPI_COMM_WORLD, &all)) ||
           failed(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
}

void *consort_mpi_send(const uint64_t *words, int count, int to)
{
    MPI_Request *request = malloc(sizeof *request);
    if (request && failed(MPI_Isend(words, count, MPI_UINT64_T, to, 0, all, request))) {
        free(request);
        return NULL;
    }
    return request;
}

/* Whether a message has come, from whom, and of how many words. It is then to be received. */
int consort_mpi_probe(int *is_there, int *from, int *count, void **message)
{
    MPI_Message found;
    MPI_Message *kept;
    MPI_Status status;
    if (failed(MPI_Improbe(MPI_ANY_SOURCE, 0, all, is_there, &found, &status)))
        return 1;
    if (!*is_there)
        return 0;
    kept = malloc(sizeof *kept);
    if (!kept)
        return 2;
    *kept = found;
    *message = kept;
    *from = status.MPI_SOURCE;
    return failed(MPI_Get_count(&status, MPI_UINT64_T, count));
}

/* Receives a message that was probed. */
void *consort_mpi_receive(void *message, uint64_t *words, int count)
{
    MPI_Request *request = malloc(sizeof *request);
    int error = MPI_ERR_NO_MEM;
    if (request)
        error = MPI_Imrecv(words, count, MPI_UINT64_T, message, request);
    free(message);
    if (failed(error)) {
        free(request);
        return NULL;
    }
    return request;
}

/* Whether a request is done, which is then gone. */
int consort_mpi_test(void *request, int *is_done)
{
    if (failed(MPI_Test(request, is_done, MPI_STATUS_IGNORE)))
        return 1;
    if (*is_done)
        free(request);
    return 0;
}

/* Ends a job: all processes do, or else this ends the processes of all. */
int consort_mpi_close(int all_end)
{
    if (!all_end) {
        is_over = 1;
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    return failed(MPI_Comm_free(&all));
}

/* The last error, and the library's version. */
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
