/* Wrong calls: each gets a code and a message that says what is right. */
#include "check.h"

#include <math.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static void options_are_checked(void)
{
    consort_job *job;
    FAILS(consort_job_create(2, NULL, NULL), CONSORT_ERROR_ARGUMENT, "argument job is null");
    FAILS(consort_job_create(-1, NULL, &job), CONSORT_ERROR_ARGUMENT, "from 1 to 1024");
    FAILS(consort_job_create(CONSORT_MOST_PES + 1, NULL, &job), CONSORT_ERROR_ARGUMENT, "1025");
    CHECK(job == NULL);
    consort_options options = {0, 0, 0};
    FAILS(consort_job_create(2, &options, &job), CONSORT_ERROR_ARGUMENT, "CONSORT_OPTIONS");
    options.size = sizeof options;
    options.waiting = 9;
    FAILS(consort_job_create(2, &options, &job), CONSORT_ERROR_ARGUMENT, "CONSORT_WAITING_");
    options.waiting = CONSORT_WAITING_SPIN_YIELD_PARK;
    const double limits[] = {-1.0, NAN, INFINITY};
    for (int index = 0; index < 3; index++) {
        options.join_timeout_s = limits[index];
        FAILS(consort_job_create(2, &options, &job), CONSORT_ERROR_ARGUMENT, "is not a time");
    }
}

static void arguments_are_checked(consort_team *world)
{
    int32_t data[8] = {0};
    void *odd = (char *)data + 1;
    int me = consort_team_rank(world);
    FAILS(consort_team_barrier(NULL), CONSORT_ERROR_ARGUMENT, "argument team is null");
    CHECK(consort_team_rank(NULL) == -1 && consort_team_size(NULL) == -1);
    CHECK(consort_world(NULL) == NULL);
    FAILS(consort_broadcast(world, NULL, 1, CONSORT_INT32, 0), CONSORT_ERROR_ARGUMENT, "is null");
    FAILS(consort_broadcast(world, data, 1, 10, 0), CONSORT_ERROR_ARGUMENT, "type is 10");
    FAILS(consort_broadcast(world, data, 1, -1, 0), CONSORT_ERROR_ARGUMENT, "type is -1");
    FAILS(consort_broadcast(world, data, 1, CONSORT_INT32, 2), CONSORT_ERROR_ARGUMENT,
          "consort_broadcast: argument root is 2: the ranks are 0 to 1");
    FAILS(consort_broadcast(world, data, 1, CONSORT_INT32, -1), CONSORT_ERROR_ARGUMENT,
          "root is -1");
    FAILS(consort_broadcast(world, odd, 1, CONSORT_INT32, 0), CONSORT_ERROR_ARGUMENT, "aligned");
    FAILS(consort_broadcast(world, data, SIZE_MAX / 2, CONSORT_INT32, 0), CONSORT_ERROR_ARGUMENT,
          "more than any memory has");
    FAILS(consort_all_gather(world, data, data + 4, SIZE_MAX / 8, CONSORT_INT32),
          CONSORT_ERROR_ARGUMENT, "more than any memory has");
    FAILS(consort_all_reduce(world, data, data + 4, 1, CONSORT_INT32, 7), CONSORT_ERROR_ARGUMENT,
          "op is 7");
    FAILS(consort_all_reduce(world, data, data + 4, 1, CONSORT_FLOAT, CONSORT_AND),
          CONSORT_ERROR_ARGUMENT, "CONSORT_AND does not combine floats");
    FAILS(consort_all_reduce(world, data, data + 1, 2, CONSORT_INT32, CONSORT_SUM),
          CONSORT_ERROR_ARGUMENT, "source and target overlap");
    FAILS(consort_all_reduce(world, data + 1, data, 2, CONSORT_INT32, CONSORT_SUM),
          CONSORT_ERROR_ARGUMENT, "source and target overlap");
    FAILS(consort_all_reduce(world, data, NULL, 1, CONSORT_INT32, CONSORT_SUM),
          CONSORT_ERROR_ARGUMENT, "target is null");
    FAILS(consort_exclusive_scan(world, data, data, 1, CONSORT_INT32, CONSORT_SUM),
          CONSORT_ERROR_ARGUMENT, "source and target overlap");
    FAILS(consort_gather(world, data, data, 1, CONSORT_INT32, me), CONSORT_ERROR_ARGUMENT,
          "source and target overlap");
    FAILS(consort_team_split(world, 0, 0, NULL), CONSORT_ERROR_ARGUMENT, "made is null");
    /* No call has had an effect. */
    CHECK(consort_team_barrier(world) == CONSORT_OK);
}

