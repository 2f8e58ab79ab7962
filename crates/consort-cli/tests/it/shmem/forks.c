/* Children and grandchildren of PEs whose threads allocate memory and write during the forks. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 3, CHILDREN = 20, LONGS = 1 << 16 };

static long big[LONGS], sum = 5;
static atomic_int stop;

static void *work(void *argument) {
    FILE *nowhere = fopen("/dev/null", "w");
    while (!stop) {
        free(malloc(100));
        fprintf(nowhere, "%p", argument);
    }
    fclose(nowhere);
    return NULL;
}

/* Checks the variables in a child, returns a status, and writes them; then forks its own child. */
static int child(int depth) {
    for (int i = 0; i < LONGS; i++)
        if (big[i] != (i % 512 ? 0 : depth)) return 1;
    if (sum != 5 + depth) return 2;
    for (int i = 0; i < LONGS; i += 512) big[i]++;
    sum++;
    char *text = malloc(1000);
    if (!text || snprintf(text, 1000, "%d", depth) != 1) return 3;
    free(text);
    if (depth == 3) return 7;
    pid_t pid = fork();
    if (pid == 0) _exit(child(depth + 1));
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 4;
    if (big[0] != depth + 1 || sum != 6 + depth) return 5;
    return WEXITSTATUS(status);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            _exit(child(0));
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        if (status != 7 << 8) fprintf(stderr, "PE %d: a child ended with status %#x\n", me, status);
        CHECK(status == 7 << 8);
    }
    stop = 1;
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    CHECK(big[0] == 0 && sum == 5);
    shmem_barrier_all();
    shmem_long_p(&sum, me, (me + 1) % n);
    shmem_barrier_all();
    CHECK(sum == (me + n - 1) % n);
    shmem_finalize();
    return 0;
}
