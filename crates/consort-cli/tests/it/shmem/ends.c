/* The ends of programs: by themselves, by a failure, repeatedly, and in forked processes.
 * The argument selects the end; the test has the expected result. */
#define _GNU_SOURCE
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long word;

static void finalize(void)
{
    shmem_finalize();
}

static void child(void (*end)(int))
{
    pid_t process = fork();
    if (process == 0)
        end(7);
    int status = 0;
    waitpid(process, &status, 0);
    if (WEXITSTATUS(status) != 7)
        puts("the child did not end by itself");
}

static void *initialize(void *unused)
{
    int provided;
    shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided);
    return unused;
}

/* Communicates in all ways, which reveals any leftovers of the past. */
static void use(void)
{
    int pes = shmem_n_pes(), own = shmem_my_pe();
    long *heap = shmem_calloc(2, sizeof(long));
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
    word = own;
    shmem_barrier_all();
    shmem_long_p(heap, shmem_long_g(&word, (own + 1) % pes), own);
    shmem_long_sum_reduce(team, heap + 1, heap, 1);
    if (own % 2 == 0) {
        static long sum, sync[SHMEM_REDUCE_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
        shmem_long_sum_to_all(&sum, &word, 1, 0, 1, (pes + 1) / 2, work, sync);
        if (sum != (pes - 1) / 2 * ((pes - 1) / 2 + 1))
            printf("PE %d: %ld of an active set\n", own, sum);
    }
    if (heap[0] != (own + 1) % pes || heap[1] != pes * (pes - 1) / 2)
        printf("PE %d: %ld, %ld\n", own, heap[0], heap[1]);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "child before") == 0)
        child(exit);
    if (strcmp(what, "never") == 0)
        return 0;
    if (strcmp(what, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, initialize, NULL);
        pthread_join(thread, NULL);
    } else if (strncmp(what, "start_pes", 9) == 0) {
        start_pes(0);
    } else {
        shmem_init();
    }
    int own = shmem_my_pe(), pes = shmem_n_pes();
    if (strcmp(what, "child") == 0 || strcmp(what, "start_pes, child") == 0)
        child(exit);
    if (strcmp(what, "at exit") == 0 || strcmp(what, "exit at exit") == 0)
        atexit(finalize);
    if (strcmp(what, "exit") == 0 && own == pes - 1)
        exit(3);
    if (strstr(what, "misuse") != NULL && own == pes - 1)
        shmem_long_p(&word, 1, 999);
    if (strstr(what, "global") != NULL && own == pes - 1) {
        if (strstr(what, "handler") != NULL)
            atexit(finalize);
        shmem_global_exit(strstr(what, "0") != NULL ? 0 : 5);
    }
    if (strcmp(what, "again") == 0) {
        for (int round = 0; round < 3; round++) {
            use();
            shmem_finalize();
            int is = 1;
            shmem_query_initialized(&is);
            if (is)
                puts("it is initialized");
            shmem_init();
        }
        use();
    }
    if (strcmp(what, "inner") == 0) {
        shmem_init();
        if (own == pes - 1)
            usleep(300000);
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        word = 1;
        shmem_finalize();
        clock_gettime(CLOCK_MONOTONIC, &after);
        double seconds = after.tv_sec - before.tv_sec + 1e-9 * (after.tv_nsec - before.tv_nsec);
        if (pes > 1 && own == 0 && seconds < 0.1)
            puts("the inner end did not wait");
    }
    shmem_barrier_all();
    if (strstr(what, "at exit") == NULL && strncmp(what, "start_pes", 9) != 0)
        shmem_finalize();
    return 0;
}
