/* Each PE puts its number into the next PE's variable, and waits for the number of the previous
 * one.
 *
 *     consort cc ring.c -o ring
 *     consort run -n 4 ./ring
 */
#include <shmem.h>
#include <stdio.h>

static int before = -1; /* a static variable is symmetric */

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_int_p(&before, me, (me + 1) % pes);
    shmem_int_wait_until(&before, SHMEM_CMP_NE, -1);
    printf("PE %d of %d: PE %d is before me\n", me, pes, before);
    shmem_finalize();
    return 0;
}
