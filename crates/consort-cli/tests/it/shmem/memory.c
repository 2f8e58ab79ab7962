/* The symmetric heap: a thousand allocations, counting puts, and the environment. */
#include "check.h"

int main(void) {
    int is_initialized = 1;
    shmem_query_initialized(&is_initialized);
    if (is_initialized) return 4;
    shmem_init();
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;
    for (int i = 0; i < 1000; i++) {
        char *a = shmem_malloc(i * 97 + 1), *b = shmem_align(4096, 100);
        CHECK(a && b && (uintptr_t)b % 4096 == 0);
        a = shmem_realloc(a, i * 201 + 1);
        CHECK(a);
        shmem_free(b);
        shmem_free(a);
    }
    CHECK(!shmem_malloc(0) && !shmem_malloc((size_t)1 << 60) && !shmem_align(24, 8));
    shmem_free(NULL);
    char name[SHMEM_MAX_NAME_LEN];
    int major, minor;
    shmem_info_get_name(name);
    shmem_info_get_version(&major, &minor);
    CHECK(!strcmp(name, SHMEM_VENDOR_STRING) && major == 1 && minor == 6);

    shmemx_ct_t counter;
    shmemx_ct_create(&counter);
    long *put = shmem_calloc(100, sizeof *put), got = 0, value;
    for (long i = 0; i < 100; i++) {
        value = me * 1000 + i;
        shmem_putmem_ct(counter, put + i, &value, sizeof value, next);
    }
    shmem_ct_wait(counter, 100);
    CHECK(put[99] == before * 1000 + 99 && shmemx_ct_get(counter) == 100);
    shmem_barrier_all();
    shmemx_ct_set(counter, 0);
    shmem_barrier_all();
    shmemx_getmem_ct(counter, &got, put, sizeof got, next);
    shmemx_ct_wait(counter, 1);
    CHECK(got == me * 1000);
    shmem_free(put);
    shmemx_ct_free(&counter);
    shmem_finalize();
    shmem_query_initialized(&is_initialized);
    CHECK(is_initialized);
    shmem_finalize();
    return 0;
}
