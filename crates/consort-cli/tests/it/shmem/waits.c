/* Waits, tests, locks and the order of puts. */
#include "check.h"

static int words[8], data;
static long lock;
static int guarded;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
    size_t found[8], many;
    int excluded[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    int values[8] = {0, 11, 12, 13, 14, 15, 16, 17};
    CHECK(!shmem_test(&words[1], SHMEM_CMP_NE, 0));
    CHECK(shmem_test_any(words, 8, excluded, SHMEM_CMP_NE, 0) == SIZE_MAX);
    shmem_barrier_all();
    shmem_p(&data, 42, next);
    shmem_fence();
    shmem_p(&words[5], 15, next);
    CHECK(shmem_wait_until_any(words, 8, excluded, SHMEM_CMP_GT, 0) == 5 && data == 42);
    many = shmem_wait_until_some_vector(words, 8, found, excluded, SHMEM_CMP_EQ, values);
    CHECK(many == 1 && found[0] == 5);
    shmem_barrier_all();
    shmem_put(words + 1, values + 1, 7, next);
    shmem_wait_until_all_vector(words, 8, excluded, SHMEM_CMP_EQ, values);
    shmem_wait_until_all(words, 8, excluded, SHMEM_CMP_GE, 11);
    CHECK(shmem_test_all_vector(words, 8, NULL, SHMEM_CMP_EQ, values));
    shmem_wait_until(&words[7], SHMEM_CMP_EQ, 17);
    shmem_barrier_all();
    for (int i = 0; i < 100; i++) {
        shmem_set_lock(&lock);
        int now = shmem_g(&guarded, 0);
        shmem_p(&guarded, now + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
    while (shmem_test_lock(&lock)) {}
    shmem_clear_lock(&lock);
    shmem_barrier_all();
    CHECK(shmem_g(&guarded, 0) == 100 * n);
    shmem_finalize();
    return 0;
}
