/* A compute graph on the program's own threads: a list of small operations with a barrier after
 * each, as in the decoding step of a language model. The number of active threads changes from graph
 * to graph. Compares Consort's barriers with a spin barrier, with the barrier of the thread library,
 * and with OpenMP if the compiler has it.
 *
 *     cc -O2 -fopenmp compute_graph.c -lconsort && ./a.out THREADS OPERATIONS ROUNDS */
#include <consort.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLOATS = 512, GRAPHS = 20, MOST_THREADS = 64, MOST_ROUNDS = 99 };

static int threads = 2, operations = 100, rounds = 5;

static void check(int code)
{
    if (code != CONSORT_OK) {
        fprintf(stderr, "%s\n", consort_error_message());
        exit(1);
    }
}

/* The graph: each operation smooths one vector into the other. */

static float vectors[2][FLOATS + 2];

static void reset(void)
{
    memset(vectors, 0, sizeof vectors);
    for (int i = 1; i <= FLOATS; i++)
        vectors[0][i] = (float)(i % 7);
}

/* Computes the part of one of `active` threads. It reads what the neighbours wrote before. */
static void operate(int operation, int rank, int active)
{
    const float *from = vectors[operation % 2];
    float *to = vectors[(operation + 1) % 2];
    int last = FLOATS * (rank + 1) / active;
    for (int i = FLOATS * rank / active + 1; i <= last; i++)
        to[i] = (from[i - 1] + 2 * from[i] + from[i + 1]) / 4;
}

/* The number of active threads of a graph. */
static int active_in(int graph)
{
    return threads - graph % threads;
}

/* The barriers: one for each number of active threads. */

typedef struct {
    int rank;
    consort_pe *pe;
    consort_team *teams[MOST_THREADS + 1];
} worker;

typedef void barrier_function(worker *me, int active);

static struct {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_int phase;
} spins[MOST_THREADS + 1];

static void spin(worker *me, int active)
{
    (void)me;
    int phase = atomic_load(&spins[active].phase);
    if (atomic_fetch_add(&spins[active].arrived, 1) == active - 1) {
        atomic_store(&spins[active].arrived, 0);
        atomic_store(&spins[active].phase, phase + 1);
        return;
    }
    while (atomic_load(&spins[active].phase) == phase)
        ;
}

static pthread_barrier_t of_threads[MOST_THREADS + 1];

static void of_thread_library(worker *me, int active)
{
    (void)me;
    pthread_barrier_wait(&of_threads[active]);
}

static consort_barrier *of_consort[MOST_THREADS + 1];

static void of_consort_barrier(worker *me, int active)
{
    (void)me;
    check(consort_barrier_wait(of_consort[active], NULL));
}

static void of_consort_team(worker *me, int active)
{
    check(consort_team_barrier(me->teams[active]));
}

/* The program's threads. */

static consort_job *job;
static barrier_function *barrier;

/* Joins the job, and forms a team for each number of active threads. */
static void join(worker *me)
{
    check(consort_join(job, me->rank, &me->pe));
    consort_team *world = consort_world(me->pe);
    me->teams[threads] = world;
    for (int active = 1; active < threads; active++)
        check(consort_team_strided(world, 0, 1, active, &me->teams[active]));
}

static void leave(worker *me)
{
    for (int active = me->rank + 1; active < threads; active++)
        check(consort_team_free(me->teams[active]));
    check(consort_leave(me->pe));
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* OpenMP's threads go on spinning after a region, next to the threads of the next kind. */
static void rest(void)
{
    struct timespec while_they_spin = {0, 20000000};
    nanosleep(&while_they_spin, NULL);
}

static double elapsed;

static void *work(void *argument)
{
    worker *me = argument;
    if (barrier == of_consort_team)
        join(me);
    barrier(me, threads);
    double begin = seconds();
    for (int graph = 0; graph < GRAPHS; graph++) {
        int active = active_in(graph);
        for (int i = 0; me->rank < active && i < operations; i++) {
            operate(graph * operations + i, me->rank, active);
            barrier(me, active);
        }
        barrier(me, threads); /* threads that were not active have waited here */
    }
    if (me->rank == 0)
        elapsed = seconds() - begin;
    if (barrier == of_consort_team)
        leave(me);
    return NULL;
}

static void on_own_threads(barrier_function *wait)
{
    static worker workers[MOST_THREADS];
    pthread_t started[MOST_THREADS];
    barrier = wait;
    check(consort_job_create(threads, NULL, &job));
    for (int rank = 0; rank < threads; rank++) {
        workers[rank].rank = rank;
        if (pthread_create(&started[rank], NULL, work, &workers[rank]) != 0)
            abort();
    }
    for (int rank = 0; rank < threads; rank++)
        pthread_join(started[rank], NULL);
    consort_job_destroy(job);
}

#ifdef _OPENMP
#include <omp.h>

static void on_openmp(barrier_function *wait)
{
    (void)wait;
    double begin = seconds();
    for (int graph = 0; graph < GRAPHS; graph++) {
        int active = active_in(graph);
#pragma omp parallel num_threads(active)
        for (int i = 0; i < operations; i++) {
            operate(graph * operations + i, omp_get_thread_num(), active);
#pragma omp barrier
        }
    }
    elapsed = seconds() - begin;
}
#endif

/* The comparison. */

static const struct {
    const char *name;
    void (*run)(barrier_function *wait);
    barrier_function *wait;
} kinds[] = {
    {"spin barrier", on_own_threads, spin},
    {"pthread_barrier_wait", on_own_threads, of_thread_library},
#ifdef _OPENMP
    {"OpenMP", on_openmp, NULL},
#endif
    {"consort_barrier_wait", on_own_threads, of_consort_barrier},
    {"consort_team_barrier", on_own_threads, of_consort_team},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
    int *options[] = {&threads, &operations, &rounds};
    for (int i = 1; i < count && i <= 3; i++)
        *options[i - 1] = atoi(arguments[i]);
    if (threads < 1 || threads > MOST_THREADS || operations < 1 || rounds < 1 ||
        rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: %s [THREADS] [OPERATIONS] [ROUNDS]\n", arguments[0]);
        return 2;
    }
    for (int active = 1; active <= threads; active++) {
        pthread_barrier_init(&of_threads[active], NULL, (unsigned)active);
        check(consort_barrier_create(active, &of_consort[active]));
    }
    static float expected[2][FLOATS + 2];
    reset();
    for (int operation = 0; operation < GRAPHS * operations; operation++)
        operate(operation, 0, 1);
    memcpy(expected, vectors, sizeof vectors);
    static double times[KINDS][MOST_ROUNDS];
    for (int round = 0; round < rounds; round++) /* interleaved */
        for (int kind = 0; kind < KINDS; kind++) {
            reset();
            rest();
            kinds[kind].run(kinds[kind].wait);
            times[kind][round] = elapsed;
            if (memcmp(expected, vectors, sizeof vectors) != 0) {
                fprintf(stderr, "%s: wrong results\n", kinds[kind].name);
                return 1;
            }
        }
    printf("microseconds an operation of %d floats, median of %d rounds, 1 to %d threads\n", FLOATS,
           rounds, threads);
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(times[kind], (size_t)rounds, sizeof **times, compare);
        printf("%-22s%8.2f\n", kinds[kind].name,
               1e6 * times[kind][rounds / 2] / (GRAPHS * operations));
    }
    return 0;
}
