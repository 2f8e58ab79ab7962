/* Barriers, teams, and handles. */
#include "check.h"

static int arrived;

/* No PE leaves a barrier before all have arrived. */
static void barriers(consort_team *world)
{
    int pes = consort_team_size(world);
    for (int round = 1; round <= 300; round++) {
        __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
        CHECK(consort_team_barrier(world) == CONSORT_OK);
        CHECK(__atomic_load_n(&arrived, __ATOMIC_RELAXED) >= round * pes);
        CHECK(consort_team_barrier(world) == CONSORT_OK);
    }
    CHECK(consort_team_barrier(world) == CONSORT_OK);
    __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
    CHECK(consort_team_barrier(world) == CONSORT_OK);
}

static void teams(consort_team *world)
{
    int me = consort_team_rank(world), pes = consort_team_size(world);
    consort_team *parity, *none, *pair;
    /* Ordered by descending rank. */
    CHECK(consort_team_split(world, me % 2, -me, &parity) == CONSORT_OK);
    int size = (pes + 1 - me % 2) / 2;
    CHECK(consort_team_size(parity) == size);
    CHECK(consort_team_rank(parity) == size - 1 - me / 2);
    int sum = me, expected = 0;
    for (int rank = me % 2; rank < pes; rank += 2)
        expected += rank;
    CHECK(consort_all_reduce(parity, &sum, &sum, 1, CONSORT_INT32, CONSORT_SUM) == CONSORT_OK);
    CHECK(sum == expected);
    CHECK(consort_team_split(world, me == 0 ? -1 : 3, 0, &none) == CONSORT_OK);
    CHECK((none == NULL) == (me == 0));
    CHECK(none == NULL || consort_team_free(none) == CONSORT_OK);
    int second = pes > 1 ? 2 : 1;
    CHECK(consort_team_strided(world, second - 1, -1, second, &pair) == CONSORT_OK);
    CHECK((pair != NULL) == (me < second));
    CHECK(pair == NULL || consort_team_rank(pair) == second - 1 - me);
    CHECK(pair == NULL || consort_team_free(pair) == CONSORT_OK);
    FAILS(consort_team_strided(world, 0, 1, pes + 1, &pair), CONSORT_ERROR_ARGUMENT, "size");
    FAILS(consort_team_strided(world, pes, 1, 1, &pair), CONSORT_ERROR_ARGUMENT, "start");
    FAILS(consort_team_free(world), CONSORT_ERROR_ARGUMENT, "do not free it");
    CHECK(consort_team_free(parity) == CONSORT_OK);
}

typedef struct {
    consort_barrier *barrier;
    int *leaders;
} at_barrier;

static void *waits(void *argument)
{
    at_barrier *mine = (at_barrier *)argument;
    for (int round = 0; round < 300; round++) {
        int is_leader = 7;
        if (round % 2)
            CHECK(consort_barrier_wait(mine->barrier, &is_leader) == CONSORT_OK);
        else
            CHECK(consort_barrier_wait_for(mine->barrier, 60.0, &is_leader) == CONSORT_OK);
        CHECK(is_leader == 0 || is_leader == 1);
        __atomic_fetch_add(mine->leaders, is_leader, __ATOMIC_RELAXED);
        CHECK(consort_barrier_wait(mine->barrier, NULL) == CONSORT_OK);
        CHECK(__atomic_load_n(mine->leaders, __ATOMIC_RELAXED) > round);
    }
    return NULL;
}

static void barrier_of_any_threads(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    int leaders = 0;
    at_barrier all = {NULL, &leaders};
    CHECK(consort_barrier_create(THREADS, &all.barrier) == CONSORT_OK);
    for (int index = 0; index < THREADS; index++)
        CHECK(pthread_create(&threads[index], NULL, waits, &all) == 0);
    for (int index = 0; index < THREADS; index++)
        pthread_join(threads[index], NULL);
    CHECK(leaders == 300);
    consort_barrier_destroy(all.barrier);
}

/* Threads may join one after the other as one PE. */
static void *joins_and_leaves(void *job)
{
    consort_pe *pe;
    consort_team *team;
    CHECK(consort_join((consort_job *)job, CONSORT_ANY_RANK, &pe) == CONSORT_OK);
    CHECK(consort_team_rank(consort_world(pe)) == 0);
    CHECK(consort_team_split(consort_world(pe), 0, 0, &team) == CONSORT_OK);
    CHECK(consort_team_free(team) == CONSORT_OK);
    CHECK(consort_leave(pe) == CONSORT_OK);
    return NULL;
}

int main(void)
{
    for (int threads = 1; threads <= 5; threads++) {
        run_on(threads, barriers);
        run_on(threads, teams);
    }
    barrier_of_any_threads();
    consort_job *job;
    consort_options options = CONSORT_OPTIONS;
    options.waiting = CONSORT_WAITING_SPIN_YIELD;
    options.join_timeout_s = 5;
    CHECK(consort_job_create(1, &options, &job) == CONSORT_OK);
    elsewhere(joins_and_leaves, job);
    elsewhere(joins_and_leaves, job);
    consort_job_destroy(job);
    return 0;
}
