/* Static variables with forked children, and streams of the C library. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int zero, set = 5;
static long big[1 << 20];
extern char **environ;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
    CHECK(set == 5 && zero == 0 && environ && environ[0] && stdout);
    shmem_barrier_all();
    shmem_p(&zero, me + 1, next);
    shmem_p(&big[(1 << 20) - 1], me + 2L, next);
    CHECK(shmem_atomic_fetch_add(&set, 1, next) == 5);
    shmem_barrier_all();
    CHECK(zero == before + 1 && big[(1 << 20) - 1] == before + 2 && set == 6);
    pid_t child = fork();
    if (child == 0) {
        zero = set = -1;
        _exit(7);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    CHECK(zero == before + 1 && set == 6);
    CHECK(system("exit 3") >> 8 == 3);
    FILE *said = popen("echo heard", "r");
    char line[16];
    CHECK(said && fgets(line, sizeof line, said) && !strcmp(line, "heard\n") && !pclose(said));
    shmem_barrier_all();
    if (me == 0) printf("statics of %d PEs\n", n);
    shmem_finalize();
    return 0;
}
