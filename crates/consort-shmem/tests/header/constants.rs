//! The contents of the headers, except prototypes.

/// The beginning of `shmem.h`.
pub(crate) const BEGIN: &str = "\
/* OpenSHMEM 1.6 over Consort. Generated from data/routines.tsv. */
#ifndef CONSORT_SHMEM_H
#define CONSORT_SHMEM_H

/* C89 and C++98 have no `long long`: this stops a warning for each prototype. */
#if defined(__cplusplus)
#if __cplusplus < 201103L
#pragma GCC system_header
#endif
#elif !defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L
#pragma GCC system_header
#endif

#include <stddef.h>
#include <stdint.h>
__extension__ typedef double _Complex shmemi_c_complexd_t;
__extension__ typedef float _Complex shmemi_c_complexf_t;
#ifdef __cplusplus
#include <complex>
typedef std::complex<double> shmemi_complexd_t;
typedef std::complex<float> shmemi_complexf_t;
#else
typedef shmemi_c_complexd_t shmemi_complexd_t;
typedef shmemi_c_complexf_t shmemi_complexf_t;
#endif
#define SHMEMI_NORETURN __attribute__((noreturn))

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING \"@VENDOR@\"

/* Programs use these macros to detect that prototypes have no fallbacks. */
#define SHMEM_DEF_H
#define SHMEM_FUNCTION_ATTRIBUTES

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE 2L

typedef struct shmemi_team *shmem_team_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED ((shmem_team_t)2)

typedef struct {
    int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 1L

typedef struct shmemi_ctx *shmem_ctx_t;
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT ((shmem_ctx_t)1)
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE 2L
#define SHMEM_CTX_NOSTORE 4L

typedef struct {
    size_t total_ops;
} shmem_ctx_session_config_t;
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L
#define SHMEM_CTX_SESSION_BATCH 1L

/* For the deprecated routines of active sets, which do not use their work arrays. */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_SYNC_SIZE 1
#define SHMEM_BARRIER_SYNC_SIZE 1
#define SHMEM_BCAST_SYNC_SIZE 1
#define SHMEM_COLLECT_SYNC_SIZE 1
#define SHMEM_ALLTOALL_SYNC_SIZE 1
#define SHMEM_ALLTOALLS_SYNC_SIZE 1
#define SHMEM_REDUCE_SYNC_SIZE 1
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING

#ifdef __cplusplus
extern \"C\" {
#endif
";

/// The end of the prototypes.
pub(crate) const BETWEEN: &str = "
/* The names of version 1.0: deprecated in 1.2, but supported. */
int _my_pe(void);
int _num_pes(void);
void *shmalloc(size_t size);
void shfree(void *ptr);
void *shrealloc(void *ptr, size_t size);
void *shmemalign(size_t alignment, size_t size);

#ifdef __cplusplus
}

/* Complex numbers of C. They have the same layout as in C++. */
@OVERLOADS@#endif

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
/* Generic routines of C11: select by the type of elements, with or without a context. */
#define SHMEMI_5TH(a, b, c, d, e, ...) e
#define SHMEMI_6TH(a, b, c, d, e, f, ...) f
#define SHMEMI_7TH(a, b, c, d, e, f, g, ...) g
#define SHMEMI_8TH(a, b, c, d, e, f, g, h, ...) h
#define SHMEMI_9TH(a, b, c, d, e, f, g, h, i, ...) i
#define SHMEMI_10TH(a, b, c, d, e, f, g, h, i, j, ...) j
#define SHMEMI_4TH(a, b, c, d, ...) d
#define shmem_sync(...) SHMEMI_5TH(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)
";

/// The end of `shmem.h`.
pub(crate) const END: &str = "#endif

#endif
";

/// The contents of `shmemx.h`.
pub(crate) const EXTENSIONS: &str = "\
/* Extensions: counting puts (Dinan, Cole, Jost, Smith, Underwood, Wisniewski, 2014). */
#ifndef CONSORT_SHMEMX_H
#define CONSORT_SHMEMX_H

#include \"shmem.h\"

#ifdef __cplusplus
extern \"C\" {
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
";

/// The headers with old names, and the header for profilers. Each includes another header.
pub(crate) const OTHERS: [(&str, &str); 3] = [
    ("mpp/shmem.h", "/* The old name of the header. */\n#include \"../shmem.h\"\n"),
    ("mpp/shmemx.h", "/* The old name of the header. */\n#include \"../shmemx.h\"\n"),
    (
        "pshmem.h",
        "/* For profilers: the names `pshmem_...` are in shmem.h. */\n#include \"shmem.h\"\n",
    ),
];
