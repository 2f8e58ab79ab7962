/* Threads of a program join a job and add their ranks. */
#include <consort.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4 };

static void *add(void *job)
{
    consort_pe *pe;
    int code = consort_join(job, CONSORT_ANY_RANK, &pe);
    if (code == CONSORT_OK) {
        consort_team *world = consort_world(pe);
        double sum = consort_team_rank(world);
        code = consort_all_reduce(world, &sum, &sum, 1, CONSORT_DOUBLE, CONSORT_SUM);
        if (code == CONSORT_OK && consort_team_rank(world) == 0)
            printf("sum %g\n", sum);
        int left = consort_leave(pe);
        code = code != CONSORT_OK ? code : left;
    }
    if (code != CONSORT_OK)
        fprintf(stderr, "%s\n", consort_error_message());
    return NULL;
}

int main(void)
{
    consort_job *job;
    pthread_t threads[THREADS];
    if (consort_job_create(THREADS, NULL, &job) != CONSORT_OK) {
        fprintf(stderr, "%s\n", consort_error_message());
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add, job);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    consort_job_destroy(job);
    return 0;
}
