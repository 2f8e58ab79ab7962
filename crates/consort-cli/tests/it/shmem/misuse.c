/* Misuse, by number. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static long unused[SHMEM_ALLTOALLS_SYNC_SIZE];
static int written;
static const int constant = 1;

/* A child for whose static variables there is no memory. */
static void fork_without_memory(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_AS, &limit);
    pid_t pid = fork();
    if (pid == 0) {
        written = 1;
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 1 << 8 && !written);
    shmem_global_exit(1);
}

int main(int count, char **arguments) {
    int local = 0, which = count > 1 ? atoi(arguments[1]) : 0;
    if (which == 0) shmem_barrier_all();
    shmem_init();
    int *a = shmem_malloc(8);
    switch (which) {
    case 1: shmem_int_p(&local, 1, 0); break;
    case 2: shmem_int_p(a, 1, 99); break;
    case 3: shmem_free(a); shmem_free(a); break;
    case 4: shmem_finalize(); shmem_int_p(a, 1, 0); break;
    case 5: shmem_ctx_int_p(SHMEM_CTX_INVALID, a, 1, 0); break;
    case 6: shmem_int_wait_until(a, 77, 1); break;
    case 7: shmem_int_sum_reduce(SHMEM_TEAM_WORLD, a, &local, 1); break;
    case 8: abort();
    case 9: fork_without_memory(); break;
    case 10: shmem_int_p((int *)&constant, 1, 0); break;
    case 11: shmem_int_sum_reduce(SHMEM_TEAM_WORLD, (int *)&constant, a, 1); break;
    case 12: shmem_alltoalls64(a, a, 1L << 62, 1L << 62, 3, 0, 0, 2, unused); break;
    case 13: shmem_malloc(shmem_my_pe() == 0 ? 200 : 100); break;
    case 14: {
        void *b = shmem_malloc(64);
        shmem_free(shmem_my_pe() == 0 ? a : b);
        break;
    }
    case 15: shmem_realloc(a, shmem_my_pe() == 0 ? 200 : 100); break;
    }
    shmem_finalize();
    return 0;
}
