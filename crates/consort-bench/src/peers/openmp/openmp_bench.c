/* Times one block of parallel regions, or of barriers, of whatever OpenMP compiles this.
 *
 *     openmp_bench WORK THREADS LENGTH BLOCK_NS LIMIT_SECONDS
 *
 * WORK is a name of the table below. LENGTH is the number of doubles that a thread adds up in
 * `reduction`. Without arguments it prints the compiler.
 *
 * Regions, or barriers in one region, are in a row. Their number is the one that fits into the
 * block: warming up finds it, as for the threads of the caller. The program prints the time of one
 * in nanoseconds: by the clock of the thread that begins the regions, or of the slowest one in the
 * barriers. Past the limit it ends itself.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "cc"
#endif

static const double WARM_UP_NS = 50e3, RETRY_NS = 10e6;
enum { TRIES = 3, MOST_CALLS = 1000000 };

static int threads;
static size_t length;
static double *data;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static double regions(long calls)
{
    double start_ns = now_ns();
    for (long i = 0; i < calls; i++) {
#pragma omp parallel num_threads(threads)
        {
            /* Keeps the region, which has nothing to do. */
            __asm__ volatile("" ::: "memory");
        }
    }
    return now_ns() - start_ns;
}

static double reductions(long calls)
{
    double start_ns = now_ns();
    size_t all = length * (size_t)threads;
    for (long i = 0; i < calls; i++) {
        double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
        for (size_t at = 0; at < all; at++)
            sum += data[at];
        if (sum != (double)all) {
            fprintf(stderr, "the sum is %f, not %zu\n", sum, all);
            exit(3);
        }
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

static const struct work {
    const char *name;
    double (*block)(long calls);
} works[] = {
    {"parallel", regions},
    {"reduction", reductions},
    {"barrier", barriers},
};

/* Makes calls until their time is known, then a block of them. */
static double call_ns(double (*block)(long calls), double block_ns)
{
    long calls = 1;
    int tries = 0;
    double fastest_ns = 0;
    for (;;) {
        double ns = block(calls);
        fastest_ns = tries == 0 || ns < fastest_ns ? ns : fastest_ns;
        tries++;
        if (fastest_ns < WARM_UP_NS && calls < MOST_CALLS) {
            calls *= 4;
            tries = 0;
        } else if (tries == TRIES || fastest_ns >= RETRY_NS) {
            break;
        }
    }
    double fitting = block_ns * calls / (fastest_ns > 1 ? fastest_ns : 1);
    calls = fitting < 1 ? 1 : fitting > MOST_CALLS ? MOST_CALLS : (long)fitting;
    return block(calls) / calls;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        printf("%s\n", COMPILER);
        return 0;
    }
    if (argc != 6) {
        fprintf(stderr, "%s: WORK THREADS LENGTH BLOCK_NS LIMIT_SECONDS\n", argv[0]);
        return 2;
    }
    threads = atoi(argv[2]);
    length = (size_t)atol(argv[3]);
    alarm((unsigned)atoi(argv[5]));
    data = malloc(length * (size_t)threads * sizeof *data);
    if (!data) {
        fprintf(stderr, "%s: no memory for %zu doubles a thread\n", argv[0], length);
        return 3;
    }
    for (size_t at = 0; at < length * (size_t)threads; at++)
        data[at] = 1;
    int running = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    running = omp_get_num_threads();
    if (running != threads) {
        fprintf(stderr, "%s: %d threads instead of %d\n", argv[0], running, threads);
        return 3;
    }
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (!strcmp(argv[1], works[i].name)) {
            printf("%.2f\n", call_ns(works[i].block, atof(argv[4])));
            return 0;
        }
    fprintf(stderr, "%s: no work %s\n", argv[0], argv[1]);
    return 2;
}