static void *uses_foreign_handle(void *pe)
{
    consort_team *world = consort_world((consort_pe *)pe);
    FAILS(consort_team_barrier(world), CONSORT_ERROR_THREAD, "only the thread that runs the PE");
    FAILS(consort_leave((consort_pe *)pe), CONSORT_ERROR_THREAD, "consort_leave: ");
    FAILS(consort_abort((consort_pe *)pe, "no"), CONSORT_ERROR_THREAD, "consort_abort: ");
    FAILS(consort_team_free(world), CONSORT_ERROR_THREAD, "consort_team_free: ");
    CHECK(consort_team_rank(world) == -1);
    return NULL;
}

static void *finds_rank_0_taken(void *job)
{
    consort_pe *pe;
    FAILS(consort_join((consort_job *)job, 0, &pe), CONSORT_ERROR_TAKEN, "PE 0 is taken");
    FAILS(consort_join((consort_job *)job, CONSORT_ANY_RANK, &pe), CONSORT_ERROR_FULL,
          "none of its 1 PEs is free");
    CHECK(pe == NULL);
    return NULL;
}

static void *finds_teams_of_rank_0(void *job)
{
    consort_pe *pe;
    FAILS(consort_join((consort_job *)job, 0, &pe), CONSORT_ERROR_TAKEN, "drop its teams");
    return NULL;
}

