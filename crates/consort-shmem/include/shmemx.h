/* Extensions: counting puts (Dinan, Cole, Jost, Smith, Underwood, Wisniewski, 2014). */
#ifndef CONSORT_SHMEMX_H
#define CONSORT_SHMEMX_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A counter of completed operations, in the symmetric memory of each PE. */
typedef struct shmemi_ct *shmemx_ct_t;

/* Create and free a counter: collective calls. */
void shmemx_ct_create(shmemx_ct_t *ct);
void shmemx_ct_free(shmemx_ct_t *ct);
/* Read and set this PE's counter, and wait until it has at least a value. */
long shmemx_ct_get(shmemx_ct_t ct);
void shmemx_ct_set(shmemx_ct_t ct, long value);
void shmemx_ct_wait(shmemx_ct_t ct, long wait_for);
/* A put and a get that add 1 to the counter of `pe`: after the put's data has arrived there, and
 * after the get has read its data. */
void shmemx_putmem_ct(shmemx_ct_t ct, void *target, const void *source, size_t len, int pe);
void shmemx_getmem_ct(shmemx_ct_t ct, void *target, const void *source, size_t len, int pe);

/* The names of the paper. */
typedef shmemx_ct_t shmem_ct_t;
#define shmem_ct_create shmemx_ct_create
#define shmem_ct_free shmemx_ct_free
#define shmem_ct_get shmemx_ct_get
#define shmem_ct_set shmemx_ct_set
#define shmem_ct_wait shmemx_ct_wait
#define shmem_putmem_ct shmemx_putmem_ct
#define shmem_getmem_ct shmemx_getmem_ct

#ifdef __cplusplus
}
#endif

#endif
