/* Times blocks of parallel regions, barriers or reductions of the OpenMP that compiles this.
 *
 *     openmp_bench WORK THREADS BYTES BLOCK_NS BLOCKS LIMIT_SECONDS
 *
 * WORK is a name in the table below. BYTES is the size of the doubles that a thread
 *
 *     sum                   adds up in a region
 *     reduce, all_reduce    contributes as a vector, in one region for all calls
 *
 * `parallel` and `barrier` use none. Without arguments it prints "library" and the compiler.
 *
 * Regions, barriers and reductions are in a row, on data that is not rewritten. Warming up finds
 * the number that fits into a block, as for the threads of the caller. The program prints
 *
 *     figure BYTES SAMPLE_NS SAMPLE_NS ...
 *
 * with the time of one of them in each block: for regions by the clock of the thread that begins
 * them, otherwise by that of the slowest thread. There are BLOCKS samples, or fewer if they take
 * too long. After the limit it ends itself.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
#if defined(__clang__)
#define COMPILER "clang " VERSION(__clang_major__, __clang_minor__, __clang_patchlevel__)
#elif defined(__GNUC__)
#define COMPILER "gcc " VERSION(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#else
#define COMPILER "cc"
#endif

#define PRAGMA(words) _Pragma(#words)

static const double WARM_UP_NS = 50e3, RETRY_NS = 10e6, LONGEST_NS = 10e6;
/* LINES doubles take two cache lines, because of the adjacent-line prefetcher. */
enum { TRIES = 3, MOST_CALLS = 1000000, LINES = 16 };

static int threads;
static size_t doubles;
/* The number of doubles in each thread's part. */
static size_t part;
static double *data, *targets;

/* The sums of three calls in turn, of one double and of vectors: when a thread that is one call
 * ahead clears a sum, no thread reads it any longer. */
#define ON_OWN_LINES __attribute__((aligned(sizeof(double) * LINES)))
static double ON_OWN_LINES one_a, ON_OWN_LINES one_b, ON_OWN_LINES one_c;
static double *vector_a, *vector_b, *vector_c;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void check(double sum, double expected)
{
    if (sum != expected) {
        fprintf(stderr, "the sum is %f, not %f\n", sum, expected);
        exit(3);
    }
}

static double regions(long calls)
{
    double start_ns = now_ns();
    for (long i = 0; i < calls; i++) {
#pragma omp parallel num_threads(threads)
        {
            /* Keeps the region, which is empty. */
            __asm__ volatile("" ::: "memory");
        }
    }
    return now_ns() - start_ns;
}

static double sums(long calls)
{
    double start_ns = now_ns();
    size_t all = doubles * (size_t)threads;
    for (long i = 0; i < calls; i++) {
        double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (size_t at = 0; at < all; at++)
            sum += data[at];
        check(sum, (double)all);
    }
    return now_ns() - start_ns;
}

static double barriers(long calls)
{
    double slowest_ns = 0;
#pragma omp parallel num_threads(threads) reduction(max : slowest_ns)
    {
#pragma omp barrier
        double start_ns = now_ns();
        for (long i = 0; i < calls; i++) {
#pragma omp barrier
        }
        slowest_ns = now_ns() - start_ns;
    }
    return slowest_ns;
}

/* A call in a region. The loop has one iteration per thread. Thread 0 clears the sum of the next
 * call, which all have read before the barrier that ended the last one. */
#define CALL(list, add, clear)                                                                     \
    PRAGMA(omp master)                                                                             \
    clear;                                                                                         \
    PRAGMA(omp for schedule(static) reduction(+ : list))                                           \
    for (int thread = 0; thread < threads; thread++)                                               \
        add

static const double *one_call(long call)
{
    switch (call % 3) {
    case 0:
        CALL(one_a, one_a += data[(size_t)thread * part], one_b = 0);
        return &one_a;
    case 1:
        CALL(one_b, one_b += data[(size_t)thread * part], one_c = 0);
        return &one_b;
    default:
        CALL(one_c, one_c += data[(size_t)thread * part], one_a = 0);
        return &one_c;
    }
}

static void add(double *sum, int thread)
{
    const double *contribution = data + (size_t)thread * part;
    for (size_t at = 0; at < doubles; at++)
        sum[at] += contribution[at];
}

static void clear(double *sum)
{
    memset(sum, 0, doubles * sizeof *sum);
}

static const double *vector_call(long call)
{
    switch (call % 3) {
    case 0:
        CALL(vector_a[:doubles], add(vector_a, thread), clear(vector_b));
        return vector_a;
    case 1:
        CALL(vector_b[:doubles], add(vector_b, thread), clear(vector_c));
        return vector_b;
    default:
        CALL(vector_c[:doubles], add(vector_c, thread), clear(vector_a));
        return vector_c;
    }
}

