/* Programs that end without shmem_finalize, or by another PE's shmem_global_exit. The first argument
 * selects the end, and the second names files for buffered output. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long word, started, lock;
static FILE *kept;

static void handler(void)
{
    fputs(", and the handler", kept);
}

/* Ends the program from within a function. */
static void leave(void)
{
    if (shmem_my_pe() == shmem_n_pes() - 1)
        exit(0);
}

static void wait_for_the_last(const char *what)
{
    int pes = shmem_n_pes(), is_last = shmem_my_pe() == pes - 1;
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
    if (is_last && strstr(what, "lock") != NULL)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    leave();
    if (strstr(what, "lock") != NULL)
        shmem_set_lock(&lock);
    if (strstr(what, "word") != NULL)
        shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
    if (strstr(what, "team") != NULL)
        shmem_team_sync(team);
    if (strstr(what, "sum") != NULL)
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &word, &started, 1);
    while (shmem_n_pes() == pes)
        shmem_barrier_all();
}

static int is_ended(const char *what, const char *name)
{
    int own = shmem_my_pe();
    if (own == 0) {
        for (int pe = 1; pe < shmem_n_pes(); pe++)
            shmem_long_wait_until(&started, SHMEM_CMP_EQ, shmem_n_pes() - 1);
        shmem_global_exit(7);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name, own);
    kept = fopen(path, "w");
    if (kept == NULL)
        return 9;
    fputs("the stream", kept);
    atexit(handler);
    shmem_long_atomic_add(&started, 1, 0);
    if (strstr(what, "waits") != NULL)
        shmem_barrier_all();
    if (strstr(what, "returns") != NULL) {
        usleep(200000);
        return 0;
    }
    time_t begun = time(NULL);
    while (time(NULL) < begun + 30) {
        if (strstr(what, "asks") != NULL && shmem_my_pe() != own)
            return 9;
        if (strstr(what, "puts") != NULL)
            shmem_long_p(&word, 1, 0);
    }
    return 9;
}

/* Crashes on the last PE, with most of a heap allocated and little of it used. */
static int crashes(int is_last)
{
    char *memory = shmem_malloc(400 << 20);
    if (memory == NULL)
        return 9;
    memset(memory, 1, 1 << 20);
    shmem_barrier_all();
    if (is_last)
        *(volatile int *)NULL = 1;
    shmem_barrier_all();
    return 9;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    /* Before shmem_init only this variable gives the rank. */
    const char *rank = getenv("CONSORT_RANK");
    if (strcmp(what, "never all") == 0 || (strcmp(what, "never one") == 0 && strcmp(rank, "1") == 0))
        return 0;
    shmem_init();
    int is_last = shmem_my_pe() == shmem_n_pes() - 1;
    if (strcmp(what, "return 3") == 0)
        return 3;
    if (strcmp(what, "crashes") == 0)
        return crashes(is_last);
    if (strstr(what, "leaves") != NULL)
        wait_for_the_last(what);
    if (strstr(what, "ended") != NULL)
        return is_ended(what, count > 2 ? arguments[2] : "kept");
    if (strcmp(what, "twice") == 0)
        shmem_init();
    shmem_long_atomic_add(&word, 1, 0);
    if (strcmp(what, "all") == 0 || strcmp(what, "twice") == 0 || is_last)
        exit(strcmp(what, "all") == 0 ? 256 : 0);
    shmem_finalize();
    return 0;
}
