/* Active sets: threads that use different ones at the same time, and their arguments. */
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 500, LONGEST = 8 };

static long sync[2][SHMEM_COLLECT_SYNC_SIZE];
static long own[2][LONGEST], all[2][2 * LONGEST], flag;

/* Collects in a set of PE 0 and PE `1 << log_stride`; each thread has its own `log_stride`. */
static void *collects(void *argument) {
    int log_stride = (int)(size_t)argument, me = shmem_my_pe(), other = 1 << log_stride;
    size_t count = log_stride == 0 ? 3 : 7;
    long *from = own[log_stride], *to = all[log_stride];
    if (other >= shmem_n_pes() || (me != 0 && me != other)) return NULL;
    for (int round = 0; round < ROUNDS; round++) {
        shmem_sync(0, log_stride, 2, sync[log_stride]);
        for (size_t i = 0; i < count; i++) from[i] = me * 100 + i + round;
        /* Now and then, PE 0 contributes nothing. */
        size_t zeros = round % 5 == 0 ? 0 : count;
        shmem_collect64(to, me == 0 && zeros == 0 ? NULL : from, me == 0 ? zeros : count, 0,
                        log_stride, 2, sync[log_stride]);
        for (size_t i = 0; i < zeros; i++) CHECK(to[i] == (long)i + round);
        for (size_t i = 0; i < count; i++) {
            CHECK(to[zeros + i] == other * 100 + (long)i + round);
        }
    }
    return NULL;
}

static void *meets(void *argument) {
    (void)argument;
    shmem_sync(0, 0, 2, sync[0]);
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    int me = shmem_my_pe(), n = shmem_n_pes();
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, collects, (void *)i);
    for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    shmem_barrier_all();

    /* PE 0 calls in both sets at once; PE 1 enters its set after PE 2 has been in the other one. */
    if (n > 2 && me == 0) {
        pthread_create(threads, NULL, meets, NULL);
        shmem_sync(0, 1, 2, sync[1]);
        pthread_join(threads[0], NULL);
    } else if (n > 2 && me == 1) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_sync(0, 0, 2, sync[0]);
    } else if (me == 2) {
        shmem_sync(0, 1, 2, sync[1]);
        shmem_long_p(&flag, 1, 1);
    }

    /* Calls of all PEs are calls of the world. */
    if (me == 0) {
        shmem_sync_all();
    } else {
        shmem_barrier(0, 0, n, sync[0]);
    }
    shmem_finalize();
    return 0;
}
