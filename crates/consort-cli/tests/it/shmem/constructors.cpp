// Constructors that run before the library's own: one begins the job, and one starts a thread.
#include <pthread.h>

#include "check.h"

static long first, second = 5;

struct Begins {
    Begins() {
        shmem_init();
        int me = shmem_my_pe(), n = shmem_n_pes();
        shmem_long_p(&first, me + 1, (me + 1) % n);
        second = me;
        shmem_barrier_all();
    }
};

#ifdef EARLY
#define WHEN __attribute__((init_priority(101)))
#else
static void *nothing(void *argument) { return argument; }

struct Threaded {
    pthread_t thread;
    Threaded() { pthread_create(&thread, nullptr, nothing, nullptr); }
    ~Threaded() { pthread_join(thread, nullptr); }
};

static Threaded threaded;
#define WHEN
#endif

static Begins begins WHEN;

int main() {
    int me = shmem_my_pe(), n = shmem_n_pes(), before = (me + n - 1) % n;
    CHECK(first == before + 1 && second == me);
    shmem_barrier_all();
    shmem_long_atomic_add(&second, 100, (me + 1) % n);
    shmem_barrier_all();
    CHECK(second == me + 100);
    shmem_finalize();
    return 0;
}
