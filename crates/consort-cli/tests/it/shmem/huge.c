/* Static variables of 4 GiB, of which little is touched, beside a child that is forked. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { STEP = 1 << 20 };
static char huge[1UL << 32];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
    for (size_t at = STEP; at < sizeof huge; at *= 2) shmem_p(&huge[at], (char)(me + 1), next);
    shmem_barrier_all();
    for (size_t at = STEP; at < sizeof huge; at *= 2) CHECK(huge[at] == before + 1);
    pid_t child = fork();
    if (child == 0) {
        CHECK(huge[STEP] == before + 1);
        huge[STEP] = -1;
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    CHECK(huge[STEP] == before + 1);
    struct rusage usage;
    CHECK(!getrusage(RUSAGE_SELF, &usage) && usage.ru_maxrss < 100 << 10);
    shmem_finalize();
    return 0;
}
