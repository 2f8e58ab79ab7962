/* Atomic operations of several PEs on the words of PE 0. */
#include "check.h"

static long count;
static unsigned bits;
static float number;
static uint64_t owner;

int main(void) {
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < 1000; i++) {
        shmem_atomic_inc(&count, 0);
        shmem_atomic_add(SHMEM_CTX_DEFAULT, &count, 2L, 0);
        long old = shmem_atomic_fetch_add(&count, -1L, 0);
        CHECK(old >= 2 * i + 3);
    }
    shmem_atomic_or(&bits, 1u << me, 0);
    shmem_atomic_xor(&bits, 1u << (me + 16), 0);
    if (shmem_atomic_compare_swap(&owner, (uint64_t)0, (uint64_t)(me + 1), 0) == 0)
        shmem_atomic_set(&number, me + 0.5f, 0);
    shmem_barrier_all();
    CHECK(shmem_atomic_fetch(&count, 0) == 2000L * n);
    CHECK(shmem_atomic_fetch(&bits, 0) == ((1u << n) - 1) * 0x10001u);
    CHECK(shmem_atomic_fetch(&number, 0) == (float)shmem_atomic_fetch(&owner, 0) - 0.5f);
    shmem_barrier_all();
    long fetched = 0;
    shmem_atomic_fetch_inc_nbi(&fetched, &count, me);
    shmem_quiet();
    CHECK(fetched == (me ? 0 : 2000L * n));
    CHECK(shmem_swap(&count, -7L, me) == fetched + 1 && shmem_finc(&count, me) == -7);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
