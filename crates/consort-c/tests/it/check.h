/* Checks and threads for the test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <consort.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                     \
                    consort_error_message());                                                      \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Checks that a call fails with this code, and with this text in the message. */
#define FAILS(call, code, text)                                                                    \
    do {                                                                                           \
        int returned = (call);                                                                     \
        if (returned != (code) || !strstr(consort_error_message(), text)) {                        \
            fprintf(stderr, "%s:%d: %s: %d: %s\n", __FILE__, __LINE__, #call, returned,            \
                    consort_error_message());                                                      \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define MOST_THREADS 8

typedef struct {
    consort_job *job;
    int rank;
    void (*program)(consort_team *world);
} program_of;

static void *run_program(void *argument)
{
    program_of *mine = (program_of *)argument;
    consort_pe *pe;
    CHECK(consort_join(mine->job, mine->rank, &pe) == CONSORT_OK);
    mine->program(consort_world(pe));
    CHECK(consort_leave(pe) == CONSORT_OK);
    return NULL;
}

/* Runs a program on the PEs of a new job: threads of this process. */
static inline void run_on(int threads, void (*program)(consort_team *world))
{
    program_of all[MOST_THREADS];
    pthread_t started[MOST_THREADS];
    consort_job *job;
    CHECK(consort_job_create(threads, NULL, &job) == CONSORT_OK);
    for (int rank = 0; rank < threads; rank++) {
        program_of one = {job, rank, program};
        all[rank] = one;
        CHECK(pthread_create(&started[rank], NULL, run_program, &all[rank]) == 0);
    }
    for (int rank = 0; rank < threads; rank++)
        pthread_join(started[rank], NULL);
    consort_job_destroy(job);
}

/* Runs a function on another thread, to its end. */
static inline void *elsewhere(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    pthread_join(thread, &result);
    return result;
}

#endif
