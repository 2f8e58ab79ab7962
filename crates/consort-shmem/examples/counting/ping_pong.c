/* Half of a round trip between PEs 0 and 1: put, fence and flag against counting puts (3.1).
 *
 *     consort cc -O2 ping_pong.c -o ping_pong
 *     consort run -n 2 ./ping_pong [LONGEST [ROUNDS]]
 *
 * Messages begin at 8 bytes and double in size, up to LONGEST.
 */
#include "experiment.h"

static int flag;
static shmemx_ct_t counter;
static char *sent, *received;
static size_t length;
static int other;

static void send_flag(void)
{
    shmem_putmem(received, sent, length, other);
    shmem_fence();
    shmem_int_atomic_inc(&flag, other);
}

static void receive_flag(void)
{
    shmem_int_wait_until(&flag, SHMEM_CMP_NE, 0);
    flag = 0;
}

static void send_counted(void)
{
    shmemx_putmem_ct(counter, received, sent, length, other);
}

static void receive_counted(void)
{
    shmemx_ct_wait(counter, 1);
    shmemx_ct_set(counter, 0);
}

static void play(void (*send)(void), void (*receive)(void), long count)
{
    for (long round = 0; round < count; round++)
        for (int sender = 0; sender < 2; sender++)
            if (sender == shmem_my_pe()) {
                memset(sent, (int)round, length < 8 ? length : 8);
                send();
            } else {
                receive();
                check(received[0] == (char)round, "wrong message");
            }
}

static void by_flags(long count)
{
    play(send_flag, receive_flag, count);
}

static void by_counting(long count)
{
    play(send_counted, receive_counted, count);
}

int main(int argc, char **argv)
{
    shmem_init();
    long longest = given(argc, argv, 1, 1 << 16), count = given(argc, argv, 2, 2000);
    other = 1 - shmem_my_pe();
    check(shmem_n_pes() == 2 && longest >= 8 && count > 0,
          "use 2 PEs, at least 8 bytes and 1 round");
    sent = shmem_calloc((size_t)longest, 1);
    received = shmem_calloc((size_t)longest, 1);
    check(sent && received, "the messages are larger than the heap");
    shmemx_ct_create(&counter);
    if (shmem_my_pe() == 0)
        printf("%10s %12s %12s %8s\n", "bytes", "flag ns", "counting ns", "ratio");
    for (length = 8; length <= (size_t)longest; length *= 2) {
        double ways = 2e-9 * (double)count;
        double flags = median(by_flags, count) / ways, counting = median(by_counting, count) / ways;
        if (shmem_my_pe() == 0)
            printf("%10zu %12.1f %12.1f %8.2f\n", length, flags, counting, flags / counting);
    }
    shmemx_ct_free(&counter);
    shmem_finalize();
    return 0;
}
