/* Parallel regions. */
#include "check.h"

enum { PES = 3 };

static consort_pool *pool;

static int sums(consort_team *world, void *data)
{
    int *results = (int *)data, me = consort_team_rank(world), sum = me;
    int code = consort_all_reduce(world, &sum, &sum, 1, CONSORT_INT32, CONSORT_SUM);
    results[me] = sum;
    return code;
}

static int stops(consort_team *world, void *data)
{
    return consort_team_rank(world) == 1 ? *(int *)data : consort_team_barrier(world);
}

static int misuses(consort_team *world, void *data)
{
    double value = 0;
    (void)data;
    if (consort_team_rank(world) == 2)
        return consort_all_reduce(world, &value, &value, 1, CONSORT_DOUBLE, CONSORT_XOR);
    return consort_team_barrier(world);
}

static int nests(consort_team *world, void *data)
{
    (void)world;
    int results[PES];
    FAILS(consort_pool_run(pool, sums, results), CONSORT_ERROR_NESTED, "use another pool");
    return *(int *)data;
}

/* A team that a program keeps works in later regions. */
static consort_team *kept[PES];

static int forms(consort_team *world, void *data)
{
    (void)data;
    return consort_team_split(world, 0, 0, &kept[consort_team_rank(world)]);
}

static int uses(consort_team *world, void *data)
{
    (void)data;
    return consort_team_barrier(kept[consort_team_rank(world)]);
}

static int frees(consort_team *world, void *data)
{
    (void)data;
    return consort_team_free(kept[consort_team_rank(world)]);
}

int main(void)
{
    int results[PES], value = 5, none = 0;
    FAILS(consort_pool_create(0, NULL, &pool), CONSORT_ERROR_ARGUMENT, "threads is 0");
    CHECK(pool == NULL);
    CHECK(consort_pool_create(PES, NULL, &pool) == CONSORT_OK);
    CHECK(consort_pool_size(pool) == PES && consort_pool_size(NULL) == -1);
    for (int round = 0; round < 100; round++) {
        CHECK(consort_pool_run(pool, sums, results) == CONSORT_OK);
        for (int rank = 0; rank < PES; rank++)
            CHECK(results[rank] == 3);
    }
    CHECK(consort_pool_run(pool, forms, NULL) == CONSORT_OK);
    FAILS(consort_team_barrier(kept[0]), CONSORT_ERROR_ENDED, "not running");
    CHECK(consort_pool_run(pool, uses, NULL) == CONSORT_OK);
    CHECK(consort_pool_run(pool, frees, NULL) == CONSORT_OK);
    FAILS(consort_pool_run(pool, NULL, NULL), CONSORT_ERROR_ARGUMENT, "region is null");
    FAILS(consort_pool_run(NULL, sums, results), CONSORT_ERROR_ARGUMENT, "pool is null");
    FAILS(consort_pool_run(pool, stops, &value), CONSORT_ERROR_PE_FAILED,
          "consort_pool_run: PE 1 failed: its function returned 5");
    FAILS(consort_pool_run(pool, misuses, NULL), CONSORT_ERROR_PE_FAILED,
          "PE 2 failed: its function returned 1, the code of its last error: consort_all_reduce: "
          "CONSORT_XOR does not combine floats");
    CHECK(consort_pool_run(pool, nests, &none) == CONSORT_OK);
    /* After an error the pool works. */
    CHECK(consort_pool_run(pool, sums, results) == CONSORT_OK);
    consort_pool_destroy(pool);
    consort_pool_destroy(NULL);
    return 0;
}
