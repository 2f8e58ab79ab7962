/* Static variables of 4 GiB with a forked child. Little of them is touched, and core files also
   contain little of them. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { STEP = 1 << 20 };
static char huge[1UL << 32];

/* Unlike ru_maxrss, this excludes the process that started this one. */
static long most_resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    if (status) fclose(status);
    CHECK(kib > 0);
    return kib;
}

static long kib_in_cores(void) {
    char line[4096];
    long kib = 0, size = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        sscanf(line, "Size: %ld", &size);
        if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd")) kib += size;
    }
    if (maps) fclose(maps);
    CHECK(kib > 0);
    return kib;
}

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
    CHECK(most_resident_kib() < 100 << 10);
    CHECK(n == 1 || kib_in_cores() < 200 << 10);
    shmem_finalize();
    return 0;
}
