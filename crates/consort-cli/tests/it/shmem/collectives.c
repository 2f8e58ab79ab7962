/* Collective routines of teams and of active sets. */
#include <complex.h>

#include "check.h"

static long sync[SHMEM_SYNC_SIZE];
static double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void of_team(shmem_team_t team) {
    int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team);
    long *a = shmem_malloc(16 * sizeof *a), *b = shmem_malloc(16 * 16 * sizeof *b);
    if (me >= 0) {
        for (int i = 0; i < 16; i++) a[i] = me * 16 + i;
        CHECK(shmem_sync(team) == 0);
        CHECK(shmem_broadcast(team, b, a, 16, n - 1) == 0 && b[3] == (n - 1) * 16 + 3);
        CHECK(shmem_fcollect(team, b, a, 4) == 0 && b[4 * n - 1] == (n - 1) * 16 + 3);
        CHECK(shmem_team_sync(team) == 0);
        CHECK(shmem_collect(team, b, a, me + 1) == 0 && b[n * (n + 1) / 2 - 1] == n * 17 - 17);
        CHECK(shmem_team_sync(team) == 0);
        CHECK(shmem_alltoall(team, b, a, 1) == 0 && b[n - 1] == (n - 1) * 16 + me);
        CHECK(shmem_team_sync(team) == 0);
        CHECK(shmem_alltoalls(team, b, a, 2, 1, 1) == 0 && b[2 * n - 2] == (n - 1) * 16 + me);
        CHECK(shmem_team_sync(team) == 0);
        CHECK(shmem_max_reduce(team, b, a, 16) == 0 && b[15] == n * 16 - 1);
        CHECK(shmem_sum_reduce(team, a, a, 1) == 0 && a[0] == 8 * n * (n - 1));
        CHECK(shmem_sum_inscan(team, b, a + 1, 1) == 0 && b[0] == (me + 1) * (8 * me + 1));
        CHECK(shmem_sum_exscan(team, b, a + 1, 1) == 0 && b[0] == me * (8 * me - 7));
        CHECK(shmem_team_translate_pe(team, me, SHMEM_TEAM_WORLD) == shmem_my_pe());
    }
    shmem_free(b);
    shmem_free(a);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    of_team(SHMEM_TEAM_WORLD);
    of_team(SHMEM_TEAM_SHARED);
    shmem_team_t half, row, column;
    int pes = (n + 1) / 2;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, pes, NULL, 0, &half) == 0);
    of_team(half);
    if (half != SHMEM_TEAM_INVALID) shmem_team_destroy(half);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column) == 0);
    of_team(row);
    of_team(column);

    double complex *c = shmem_malloc(2 * sizeof *c);
    long double *l = shmem_malloc(2 * sizeof *l);
    c[0] = 1 + me * I;
    l[0] = me + 0.5L;
    CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &c[1], c, 1) == 0);
    CHECK(c[1] == n + n * (n - 1) / 2 * I);
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, &l[1], l, 1) == 0 && l[1] == n - 0.5L);

    /* Unsigned numbers: as a signed number, the greatest would be -1. */
#define GREATEST(TYPE, NAME) do { \
        TYPE *u = shmem_malloc(2 * sizeof *u); \
        u[0] = me == 0 ? (TYPE)-1 : 1; \
        shmem_barrier_all(); \
        CHECK(shmem_##NAME##_max_reduce(SHMEM_TEAM_WORLD, &u[1], u, 1) == 0 && u[1] == (TYPE)-1); \
        shmem_free(u); \
    } while (0)
    GREATEST(unsigned char, uchar);
    GREATEST(unsigned short, ushort);
    GREATEST(unsigned, uint);
    GREATEST(unsigned long, ulong);
    GREATEST(unsigned long long, ulonglong);
    GREATEST(uint8_t, uint8);
    GREATEST(uint16_t, uint16);
    GREATEST(uint32_t, uint32);
    GREATEST(uint64_t, uint64);
    GREATEST(size_t, size);

    double *d = shmem_malloc(2 * sizeof *d);
    d[0] = me + 1;
    shmem_double_prod_to_all(d + 1, d, 1, 0, 0, n, work, sync);
    double product = 1;
    for (int i = 2; i <= n; i++) product *= i;
    CHECK(d[1] == product);
    shmem_barrier(0, 0, n, sync);
    if (me % 2 == 0) {
        shmem_double_sum_to_all(d + 1, d, 1, 0, 1, pes, work, sync);
        CHECK(d[1] == pes * pes);
    }
    shmem_barrier_all();
    d[1] = -1;
    shmem_broadcast64(d + 1, d, 1, n - 1, 0, 0, n, sync);
    CHECK(d[1] == (me == n - 1 ? -1 : n));
    shmem_finalize();
    return 0;
}
