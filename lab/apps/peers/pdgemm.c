/* ScaLAPACK's matrix multiplication, with the matrices of lab/apps/summa.
 *
 *     mpirun -n 4 ./pdgemm SIZE BLOCK GRID_ROWS GRID_COLUMNS RUNS
 */
#include "driver.h"
#include "scalapack.h"

int main(int argc, char **argv)
{
    const char *usage = "pdgemm SIZE BLOCK GRID_ROWS GRID_COLUMNS RUNS";
    MPI_Init(&argc, &argv);
    openblas_set_num_threads(1);
    int size = argument(argc, argv, 1, usage), block = argument(argc, argv, 2, usage);
    int rows = argument(argc, argv, 3, usage), columns = argument(argc, argv, 4, usage);
    int runs = argument(argc, argv, 5, usage), context, one = 1;
    Cblacs_get(0, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);

    struct matrix a = matrix(context, size, block), b = matrix(context, size, block);
    struct matrix c = matrix(context, size, block);
    FOR_ALL_ENTRIES(a, i, j) ENTRY(a) = entry(1, i, j);
    FOR_ALL_ENTRIES(b, i, j) ENTRY(b) = entry(2, i, j);
    double *seconds = calloc(runs, sizeof *seconds), alpha = 1.0, beta = 0.0;
    for (int run = 0; run < runs; run++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        pdgemm_("N", "N", &size, &size, &size, &alpha, a.data, &one, &one, a.descriptor, b.data,
                &one, &one, b.descriptor, &beta, c.data, &one, &one, c.descriptor);
        seconds[run] = slowest(begun);
    }

    /* Check a few entries of each process. They are integers. */
    int right = 1, all;
    FOR_ALL_ENTRIES(c, i, j) {
        if ((i * 31 + j * 17) % 4001 == 0) {
            double sum = 0.0;
            for (int k = 0; k < size; k++)
                sum += entry(1, i, k) * entry(2, k, j);
            right &= sum == ENTRY(c);
        }
    }
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    report("pdgemm", seconds, runs, all);
    MPI_Finalize();
    return all ? 0 : 3;
}
