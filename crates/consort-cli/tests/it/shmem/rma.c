/* Puts and gets of all kinds, to the heap and to static variables, by generic names. */
#include "check.h"

static int in_static[8];
static long double one = 1.25L;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
    double *d = shmem_calloc(64, sizeof *d), local[64], got[64];
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    for (int i = 0; i < 64; i++) local[i] = me * 100 + i;

    shmem_put(d, local, 64, next);
    shmem_int_p(&in_static[3], me, next);
    shmem_p(&one, me + 0.5L, next);
    shmem_barrier_all();
    CHECK(d[63] == before * 100 + 63 && in_static[3] == before && one == before + 0.5L);
    shmem_get(got, d, 64, next);
    CHECK(got[5] == me * 100 + 5 && shmem_g(&one, next) == me + 0.5L);
    shmem_barrier_all();

    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
    shmem_iput(ctx, d, local, 2, 4, 16, next);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(d[30] == before * 100 + 60 && d[31] != before * 100 + 61);
    shmem_iget(got, d, 1, 2, 16, next);
    CHECK(got[15] == me * 100 + 60);
    shmem_barrier_all();
    shmem_ibput(d, local, 8, 4, 4, 2, next);
    shmem_barrier_all();
    CHECK(d[8] == before * 100 + 4 && d[11] == before * 100 + 7);
    shmem_ibget(ctx, got, d, 4, 8, 4, 2, next);
    CHECK(got[7] == me * 100 + 7);
    shmem_barrier_all();
    shmem_ctx_destroy(ctx);

    shmem_put_signal(d, local, 64, signal, 7, SHMEM_SIGNAL_SET, next);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 7) == 7 && d[1] == before * 100 + 1);
    shmem_barrier_all();
    shmem_putmem_signal_nbi(d, &local[2], 8, signal, 3, SHMEM_SIGNAL_ADD, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_GE, 10);
    CHECK(d[0] == before * 100 + 2 && shmem_signal_fetch(signal) == 10);
    shmem_barrier_all();
    shmem_signal_add(signal, 5, next);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 15);

    for (int pe = 0; pe < n; pe++) {
        double *theirs = shmem_ptr(d, pe);
        int *statics = shmem_ptr(in_static, pe);
        int is_near = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
        CHECK(is_near == (theirs != NULL) && is_near == (statics != NULL));
        CHECK(!is_near || statics[3] == (pe + n - 1) % n);
        CHECK(shmem_int_g(&in_static[3], pe) == (pe + n - 1) % n);
    }
    CHECK(!shmem_ptr(local, next) && !shmem_addr_accessible(local, next));
    CHECK(shmem_addr_accessible(d, next) && shmem_pe_accessible(n - 1) && !shmem_pe_accessible(n));
    shmem_barrier_all();
    shmem_free(signal);
    shmem_free(d);
    shmem_finalize();
    return 0;
}
