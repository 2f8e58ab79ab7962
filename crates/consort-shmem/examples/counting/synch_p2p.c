/* The kernel Synch_p2p: a stencil whose rows pass through the PEs as a pipeline, by flags and by
 * counting puts (3.3, Listing 1.6).
 *
 *     consort cc -O2 synch_p2p.c -o synch_p2p
 *     consort run -n 4 ./synch_p2p [WIDTH [ROWS [SWEEPS]]]
 *
 * Each PE has a strip of the WIDTH columns. The final value in the last corner is known, and
 * checked.
 */
#include "experiment.h"

static double *vector, *src, *dst;
static int *flags;
static shmemx_ct_t counter;
static long rows, first, last, segment;
static int me, pes;

#define ARRAY(i, j) vector[(i) - first + 1 + (j) * (segment + 1)]

/* One sweep over the rows. */
static void sweep(int counting)
{
    for (long j = 1; j < rows; j++) {
        if (me > 0) {
            if (counting)
                shmemx_ct_wait(counter, j);
            else
                shmem_int_wait_until(&flags[j], SHMEM_CMP_EQ, 1);
            ARRAY(first - 1, j) = dst[j];
        }
        for (long i = first; i <= last; i++)
            ARRAY(i, j) = ARRAY(i - 1, j) + ARRAY(i, j - 1) - ARRAY(i - 1, j - 1);
        if (me != pes - 1) {
            src[j] = ARRAY(last, j);
            if (counting) {
                shmemx_putmem_ct(counter, &dst[j], &src[j], sizeof(double), me + 1);
            } else {
                shmem_putmem(&dst[j], &src[j], sizeof(double), me + 1);
                shmem_fence();
                shmem_int_p(&flags[j], 1, me + 1);
            }
        }
    }
}

/* Sets the borders: the first row, and the first column, whose corner the earlier sweeps have
 * changed. */
static void begin(void)
{
    memset(vector, 0, (size_t)((segment + 1) * rows) * sizeof *vector);
    for (long i = first; i <= last; i++)
        ARRAY(i, 0) = (double)i;
    if (me > 0)
        ARRAY(first - 1, 0) = (double)(first - 1);
    else
        for (long j = 0; j < rows; j++)
            ARRAY(0, j) = (double)j;
    memset(flags, 0, (size_t)rows * sizeof *flags);
    shmemx_ct_set(counter, 0);
    shmem_barrier_all();
}

/* Returns the shortest time, measured on the slowest PE. */
static double shortest(int counting, long sweeps)
{
    static double own, slowest;
    double shortest = 1e30;
    for (; sweeps > 0; sweeps--) {
        begin();
        double begun = now();
        sweep(counting);
        own = now() - begun;
        if (me == pes - 1)
            check(ARRAY(last, rows - 1) == (double)(last + rows - 1), "the last corner is wrong");
        shmem_double_max_reduce(SHMEM_TEAM_WORLD, &slowest, &own, 1);
        shortest = slowest < shortest ? slowest : shortest;
    }
    return shortest;
}

int main(int argc, char **argv)
{
    shmem_init();
    long width = given(argc, argv, 1, 1280), sweeps = given(argc, argv, 3, 10);
    rows = given(argc, argv, 2, 1280);
    me = shmem_my_pe();
    pes = shmem_n_pes();
    check(width > pes && rows > 1 && sweeps > 0, "use more columns than PEs, and at least 2 rows");
    /* Column 0 is the border, and belongs to the first PE. */
    first = me * (width - 1) / pes + 1;
    last = (me + 1) * (width - 1) / pes;
    segment = last - first + 1;
    vector = malloc((size_t)((segment + 1) * rows) * sizeof *vector);
    src = malloc((size_t)rows * sizeof *src);
    dst = shmem_calloc((size_t)rows, sizeof *dst);
    flags = shmem_calloc((size_t)rows, sizeof *flags);
    check(vector && src && dst && flags, "not enough memory");
    shmemx_ct_create(&counter);
    double additions = 2e-9 * (double)(width - 1) * (double)(rows - 1);
    double by_flags = shortest(0, sweeps), counting = shortest(1, sweeps);
    if (me == 0)
        printf("%ld x %ld on %d PEs: %.3f GFLOP/s by flags, %.3f by counting puts, %.2f x\n", width,
               rows, pes, additions / by_flags, additions / counting, by_flags / counting);
    shmemx_ct_free(&counter);
    shmem_finalize();
    return 0;
}
