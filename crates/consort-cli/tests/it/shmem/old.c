/* The names of version 1.0, which are still supported. */
#include <mpp/shmem.h>
#include <stdio.h>

int main(void)
{
    start_pes(0);
    int own = _my_pe(), pes = _num_pes();
    long *word = shmalloc(sizeof(long));
    word = shrealloc(word, 2 * sizeof(long));
    long *aligned = shmemalign(4096, sizeof(long));
    shmem_long_p(word, own, (own + 1) % pes);
    shmem_barrier_all();
    if (*word != (own + pes - 1) % pes || (size_t)aligned % 4096 != 0)
        puts("wrong");
    shfree(word);
    shfree(aligned);
    return 0;
}