static void ranks_and_threads_are_checked(void)
{
    consort_job *job;
    consort_pe *pe, *again;
    consort_team *team;
    CHECK(consort_job_create(1, NULL, &job) == CONSORT_OK);
    FAILS(consort_join(NULL, 0, &pe), CONSORT_ERROR_ARGUMENT, "argument job is null");
    FAILS(consort_join(job, 0, NULL), CONSORT_ERROR_ARGUMENT, "argument pe is null");
    FAILS(consort_join(job, 1, &pe), CONSORT_ERROR_ARGUMENT, "rank is 1: the ranks are 0 to 0");
    FAILS(consort_join(job, -2, &pe), CONSORT_ERROR_ARGUMENT, "rank is -2");
    CHECK(consort_join(job, 0, &pe) == CONSORT_OK);
    FAILS(consort_join(job, CONSORT_ANY_RANK, &again), CONSORT_ERROR_JOINED, "runs PE 0");
    elsewhere(finds_rank_0_taken, job);
    elsewhere(uses_foreign_handle, pe);
    CHECK(consort_team_split(consort_world(pe), 0, 0, &team) == CONSORT_OK);
    CHECK(consort_leave(pe) == CONSORT_OK);
    FAILS(consort_leave(NULL), CONSORT_ERROR_ARGUMENT, "argument pe is null");
    FAILS(consort_team_barrier(team), CONSORT_ERROR_ENDED, "consort_team_barrier: ");
    elsewhere(finds_teams_of_rank_0, job);
    FAILS(consort_team_free(team), CONSORT_ERROR_ENDED, "consort_team_free: ");
    CHECK(consort_join(job, 0, &pe) == CONSORT_OK);
    pid_t child = fork();
    if (child == 0) {
        FAILS(consort_team_barrier(consort_world(pe)), CONSORT_ERROR_FORKED, "forked");
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(consort_leave(pe) == CONSORT_OK);
    consort_job_destroy(job);
    consort_job_destroy(NULL);
}

/* The other PE of a job of two. */
static void *ends_without_leaving(void *job)
{
    consort_pe *pe;
    CHECK(consort_join((consort_job *)job, 1, &pe) == CONSORT_OK);
    return NULL;
}

static void *aborts(void *job)
{
    consort_pe *pe;
    CHECK(consort_join((consort_job *)job, 1, &pe) == CONSORT_OK);
    CHECK(consort_abort(pe, "it has no input") == CONSORT_OK);
    return NULL;
}

static void *broadcasts(void *job)
{
    consort_pe *pe;
    int data[2] = {0, 0};
    CHECK(consort_join((consort_job *)job, 1, &pe) == CONSORT_OK);
    /* The root may be gone before the other PE calls. */
    int code = consort_broadcast(consort_world(pe), data, 2, CONSORT_INT32, 1);
    FAILS(code ? code : consort_team_barrier(consort_world(pe)), CONSORT_ERROR_MISMATCHED, "");
    FAILS(consort_leave(pe), CONSORT_ERROR_MISMATCHED, "consort_leave: ");
    return NULL;
}

static int waits_for_all(consort_team *world)
{
    return consort_team_barrier(world);
}

static int broadcasts_one(consort_team *world)
{
    int datum = 0;
    return consort_broadcast(world, &datum, 1, CONSORT_INT32, 1);
}

/* Runs PE 0's call in a job of two, and returns its code. */
static void fails_with(void *(*other)(void *), int (*call)(consort_team *), int code,
                       const char *text)
{
    consort_job *job;
    consort_pe *pe;
    pthread_t thread;
    consort_options options = CONSORT_OPTIONS;
    options.join_timeout_s = other ? 0 : 0.05;
    CHECK(consort_job_create(2, &options, &job) == CONSORT_OK);
    CHECK(consort_join(job, 0, &pe) == CONSORT_OK); /* before the other fails the job */
    if (other)
        CHECK(pthread_create(&thread, NULL, other, job) == 0);
    FAILS(call(consort_world(pe)), code, text);
    FAILS(consort_leave(pe), code, text);
    FAILS(consort_join(job, 0, &pe), code, text);
    if (other)
        pthread_join(thread, NULL);
    consort_job_destroy(job);
}

static void barriers_are_checked(void)
{
    consort_barrier *barrier;
    FAILS(consort_barrier_create(0, &barrier), CONSORT_ERROR_ARGUMENT, "from 1 to 65535");
    FAILS(consort_barrier_create(65536, &barrier), CONSORT_ERROR_ARGUMENT, "from 1 to 65535");
    FAILS(consort_barrier_create(2, NULL), CONSORT_ERROR_ARGUMENT, "barrier is null");
    FAILS(consort_barrier_wait(NULL, NULL), CONSORT_ERROR_ARGUMENT, "barrier is null");
    CHECK(consort_barrier_create(2, &barrier) == CONSORT_OK);
    FAILS(consort_barrier_wait_for(barrier, 0.001, NULL), CONSORT_ERROR_TIMED_OUT, "missing");
    FAILS(consort_barrier_wait_for(barrier, NAN, NULL), CONSORT_ERROR_ARGUMENT, "not a time");
    consort_barrier_destroy(barrier);
    consort_barrier_destroy(NULL);
}

int main(void)
{
    CHECK(strcmp(consort_error_message(), "") == 0);
    options_are_checked();
    run_on(2, arguments_are_checked);
    ranks_and_threads_are_checked();
    fails_with(NULL, waits_for_all, CONSORT_ERROR_TIMED_OUT, "PE 1");
    fails_with(ends_without_leaving, waits_for_all, CONSORT_ERROR_PE_FAILED,
               "PE 1 failed: its thread ended without leaving the job");
    fails_with(aborts, waits_for_all, CONSORT_ERROR_PE_FAILED, "PE 1 failed: it has no input");
    fails_with(broadcasts, waits_for_all, CONSORT_ERROR_MISMATCHED, "barrier");
    fails_with(broadcasts, broadcasts_one, CONSORT_ERROR_MISMATCHED, "broadcast");
    barriers_are_checked();
    return 0;
}
