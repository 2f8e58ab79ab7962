/* Creating a barrier in a process with one thread registers the process for the fence that sleeping
 * threads need. Later, registration takes milliseconds. */
#include <consort.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

int main(void)
{
    long commands = membarrier(MEMBARRIER_CMD_QUERY);
    if (commands < 0 || !(commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return 0; /* the system has no such fence */
    CHECK(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0);
    consort_barrier *barrier;
    CHECK(consort_barrier_create(2, &barrier) == CONSORT_OK);
    CHECK(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
    consort_barrier_destroy(barrier);
    return 0;
}
