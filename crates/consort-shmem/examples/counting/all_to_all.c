/* Every PE sends a message to every PE, and waits until all have arrived: by a barrier, by flags
 * and by counting puts (3.2, Listing 1.5). There are two flags and two counters, used in turn.
 *
 *     consort cc -O2 all_to_all.c -o all_to_all
 *     consort run -n 4 ./all_to_all [LONGEST [ROUNDS]]
 *
 * Messages begin at 8 bytes and grow by a factor of eight, up to LONGEST.
 */
#include "experiment.h"

static int flags[2];
static shmemx_ct_t counters[2];
static char *sent, *received[2];
static size_t length;
static int me, pes;

static void check_received(int side, long round)
{
    for (int pe = 0; pe < pes; pe++)
        check(received[side][(size_t)pe * length] == (char)(round + pe), "wrong message");
}

/* Messages are put one after the other, beginning with the one to this PE. */
static void put_all(int side, long round, shmemx_ct_t counter)
{
    int pe = me;
    do {
        sent[(size_t)pe * length] = (char)(round + me);
        char *target = &received[side][(size_t)me * length], *source = &sent[(size_t)pe * length];
        if (counter)
            shmemx_putmem_ct(counter, target, source, length, pe);
        else
            shmem_putmem(target, source, length, pe);
        pe = (pe + 1) % pes;
    } while (pe != me);
}

static void by_barriers(long count)
{
    for (long round = 0; round < count; round++) {
        put_all(round % 2, round, NULL);
        shmem_barrier_all();
        check_received(round % 2, round);
    }
}

static void by_flags(long count)
{
    for (long round = 0; round < count; round++) {
        int side = round % 2, pe = me;
        put_all(side, round, NULL);
        shmem_fence();
        do {
            shmem_int_atomic_add(&flags[side], -1, pe);
            pe = (pe + 1) % pes;
        } while (pe != me);
        shmem_int_wait_until(&flags[side], SHMEM_CMP_EQ, 0);
        flags[side] = pes;
        check_received(side, round);
    }
}

static void by_counting(long count)
{
    for (long round = 0; round < count; round++) {
        int side = round % 2;
        put_all(side, round, counters[side]);
        shmemx_ct_wait(counters[side], pes);
        shmemx_ct_set(counters[side], 0);
        check_received(side, round);
    }
}

int main(int argc, char **argv)
{
    shmem_init();
    long longest = given(argc, argv, 1, 1 << 15), count = given(argc, argv, 2, 500);
    me = shmem_my_pe();
    pes = shmem_n_pes();
    /* An even number, so that blocks begin with the first side. */
    count += count % 2;
    check(longest >= 8 && count > 0, "use at least 8 bytes and 1 round");
    sent = shmem_calloc((size_t)pes, (size_t)longest);
    for (int side = 0; side < 2; side++) {
        received[side] = shmem_calloc((size_t)pes, (size_t)longest);
        check(sent && received[side], "the messages are larger than the heap");
        flags[side] = pes;
        shmemx_ct_create(&counters[side]);
    }
    if (me == 0)
        printf("%10s %12s %12s %12s   MB/s a PE\n", "bytes", "barrier", "flags", "counting");
    for (length = 8; length <= (size_t)longest; length *= 8) {
        double bytes = 1e-6 * (double)length * (double)pes * (double)count;
        double barriers = bytes / median(by_barriers, count);
        double by_flag = bytes / median(by_flags, count);
        double counting = bytes / median(by_counting, count);
        if (me == 0)
            printf("%10zu %12.1f %12.1f %12.1f\n", length, barriers, by_flag, counting);
    }
    for (int side = 0; side < 2; side++)
        shmemx_ct_free(&counters[side]);
    shmem_finalize();
    return 0;
}
