// The header in C++.
#include "check.h"

static void program(consort_team *world)
{
    double value = 1.5;
    CHECK(consort_all_reduce(world, &value, &value, 1, CONSORT_DOUBLE, CONSORT_PROD) == CONSORT_OK);
    CHECK(value == 2.25);
}

int main()
{
    run_on(2, program);
    consort_options options = CONSORT_OPTIONS;
    consort_pool *pool;
    CHECK(consort_pool_create(2, &options, &pool) == CONSORT_OK);
    auto region = [](consort_team *world, void *) { return consort_team_barrier(world); };
    CHECK(consort_pool_run(pool, region, nullptr) == CONSORT_OK);
    consort_pool_destroy(pool);
}
