/* ScaLAPACK's Cholesky factorization, with the matrix of lab/apps/cholesky.
 *
 *     mpirun -n 4 ./pdpotrf SIZE BLOCK GRID_ROWS GRID_COLUMNS RUNS
 */
#include <math.h>

#include "driver.h"
#include "scalapack.h"

static double definite(int order, int i, int j)
{
    double drawn = i > j ? entry(0, i, j) : entry(0, j, i);
    return i == j ? drawn + 8.0 * (order + 1) : drawn;
}

int main(int argc, char **argv)
{
    const char *usage = "pdpotrf SIZE BLOCK GRID_ROWS GRID_COLUMNS RUNS";
    MPI_Init(&argc, &argv);
    openblas_set_num_threads(1);
    int size = argument(argc, argv, 1, usage), block = argument(argc, argv, 2, usage);
    int rows = argument(argc, argv, 3, usage), columns = argument(argc, argv, 4, usage);
    int runs = argument(argc, argv, 5, usage), context, one = 1, info = 0;
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);

    struct matrix a = matrix(context, size, block);
    double *seconds = calloc(runs, sizeof *seconds);
    for (int run = 0; run < runs && info == 0; run++) {
        FOR_ALL_ENTRIES(a, i, j) ENTRY(a) = definite(size, i, j);
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        pdpotrf_("L", &size, a.data, &one, &one, a.descriptor, &info);
        seconds[run] = slowest(begun);
    }

    /* Check A x - L (L^T x), where all entries of x are 1: the sums of rows. */
    double *transposed = calloc(size, sizeof(double)), *product = calloc(size, sizeof(double));
    FOR_ALL_ENTRIES(a, i, j) if (i >= j) transposed[j] += ENTRY(a);
    MPI_Allreduce(MPI_IN_PLACE, transposed, size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    FOR_ALL_ENTRIES(a, i, j) if (i >= j) product[i] += ENTRY(a) * transposed[j];
    MPI_Allreduce(MPI_IN_PLACE, product, size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int right = info == 0;
    for (int i = 0; i < size; i += 37) {
        double sum = 0.0;
        for (int j = 0; j < size; j++)
            sum += definite(size, i, j);
        right &= fabs(sum - product[i]) < 1e-10 * sum;
    }
    report("pdpotrf", seconds, runs, right);
    MPI_Finalize();
    return right ? 0 : 3;
}
