/* The benchmark FT of the NAS Parallel Benchmarks with FFTW's transforms over MPI. The plans are
 * measured, and leave their output transposed.
 *
 *     mpirun -n 4 ./fftw_mpi CLASS RUNS
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>

#include "driver.h"

static const struct class {
    char name;
    ptrdiff_t x, y, z;
    int iterations;
    double last[2]; /* the published checksum of the last iteration */
} classes[] = {
    {'S', 64, 64, 64, 6, {554.2683411902, 493.2597244941}},
    {'W', 128, 128, 32, 6, {550.4159734538, 523.9212247086}},
    {'A', 256, 256, 128, 6, {509.1487099959, 510.7917842803}},
    {'B', 512, 256, 256, 20, {512.4146770029, 511.5744692211}},
};

#define MODULO_2_46 ((UINT64_C(1) << 46) - 1)

/* Returns the state before random number `first`. */
static uint64_t state(uint64_t first)
{
    uint64_t state = 314159265, square = 1220703125;
    for (; first > 0; first /= 2, square = square * square & MODULO_2_46)
        if (first % 2)
            state = state * square & MODULO_2_46;
    return state;
}

static double next(uint64_t *state)
{
    *state = *state * 1220703125 & MODULO_2_46;
    return (double)*state / (double)(MODULO_2_46 + 1);
}

static double wave(ptrdiff_t at, ptrdiff_t extent)
{
    double number = at < extent / 2 ? (double)at : (double)(at - extent);
    return exp(-4e-6 * M_PI * M_PI * number * number);
}

int main(int argc, char **argv)
{
    const char *usage = "fftw_mpi S|W|A|B RUNS";
    const struct class *class = NULL;
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    for (int i = 0; i < 4 && argc > 1; i++)
        if (classes[i].name == argv[1][0])
            class = &classes[i];
    int runs = argument(argc, argv, class ? 2 : argc, usage);
    ptrdiff_t x = class->x, y = class->y, z = class->z, own_z, first_z, own_y, first_y;
    ptrdiff_t sizes[] = {z, y, x};
    ptrdiff_t points = fftw_mpi_local_size_many_transposed(
        3, sizes, 1, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, MPI_COMM_WORLD, &own_z,
        &first_z, &own_y, &first_y);
    fftw_complex *space = fftw_alloc_complex(points), *spectrum = fftw_alloc_complex(points);
    fftw_complex *work = fftw_alloc_complex(points);
    fftw_plan forward =
        fftw_mpi_plan_dft_3d(z, y, x, space, spectrum, MPI_COMM_WORLD, FFTW_FORWARD,
                             FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT);
    fftw_plan inverse =
        fftw_mpi_plan_dft_3d(z, y, x, work, space, MPI_COMM_WORLD, FFTW_BACKWARD,
                             FFTW_MEASURE | FFTW_MPI_TRANSPOSED_IN);
    double *along_x = calloc(x, sizeof(double));
    for (ptrdiff_t i = 0; i < x; i++)
        along_x[i] = wave(i, x);

    double *seconds = calloc(runs, sizeof *seconds);
    double complex checksum = 0.0;
    for (int run = 0; run < runs; run++) {
        uint64_t random = state(2 * (uint64_t)(first_z * y * x));
        for (ptrdiff_t i = 0; i < own_z * y * x; i++) {
            double real = next(&random);
            space[i] = real + I * next(&random);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        fftw_execute(forward);
        for (int iteration = 0; iteration < class->iterations; iteration++) {
            for (ptrdiff_t j = 0; j < own_y; j++)
                for (ptrdiff_t k = 0; k < z; k++) {
                    double factor = wave(first_y + j, y) * wave(k, z);
                    ptrdiff_t row = (j * z + k) * x;
                    for (ptrdiff_t i = row; i < row + x; i++)
                        work[i] = spectrum[i] *= factor * along_x[i - row];
                }
            fftw_execute(inverse);
            double complex own = 0.0;
            for (ptrdiff_t n = 1; n <= 1024; n++) {
                ptrdiff_t i = n % x, j = 3 * n % y, k = 5 * n % z - first_z;
                if (0 <= k && k < own_z)
                    own += space[(k * y + j) * x + i];
            }
            MPI_Allreduce(&own, &checksum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
            checksum /= (double)(x * y * z);
        }
        seconds[run] = slowest(begun);
    }
    int right = fabs(creal(checksum) / class->last[0] - 1.0) < 1e-12 &&
                fabs(cimag(checksum) / class->last[1] - 1.0) < 1e-12;
    report("fftw_mpi", seconds, runs, right);
    MPI_Finalize();
    return right ? 0 : 3;
}
