/* Regions of the OpenMP that compiles this, as a library that is loaded when it is used.
 *
 * The threads are the library's. A region has `steps` steps with a barrier between two of them.
 */
#include <omp.h>

typedef void part_fn(void *context, long step, int rank);

/* Returns the number of threads that ran the region. */
int fork_join_run(int threads, long steps, part_fn *part, void *context)
{
    int ran = 0;
#pragma omp parallel num_threads(threads)
    {
        int rank = omp_get_thread_num();
        if (rank == 0)
            ran = omp_get_num_threads();
        if (omp_get_num_threads() == threads)
            for (long step = 0; step < steps; step++) {
                if (step > 0) {
#pragma omp barrier
                }
                part(context, step, rank);
            }
    }
    return ran;
}
