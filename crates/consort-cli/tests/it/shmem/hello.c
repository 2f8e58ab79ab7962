/* A program that allocates and frees: valgrind must report nothing. */

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

static int from;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    for (int round = 0; round < 1000; round++) {
        char *memory = shmem_malloc(100 + round);
        memory = shmem_realloc(memory, 5000);
        shmem_free(memory);
    }
    shmem_ctx_t context;
    shmem_team_t team = SHMEM_TEAM_INVALID;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0) {
        shmem_ctx_int_p(context, &from, me + 1, (me + 1) % pes);
        shmem_ctx_destroy(context);
    }
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team) != 0) {
        return EXIT_FAILURE;
    }
    shmem_team_sync(team);
    shmem_team_destroy(team);
    long *sum = shmem_calloc(2, sizeof *sum);
    sum[0] = me + 1;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum + 1, sum, 1);
    int is_right = sum[1] == pes * (pes + 1L) / 2 && from == (me + pes - 1) % pes + 1;
    shmem_free(sum);
    shmem_finalize();
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
