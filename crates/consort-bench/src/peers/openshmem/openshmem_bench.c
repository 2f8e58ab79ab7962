/* Times routines of the OpenSHMEM that compiles this, on 2 PEs.
 *
 *     openshmem_bench BUDGET_SECONDS
 *
 * PE 0 prints, for each kind of work, a line `time NS NAME`: the median of blocks of calls in a
 * row. The time of a block is that of the slower PE. In a ping-pong PEs take turns, and its time
 * is one way. Raw kinds are C11 loads and stores in the peer's memory. At the end PE 0 prints
 * `done`.
 */
#include <sched.h>
#include <shmem.h>
#ifdef CONSORT_SHMEM_H
#include <shmemx.h>
#endif
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 11, LONGEST = 131072, WORK_WORDS = LONGEST / 2 + 1 };

/* The words that peers write and wait for, each on its own lines. */
static struct place {
    _Alignas(128) char data[128];
    _Alignas(128) long flag;
    _Alignas(128) uint64_t signal;
} place;
static struct raw {
    _Alignas(128) _Atomic long data;
    _Alignas(128) _Atomic long flag;
} *own_raw, *their_raw;
static long pSync[SHMEM_REDUCE_SYNC_SIZE];
static double pWrk[WORK_WORDS > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? WORK_WORDS
                                                              : SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static double elapsed, *source, *target;
static char sent[128];
static int own, other;
/* The number of bytes or elements of a call. */
static size_t length;
/* The number of a ping-pong's round. */
static long turn;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void barrier_all(void)
{
    shmem_barrier_all();
}

static void sync_all(void)
{
    shmem_sync_all();
}

static void sum_of_set(void)
{
    shmem_double_sum_to_all(target, source, (int)length, 0, 0, 2, pWrk, pSync);
}

static void raw_line_send(void)
{
    atomic_store_explicit(&their_raw->flag, turn, memory_order_release);
}

static void raw_lines_send(void)
{
    atomic_store_explicit(&their_raw->data, turn, memory_order_relaxed);
    atomic_store_explicit(&their_raw->flag, turn, memory_order_release);
}

static void raw_receive(void)
{
    /* If PEs share a core, the other one has to run. */
    for (int looks = 1; atomic_load_explicit(&own_raw->flag, memory_order_acquire) < turn; looks++)
        if (looks % 4096 == 0)
            sched_yield();
}

static void raw_lines_receive(void)
{
    raw_receive();
    if (atomic_load_explicit(&own_raw->data, memory_order_relaxed) != turn)
        abort();
}

static void check_data(void)
{
    if (memcmp(place.data, &turn, sizeof turn))
        abort();
}

static void flag_send(void)
{
    shmem_putmem(place.data, sent, length, other);
    shmem_fence();
    shmem_long_p(&place.flag, turn, other);
}

static void flag_receive(void)
{
    shmem_long_wait_until(&place.flag, SHMEM_CMP_GE, turn);
    check_data();
}

/* Routines of 1.5, and of counting puts. */
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION > 4
#define OF_1_5(call) call
#else
#define OF_1_5(call)
#endif
#ifdef CONSORT_SHMEM_H
#define COUNTING(call) call
static shmemx_ct_t counter;
#else
#define COUNTING(call)
#endif

static void sum_of_team(void)
{
    OF_1_5(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, target, source, length);)
}

static void signal_send(void)
{
    OF_1_5(shmem_putmem_signal(place.data, sent, length, &place.signal, (uint64_t)turn,
                               SHMEM_SIGNAL_SET, other);)
}

static void signal_receive(void)
{
    OF_1_5(shmem_signal_wait_until(&place.signal, SHMEM_CMP_GE, (uint64_t)turn);)
    check_data();
}

static void counting_send(void)
{
    COUNTING(shmemx_putmem_ct(counter, place.data, sent, length, other);)
}

static void counting_receive(void)
{
    COUNTING(shmemx_ct_wait(counter, turn);)
    check_data();
}

