/* Read-only data of the program as a source. */
#include "check.h"

static const long squares[4] = {0, 1, 4, 9};
static const char *const words[2] = {"one", "two"};

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
    long got[4];
    shmem_long_get(got, squares, 4, next);
    CHECK(!memcmp(got, squares, sizeof got));
    CHECK(shmem_long_g(&squares[3], next) == 9);
    char text[4];
    shmem_getmem(text, "two", 4, next);
    CHECK(!strcmp(text, "two"));
    const char *of_own;
    shmem_getmem(&of_own, words, sizeof of_own, me);
    CHECK(of_own == words[0]);
    static long sums[4];
    long *all = shmem_malloc(4 * n * sizeof(long));
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sums, squares, 4);
    for (int i = 0; i < 4; i++) CHECK(sums[i] == (long)i * i * n);
    shmem_long_broadcast(SHMEM_TEAM_WORLD, sums, squares, 4, n - 1);
    CHECK(!memcmp(sums, squares, sizeof sums));
    shmem_long_fcollect(SHMEM_TEAM_WORLD, all, squares, 4);
    for (int i = 0; i < n; i++) CHECK(!memcmp(&all[4 * i], squares, sizeof squares));
    shmem_long_collect(SHMEM_TEAM_WORLD, all, &squares[1], 3);
    for (int i = 0; i < n; i++) CHECK(!memcmp(&all[3 * i], &squares[1], 3 * sizeof(long)));
    shmem_finalize();
    return 0;
}