/* The root reads the sum in place; with `copies`, every thread copies it to its target. */
static inline double reductions(long calls, int copies)
{
    double slowest_ns = 0;
    one_a = 0;
    clear(vector_a);
#pragma omp parallel num_threads(threads) reduction(max : slowest_ns)
    {
        double *target = targets + (size_t)omp_get_thread_num() * part;
        const double *sum = target;
#pragma omp barrier
        double start_ns = now_ns();
        for (long i = 0; i < calls; i++) {
            sum = doubles == 1 ? one_call(i) : vector_call(i);
            if (copies)
                memcpy(target, sum, doubles * sizeof *sum);
        }
        slowest_ns = now_ns() - start_ns;
        const double *result = copies ? target : sum;
        check(result[0], threads);
        check(result[doubles - 1], threads);
    }
    return slowest_ns;
}

static double reduces(long calls)
{
    return reductions(calls, 0);
}

static double all_reduces(long calls)
{
    return reductions(calls, 1);
}

static const struct work {
    const char *name;
    double (*block)(long calls);
} works[] = {
    {"parallel", regions}, {"sum", sums},
    {"barrier", barriers}, {"reduce", reduces},
    {"all_reduce", all_reduces},
};

/* Returns the number of calls that fit into a block: makes calls until their time is known. */
static long fitting(double (*block)(long calls), double block_ns)
{
    long calls = 1;
    int tries = 0;
    double fastest_ns = 0;
    for (;;) {
        double ns = block(calls);
        fastest_ns = tries == 0 || ns < fastest_ns ? ns : fastest_ns;
        tries++;
        if (fastest_ns < WARM_UP_NS && calls < MOST_CALLS) {
            /* The last call of a block becomes each of the three sums in turn; the sum is
             * checked. */
            calls = 4 * calls + 1;
            tries = 0;
        } else if (tries == TRIES || fastest_ns >= RETRY_NS) {
            break;
        }
    }
    double fit = block_ns * calls / (fastest_ns > 1 ? fastest_ns : 1);
    return fit < 1 ? 1 : fit > MOST_CALLS ? MOST_CALLS : (long)fit;
}

static double *made(size_t count)
{
    void *memory = NULL;
    if (posix_memalign(&memory, sizeof(double) * LINES, (count + 1) * sizeof(double))) {
        fprintf(stderr, "no memory for %zu doubles\n", count);
        exit(3);
    }
    return memory;
}

/* The compiler's library keeps a thread's part of a sum on its stack. */
static void check_stack(void)
{
    struct rlimit limit;
    size_t bytes = doubles * sizeof(double);
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && bytes > limit.rlim_cur / 2) {
        fprintf(stderr, "a sum of %zu bytes does not fit on a stack of %zu: raise ulimit -s\n",
                bytes, (size_t)limit.rlim_cur);
        exit(3);
    }
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        printf("library %s\n", COMPILER);
        return 0;
    }
    if (argc != 7) {
        fprintf(stderr, "use: %s WORK THREADS BYTES BLOCK_NS BLOCKS LIMIT_SECONDS\n", argv[0]);
        return 2;
    }
    alarm((unsigned)atoi(argv[6]));
    const struct work *work = NULL;
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (!strcmp(argv[1], works[i].name))
            work = &works[i];
    if (!work) {
        fprintf(stderr, "no work %s\n", argv[1]);
        return 2;
    }
    threads = atoi(argv[2]);
    doubles = (size_t)atol(argv[3]) / sizeof(double);
    int vectors = work->block == reduces || work->block == all_reduces;
    if (vectors)
        check_stack();
    /* The parts of a sum are one array. */
    part = vectors ? (doubles + LINES - 1) / LINES * LINES : doubles;
    data = made(part * (size_t)threads);
    targets = made(part * (size_t)threads);
    vector_a = made(doubles);
    vector_b = made(doubles);
    vector_c = made(doubles);
    int running = 0;
#pragma omp parallel num_threads(threads)
    {
        size_t mine = part * (size_t)omp_get_thread_num();
        for (size_t at = mine; at < mine + part; at++) {
            data[at] = 1;
            targets[at] = 0;
        }
#pragma omp single
        running = omp_get_num_threads();
    }
    if (running != threads) {
        fprintf(stderr, "%d threads instead of %d\n", running, threads);
        return 3;
    }
    long calls = fitting(work->block, atof(argv[4]));
    printf("figure %s", argv[3]);
    double spent_ns = 0;
    for (int block = 0; block < atoi(argv[5]) && spent_ns < LONGEST_NS; block++) {
        double ns = work->block(calls);
        spent_ns += ns;
        printf(" %.2f", ns / calls);
    }
    printf("\n");
    return 0;
}