/* Work with `receive` is a ping-pong. */
static const struct work {
    const char *name;
    size_t length;
    void (*call)(void), (*receive)(void);
    enum { ALL, RAW, SINCE_1_5, CONSORT } who;
} works[] = {
    {"raw, one line", 8, raw_line_send, raw_receive, RAW},
    {"raw, two lines", 8, raw_lines_send, raw_lines_receive, RAW},
    {"put, fence, flag, 8 B", 8, flag_send, flag_receive, ALL},
    {"put, fence, flag, 24 B", 24, flag_send, flag_receive, ALL},
    {"put_signal, 8 B", 8, signal_send, signal_receive, SINCE_1_5},
    {"putmem_ct, 8 B", 8, counting_send, counting_receive, CONSORT},
    {"putmem_ct, 24 B", 24, counting_send, counting_receive, CONSORT},
    {"barrier_all", 0, barrier_all, NULL, ALL},
    {"sync_all", 0, sync_all, NULL, ALL},
    {"double_sum_to_all, 1", 1, sum_of_set, NULL, ALL},
    {"double_sum_to_all, 1024", 1024, sum_of_set, NULL, ALL},
    {"double_sum_to_all, 131072", LONGEST, sum_of_set, NULL, ALL},
    {"double_sum_reduce, 1", 1, sum_of_team, NULL, SINCE_1_5},
    {"double_sum_reduce, 1024", 1024, sum_of_team, NULL, SINCE_1_5},
    {"double_sum_reduce, 131072", LONGEST, sum_of_team, NULL, SINCE_1_5},
    {"raw, one line, again", 8, raw_line_send, raw_receive, RAW},
};

static int can(const struct work *work)
{
    int since_1_5 = 0, consort = 0;
    OF_1_5(since_1_5 = 1;)
    COUNTING(consort = 1;)
    return work->who == ALL || (work->who == RAW && their_raw) ||
           (work->who == SINCE_1_5 && since_1_5) || (work->who == CONSORT && consort);
}

static void rounds(const struct work *work, int calls)
{
    if (!work->receive)
        while (calls--)
            work->call();
    else
        for (; calls > 0; calls--) {
            turn++;
            memcpy(sent, &turn, sizeof turn);
            for (int sender = 0; sender < 2; sender++)
                if (sender == own)
                    work->call();
                else
                    work->receive();
        }
}

/* Returns the seconds of the slower PE over `calls` calls; the same on both. */
static double block(const struct work *work, int calls)
{
    shmem_barrier_all();
    double start = now();
    rounds(work, calls);
    elapsed = now() - start;
    shmem_barrier_all();
    double here = elapsed, there = shmem_double_g(&elapsed, other);
    shmem_barrier_all();
    return here > there ? here : there;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const struct work *work, double budget)
{
    double blocks[BLOCKS], ways = work->receive ? 2 : 1;
    int calls = 1;
    length = work->length;
    turn = 0;
    place.flag = 0;
    place.signal = 0;
    atomic_store(&own_raw->flag, 0);
    COUNTING(shmemx_ct_set(counter, 0);)
    shmem_barrier_all();
    while (block(work, calls) < budget / BLOCKS && calls < 1 << 22)
        calls *= 2;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block(work, calls) / calls / ways;
    qsort(blocks, BLOCKS, sizeof *blocks, ascending);
    if (own == 0)
        printf("time %.2f %s\n", blocks[BLOCKS / 2] * 1e9, work->name);
}

int main(int argc, char **argv)
{
    double budget = argc > 1 ? atof(argv[1]) : 0.02;
    shmem_init();
    own = shmem_my_pe();
    other = 1 - own;
    source = shmem_malloc(LONGEST * sizeof *source);
    target = shmem_malloc(LONGEST * sizeof *target);
    own_raw = shmem_align(_Alignof(struct raw), sizeof *own_raw);
    if (shmem_n_pes() != 2 || !source || !target || !own_raw)
        shmem_global_exit(2);
    memset(own_raw, 0, sizeof *own_raw);
    their_raw = shmem_ptr(own_raw, other);
    for (int i = 0; i < LONGEST; i++)
        source[i] = i % 7;
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    COUNTING(shmemx_ct_create(&counter);)
    shmem_barrier_all();
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (can(&works[i]))
            measure(&works[i], budget);
    if (own == 0)
        printf("done\n");
    fflush(stdout);
    shmem_finalize();
    return 0;
}
