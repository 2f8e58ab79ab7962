/* OpenSHMEM 1.6 over Consort.
 *
 * Most routines exist for several types. As in the specification, one prototype declares a routine
 * for all of them: NAME is the type's name in the routine's name, and TYPE is the type. */
#ifndef CONSORT_SHMEM_H
#define CONSORT_SHMEM_H

/* Stops a warning of C89 and C++98 for each `long long`. It also keeps GCC's messages about wrong
 * arguments short: they do not list the macros below. Clang would no longer warn of arguments that
 * are truncated. */
#if !defined(__clang__)
#pragma GCC system_header
#elif defined(__cplusplus)
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
#define SHMEM_VENDOR_STRING "Consort 0.1.0"

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
extern "C" {
#endif

/* Declares shmem_NAME, and pshmem_NAME for profilers that define shmem_NAME. */
#define SHMEMI(RESULT, NAME, ...) \
    RESULT shmem_##NAME(__VA_ARGS__); \
    RESULT pshmem_##NAME(__VA_ARGS__);
/* Declares a routine for the default context, and one for any context. */
#define SHMEMI_CTX(RESULT, NAME, ...) \
    SHMEMI(RESULT, NAME, __VA_ARGS__) \
    SHMEMI(RESULT, ctx_##NAME, shmem_ctx_t ctx, __VA_ARGS__)

/* Tables of types: the types of bitwise atomic operations, of atomic operations, of extended atomic
 * operations, of waits, and of puts, gets and collectives. */
#define SHMEMI_BITWISE_TYPES(F) \
    F(uint, unsigned int) F(ulong, unsigned long) F(ulonglong, unsigned long long) \
    F(int32, int32_t) F(int64, int64_t) F(uint32, uint32_t) F(uint64, uint64_t)
#define SHMEMI_ATOMIC_TYPES(F) \
    SHMEMI_BITWISE_TYPES(F) \
    F(int, int) F(long, long) F(longlong, long long) F(size, size_t) F(ptrdiff, ptrdiff_t)
#define SHMEMI_EXTENDED_TYPES(F) SHMEMI_ATOMIC_TYPES(F) F(float, float) F(double, double)
#define SHMEMI_WAIT_TYPES(F) SHMEMI_ATOMIC_TYPES(F) F(short, short) F(ushort, unsigned short)
#define SHMEMI_RMA_TYPES(F) \
    SHMEMI_WAIT_TYPES(F) \
    F(float, float) F(double, double) F(longdouble, long double) \
    F(char, char) F(schar, signed char) F(uchar, unsigned char) \
    F(int8, int8_t) F(int16, int16_t) F(uint8, uint8_t) F(uint16, uint16_t)
/* The types of bitwise reductions. Other reductions take SHMEMI_RMA_TYPES. */
#define SHMEMI_BITWISE_REDUCE_TYPES(F) \
    SHMEMI_BITWISE_TYPES(F) \
    F(uchar, unsigned char) F(ushort, unsigned short) F(int8, int8_t) F(int16, int16_t) \
    F(uint8, uint8_t) F(uint16, uint16_t) F(size, size_t)
/* Sums and products take these types too. */
#define SHMEMI_COMPLEX_TYPES(F) F(complexd, shmemi_complexd_t) F(complexf, shmemi_complexf_t)
/* The types of deprecated routines. */
#define SHMEMI_OLD_TYPES(F) F(int, int) F(long, long) F(longlong, long long)
#define SHMEMI_OLD_FLOATS(F) F(float, float) F(double, double)

/* The library, and the PEs. */
SHMEMI(void, init, void)
SHMEMI(int, init_thread, int requested, int *provided)
SHMEMI(void, finalize, void)
SHMEMI(SHMEMI_NORETURN void, global_exit, int status)
SHMEMI(void, query_initialized, int *initialized)
SHMEMI(void, query_thread, int *provided)
SHMEMI(void, info_get_name, char *name)
SHMEMI(void, info_get_version, int *major, int *minor)
SHMEMI(void, pcontrol, int level, ...)
SHMEMI(int, my_pe, void)
SHMEMI(int, n_pes, void)
SHMEMI(int, pe_accessible, int pe)
SHMEMI(int, addr_accessible, const void *addr, int pe)
SHMEMI(void *, ptr, const void *dest, int pe)
void start_pes(int npes);

/* Symmetric memory. */
SHMEMI(void *, malloc, size_t size)
SHMEMI(void *, malloc_with_hints, size_t size, long hints)
SHMEMI(void *, calloc, size_t count, size_t size)
SHMEMI(void *, align, size_t alignment, size_t size)
SHMEMI(void *, realloc, void *ptr, size_t size)
SHMEMI(void, free, void *ptr)

/* Teams. */
SHMEMI(int, team_my_pe, shmem_team_t team)
SHMEMI(int, team_n_pes, shmem_team_t team)
SHMEMI(int, team_get_config, shmem_team_t team, long config_mask, shmem_team_config_t *config)
SHMEMI(int, team_translate_pe, shmem_team_t src_team, int src_pe, shmem_team_t dest_team)
SHMEMI(void *, team_ptr, shmem_team_t team, const void *dest, int pe)
SHMEMI(int, team_split_strided, shmem_team_t parent_team, int start, int stride, int size,
       const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)
SHMEMI(int, team_split_2d, shmem_team_t parent_team, int xrange,
       const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team,
       const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team)
SHMEMI(void, team_destroy, shmem_team_t team)

/* Contexts. */
SHMEMI(int, ctx_create, long options, shmem_ctx_t *ctx)
SHMEMI(int, team_create_ctx, shmem_team_t team, long options, shmem_ctx_t *ctx)
SHMEMI(void, ctx_destroy, shmem_ctx_t ctx)
SHMEMI(int, ctx_get_team, shmem_ctx_t ctx, shmem_team_t *team)
SHMEMI(void, ctx_session_start, shmem_ctx_t ctx, long options,
       const shmem_ctx_session_config_t *config, long config_mask)
SHMEMI(void, ctx_session_stop, shmem_ctx_t ctx)

/* Puts and gets: of types, of sizes in bits, and of bytes. */
#define SHMEMI_CONTIGUOUS(BEFORE, AFTER, TYPE) \
    SHMEMI_CTX(void, BEFORE##put##AFTER, TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEMI_CTX(void, BEFORE##get##AFTER, TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEMI_CTX(void, BEFORE##put##AFTER##_nbi, TYPE *dest, const TYPE *source, size_t nelems, \
               int pe) \
    SHMEMI_CTX(void, BEFORE##get##AFTER##_nbi, TYPE *dest, const TYPE *source, size_t nelems, \
               int pe) \
    SHMEMI_CTX(void, BEFORE##put##AFTER##_signal, TYPE *dest, const TYPE *source, size_t nelems, \
               uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) \
    SHMEMI_CTX(void, BEFORE##put##AFTER##_signal_nbi, TYPE *dest, const TYPE *source, \
               size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)
#define SHMEMI_STRIDED(BEFORE, AFTER, TYPE) \
    SHMEMI_CTX(void, BEFORE##iput##AFTER, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
               ptrdiff_t sst, size_t nelems, int pe) \
    SHMEMI_CTX(void, BEFORE##iget##AFTER, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
               ptrdiff_t sst, size_t nelems, int pe) \
    SHMEMI_CTX(void, BEFORE##ibput##AFTER, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
               ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) \
    SHMEMI_CTX(void, BEFORE##ibget##AFTER, TYPE *dest, const TYPE *source, ptrdiff_t dst, \
               ptrdiff_t sst, size_t bsize, size_t nblocks, int pe)
#define SHMEMI_RMA(NAME, TYPE) \
    SHMEMI_CONTIGUOUS(NAME##_, , TYPE) \
    SHMEMI_STRIDED(NAME##_, , TYPE) \
    SHMEMI_CTX(void, NAME##_p, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(TYPE, NAME##_g, const TYPE *source, int pe)
#define SHMEMI_SIZED(SIZE) SHMEMI_CONTIGUOUS(, SIZE, void) SHMEMI_STRIDED(, SIZE, void)
SHMEMI_RMA_TYPES(SHMEMI_RMA)
SHMEMI_SIZED(8)
SHMEMI_SIZED(16)
SHMEMI_SIZED(32)
SHMEMI_SIZED(64)
SHMEMI_SIZED(128)
SHMEMI_CONTIGUOUS(, mem, void)

/* Signals, and the order of operations. */
SHMEMI_CTX(void, signal_add, uint64_t *sig_addr, uint64_t signal, int pe)
SHMEMI_CTX(void, signal_set, uint64_t *sig_addr, uint64_t signal, int pe)
SHMEMI(uint64_t, signal_fetch, const uint64_t *sig_addr)
SHMEMI(uint64_t, signal_wait_until, uint64_t *sig_addr, int cmp, uint64_t cmp_value)
SHMEMI(void, fence, void)
SHMEMI(void, ctx_fence, shmem_ctx_t ctx)
SHMEMI(void, quiet, void)
SHMEMI(void, ctx_quiet, shmem_ctx_t ctx)
SHMEMI_CTX(void, pe_quiet, const int *target_pes, size_t npes)

/* Atomic operations. */
#define SHMEMI_ATOMIC(NAME, TYPE) \
    SHMEMI_CTX(void, NAME##_atomic_add, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_inc, TYPE *dest, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_fetch_add, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_fetch_inc, TYPE *dest, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_compare_swap, TYPE *dest, TYPE cond, TYPE value, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_fetch_add_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_fetch_inc_nbi, TYPE *fetch, TYPE *dest, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_compare_swap_nbi, TYPE *fetch, TYPE *dest, TYPE cond, \
               TYPE value, int pe)
#define SHMEMI_EXTENDED(NAME, TYPE) \
    SHMEMI_CTX(void, NAME##_atomic_set, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_fetch, const TYPE *source, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_swap, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_fetch_nbi, TYPE *fetch, const TYPE *source, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_swap_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)
#define SHMEMI_BITWISE_OF(NAME, TYPE, OPERATOR) \
    SHMEMI_CTX(void, NAME##_atomic##OPERATOR, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(TYPE, NAME##_atomic_fetch##OPERATOR, TYPE *dest, TYPE value, int pe) \
    SHMEMI_CTX(void, NAME##_atomic_fetch##OPERATOR##_nbi, TYPE *fetch, TYPE *dest, TYPE value, \
               int pe)
#define SHMEMI_BITWISE(NAME, TYPE) \
    SHMEMI_BITWISE_OF(NAME, TYPE, _and) \
    SHMEMI_BITWISE_OF(NAME, TYPE, _or) \
    SHMEMI_BITWISE_OF(NAME, TYPE, _xor)
#define SHMEMI_OLD_ATOMIC(NAME, TYPE) \
    SHMEMI(void, NAME##_add, TYPE *dest, TYPE value, int pe) \
    SHMEMI(void, NAME##_inc, TYPE *dest, int pe) \
    SHMEMI(TYPE, NAME##_fadd, TYPE *dest, TYPE value, int pe) \
    SHMEMI(TYPE, NAME##_finc, TYPE *dest, int pe) \
    SHMEMI(TYPE, NAME##_cswap, TYPE *dest, TYPE cond, TYPE value, int pe)
#define SHMEMI_OLD_EXTENDED(NAME, TYPE) \
    SHMEMI(TYPE, NAME##_fetch, const TYPE *source, int pe) \
    SHMEMI(void, NAME##_set, TYPE *dest, TYPE value, int pe) \
    SHMEMI(TYPE, NAME##_swap, TYPE *dest, TYPE value, int pe)
SHMEMI_ATOMIC_TYPES(SHMEMI_ATOMIC)
SHMEMI_EXTENDED_TYPES(SHMEMI_EXTENDED)
SHMEMI_BITWISE_TYPES(SHMEMI_BITWISE)
SHMEMI_OLD_TYPES(SHMEMI_OLD_ATOMIC)
SHMEMI_OLD_TYPES(SHMEMI_OLD_EXTENDED)
SHMEMI_OLD_FLOATS(SHMEMI_OLD_EXTENDED)

/* Tests of variables, waits for variables, and locks. */
#define SHMEMI_WAIT(NAME, TYPE) \
    SHMEMI(int, NAME##_test, TYPE *ivar, int cmp, TYPE cmp_value) \
    SHMEMI(void, NAME##_wait_until, TYPE *ivar, int cmp, TYPE cmp_value)
#define SHMEMI_OLD_WAIT(NAME, TYPE) SHMEMI(void, NAME##_wait, TYPE *ivar, TYPE cmp_value)
#define SHMEMI_WAITS_OF(NAME, TYPE, RESULT, VERB) \
    SHMEMI(RESULT, NAME##VERB##_all, TYPE *ivars, size_t nelems, const int *status, int cmp, \
           TYPE cmp_value) \
    SHMEMI(RESULT, NAME##VERB##_all_vector, TYPE *ivars, size_t nelems, const int *status, \
           int cmp, const TYPE *cmp_values) \
    SHMEMI(size_t, NAME##VERB##_any, TYPE *ivars, size_t nelems, const int *status, int cmp, \
           TYPE cmp_value) \
    SHMEMI(size_t, NAME##VERB##_any_vector, TYPE *ivars, size_t nelems, const int *status, \
           int cmp, const TYPE *cmp_values) \
    SHMEMI(size_t, NAME##VERB##_some, TYPE *ivars, size_t nelems, size_t *indices, \
           const int *status, int cmp, TYPE cmp_value) \
    SHMEMI(size_t, NAME##VERB##_some_vector, TYPE *ivars, size_t nelems, size_t *indices, \
           const int *status, int cmp, const TYPE *cmp_values)
#define SHMEMI_WAITS(NAME, TYPE) \
    SHMEMI_WAITS_OF(NAME, TYPE, int, _test) \
    SHMEMI_WAITS_OF(NAME, TYPE, void, _wait_until)
SHMEMI_WAIT_TYPES(SHMEMI_WAIT)
SHMEMI_ATOMIC_TYPES(SHMEMI_WAITS)
SHMEMI_OLD_WAIT(short, short)
SHMEMI_OLD_TYPES(SHMEMI_OLD_WAIT)
SHMEMI(void, wait, long *ivar, long cmp_value)
SHMEMI(void, wait_until, long *ivar, int cmp, long cmp_value)
SHMEMI(void, set_lock, long *lock)
SHMEMI(void, clear_lock, long *lock)
SHMEMI(int, test_lock, long *lock)

/* Collectives of teams. */
#define SHMEMI_MOVES(BEFORE, AFTER, TYPE) \
    SHMEMI(int, BEFORE##broadcast##AFTER, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems, int PE_root) \
    SHMEMI(int, BEFORE##collect##AFTER, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems) \
    SHMEMI(int, BEFORE##fcollect##AFTER, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems) \
    SHMEMI(int, BEFORE##alltoall##AFTER, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems) \
    SHMEMI(int, BEFORE##alltoalls##AFTER, shmem_team_t team, TYPE *dest, const TYPE *source, \
           ptrdiff_t dst, ptrdiff_t sst, size_t nelems)
#define SHMEMI_COLLECTIVES(NAME, TYPE) SHMEMI_MOVES(NAME##_, , TYPE)
#define SHMEMI_REDUCE(NAME, TYPE, OPERATOR) \
    SHMEMI(int, NAME##OPERATOR##_reduce, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nreduce)
#define SHMEMI_BITWISE_REDUCE(NAME, TYPE) \
    SHMEMI_REDUCE(NAME, TYPE, _and) \
    SHMEMI_REDUCE(NAME, TYPE, _or) \
    SHMEMI_REDUCE(NAME, TYPE, _xor)
#define SHMEMI_EXTREMA(NAME, TYPE) \
    SHMEMI_REDUCE(NAME, TYPE, _max) \
    SHMEMI_REDUCE(NAME, TYPE, _min)
#define SHMEMI_SUMS(NAME, TYPE) \
    SHMEMI_REDUCE(NAME, TYPE, _sum) \
    SHMEMI_REDUCE(NAME, TYPE, _prod) \
    SHMEMI(int, NAME##_sum_exscan, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems) \
    SHMEMI(int, NAME##_sum_inscan, shmem_team_t team, TYPE *dest, const TYPE *source, \
           size_t nelems)
SHMEMI(void, barrier_all, void)
SHMEMI(void, sync_all, void)
SHMEMI(int, team_sync, shmem_team_t team)
SHMEMI_RMA_TYPES(SHMEMI_COLLECTIVES)
SHMEMI_MOVES(, mem, void)
SHMEMI_BITWISE_REDUCE_TYPES(SHMEMI_BITWISE_REDUCE)
SHMEMI_RMA_TYPES(SHMEMI_EXTREMA)
SHMEMI_RMA_TYPES(SHMEMI_SUMS)
SHMEMI_COMPLEX_TYPES(SHMEMI_SUMS)

/* Collectives of active sets, which are deprecated. */
#define SHMEMI_SET int PE_start, int logPE_stride, int PE_size
#define SHMEMI_SET_MOVES(SIZE) \
    SHMEMI(void, broadcast##SIZE, void *dest, const void *source, size_t nelems, int PE_root, \
           SHMEMI_SET, long *pSync) \
    SHMEMI(void, collect##SIZE, void *dest, const void *source, size_t nelems, SHMEMI_SET, \
           long *pSync) \
    SHMEMI(void, fcollect##SIZE, void *dest, const void *source, size_t nelems, SHMEMI_SET, \
           long *pSync) \
    SHMEMI(void, alltoall##SIZE, void *dest, const void *source, size_t nelems, SHMEMI_SET, \
           long *pSync) \
    SHMEMI(void, alltoalls##SIZE, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, \
           size_t nelems, SHMEMI_SET, long *pSync)
#define SHMEMI_TO_ALL(NAME, TYPE, OPERATOR) \
    SHMEMI(void, NAME##OPERATOR##_to_all, TYPE *dest, const TYPE *source, int nreduce, \
           SHMEMI_SET, TYPE *pWrk, long *pSync)
#define SHMEMI_SET_BITWISE(NAME, TYPE) \
    SHMEMI_TO_ALL(NAME, TYPE, _and) \
    SHMEMI_TO_ALL(NAME, TYPE, _or) \
    SHMEMI_TO_ALL(NAME, TYPE, _xor)
#define SHMEMI_SET_SUMS(NAME, TYPE) \
    SHMEMI_TO_ALL(NAME, TYPE, _sum) \
    SHMEMI_TO_ALL(NAME, TYPE, _prod)
#define SHMEMI_SET_NUMBERS(NAME, TYPE) \
    SHMEMI_SET_SUMS(NAME, TYPE) \
    SHMEMI_TO_ALL(NAME, TYPE, _max) \
    SHMEMI_TO_ALL(NAME, TYPE, _min)
SHMEMI(void, barrier, SHMEMI_SET, long *pSync)
SHMEMI(void, sync, SHMEMI_SET, long *pSync)
SHMEMI_SET_MOVES(32)
SHMEMI_SET_MOVES(64)
SHMEMI_SET_BITWISE(short, short)
SHMEMI_OLD_TYPES(SHMEMI_SET_BITWISE)
SHMEMI_SET_NUMBERS(short, short)
SHMEMI_OLD_TYPES(SHMEMI_SET_NUMBERS)
SHMEMI_OLD_FLOATS(SHMEMI_SET_NUMBERS)
SHMEMI_SET_NUMBERS(longdouble, long double)
SHMEMI_COMPLEX_TYPES(SHMEMI_SET_SUMS)

/* The names of version 1.0: deprecated in 1.2, but supported. */
int _my_pe(void);
int _num_pes(void);
void *shmalloc(size_t size);
void shfree(void *ptr);
void *shrealloc(void *ptr, size_t size);
void *shmemalign(size_t alignment, size_t size);

#ifdef __cplusplus
}

/* Overloads for complex numbers of C, which have the same layout as in C++. */
#define SHMEMI_TEAM_OVERLOAD(NAME, C, CPP) \
    static inline int NAME(shmem_team_t team, C *dest, const C *source, size_t nelems) \
    { \
        return NAME(team, reinterpret_cast<CPP *>(dest), reinterpret_cast<const CPP *>(source), \
                    nelems); \
    }
#define SHMEMI_SET_OVERLOAD(NAME, C, CPP) \
    static inline void NAME(C *dest, const C *source, int nreduce, SHMEMI_SET, C *pWrk, \
                            long *pSync) \
    { \
        NAME(reinterpret_cast<CPP *>(dest), reinterpret_cast<const CPP *>(source), nreduce, \
             PE_start, logPE_stride, PE_size, reinterpret_cast<CPP *>(pWrk), pSync); \
    }
#define SHMEMI_OVERLOADS(BEFORE, C, CPP) \
    SHMEMI_TEAM_OVERLOAD(BEFORE##_sum_reduce, C, CPP) \
    SHMEMI_TEAM_OVERLOAD(BEFORE##_prod_reduce, C, CPP) \
    SHMEMI_TEAM_OVERLOAD(BEFORE##_sum_exscan, C, CPP) \
    SHMEMI_TEAM_OVERLOAD(BEFORE##_sum_inscan, C, CPP) \
    SHMEMI_SET_OVERLOAD(BEFORE##_sum_to_all, C, CPP) \
    SHMEMI_SET_OVERLOAD(BEFORE##_prod_to_all, C, CPP)
SHMEMI_OVERLOADS(shmem_complexd, shmemi_c_complexd_t, shmemi_complexd_t)
SHMEMI_OVERLOADS(shmem_complexf, shmemi_c_complexf_t, shmemi_complexf_t)
SHMEMI_OVERLOADS(pshmem_complexd, shmemi_c_complexd_t, shmemi_complexd_t)
SHMEMI_OVERLOADS(pshmem_complexf, shmemi_c_complexf_t, shmemi_complexf_t)
#endif

#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
/* Generic routines of C11. They select a routine by the type that the first pointer refers to: from
 * a list of cases, in which each type has one name. */
#define SHMEMI_OLD_CASES(B, V) int: B##int##V, long: B##long##V, long long: B##longlong##V
#define SHMEMI_FLOAT_CASES(B, V) float: B##float##V, double: B##double##V
#define SHMEMI_OLD_EXTENDED_CASES(B, V) SHMEMI_OLD_CASES(B, V), SHMEMI_FLOAT_CASES(B, V)
#define SHMEMI_UNSIGNED_CASES(B, V) \
    unsigned int: B##uint##V, unsigned long: B##ulong##V, unsigned long long: B##ulonglong##V
#define SHMEMI_BITWISE_CASES(B, V) \
    SHMEMI_UNSIGNED_CASES(B, V), int: B##int32##V, long: B##int64##V
#define SHMEMI_ATOMIC_CASES(B, V) SHMEMI_UNSIGNED_CASES(B, V), SHMEMI_OLD_CASES(B, V)
#define SHMEMI_EXTENDED_CASES(B, V) SHMEMI_ATOMIC_CASES(B, V), SHMEMI_FLOAT_CASES(B, V)
#define SHMEMI_WAIT_CASES(B, V) \
    SHMEMI_ATOMIC_CASES(B, V), short: B##short##V, unsigned short: B##ushort##V
#define SHMEMI_RMA_CASES(B, V) \
    SHMEMI_WAIT_CASES(B, V), SHMEMI_FLOAT_CASES(B, V), long double: B##longdouble##V, \
    char: B##char##V, signed char: B##schar##V, unsigned char: B##uchar##V
#define SHMEMI_SUM_CASES(B, V) \
    SHMEMI_RMA_CASES(B, V), double _Complex: B##complexd##V, float _Complex: B##complexf##V
#define SHMEMI_BITWISE_REDUCE_CASES(B, V) \
    SHMEMI_BITWISE_CASES(B, V), unsigned char: B##uchar##V, unsigned short: B##ushort##V, \
    signed char: B##int8##V, short: B##int16##V

#define SHMEMI_SELECT(CASES, POINTER, BEFORE, VERB) _Generic(*(POINTER), CASES(BEFORE, VERB))
#define SHMEMI_OF_PE(CASES, VERB, pointer, ...) \
    SHMEMI_SELECT(CASES, pointer, shmem_, VERB)(pointer, __VA_ARGS__)
#define SHMEMI_OF_CTX(CASES, VERB, ctx, pointer, ...) \
    SHMEMI_SELECT(CASES, pointer, shmem_ctx_, VERB)(ctx, pointer, __VA_ARGS__)
#define SHMEMI_OF_TEAM(CASES, VERB, team, pointer, ...) \
    SHMEMI_SELECT(CASES, pointer, shmem_, VERB)(team, pointer, __VA_ARGS__)

/* The number of arguments tells whether the first one is a context. */
#define SHMEMI_4TH(a, b, c, d, ...) d
#define SHMEMI_5TH(a, b, c, d, e, ...) e
#define SHMEMI_6TH(a, b, c, d, e, f, ...) f
#define SHMEMI_7TH(a, b, c, d, e, f, g, ...) g
#define SHMEMI_8TH(a, b, c, d, e, f, g, h, ...) h
#define SHMEMI_9TH(a, b, c, d, e, f, g, h, i, ...) i
#define SHMEMI_2_OR_3(...) SHMEMI_4TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)
#define SHMEMI_3_OR_4(...) SHMEMI_5TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)
#define SHMEMI_4_OR_5(...) SHMEMI_6TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)
#define SHMEMI_5_OR_6(...) SHMEMI_7TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)
#define SHMEMI_6_OR_7(...) SHMEMI_8TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)
#define SHMEMI_7_OR_8(...) SHMEMI_9TH(__VA_ARGS__, SHMEMI_OF_CTX, SHMEMI_OF_PE, 0)

#define shmem_alltoall(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _alltoalls, __VA_ARGS__)
#define shmem_add(...) SHMEMI_OF_PE(SHMEMI_OLD_CASES, _add, __VA_ARGS__)
#define shmem_atomic_add(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_add, __VA_ARGS__)
#define shmem_atomic_and(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_and, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_compare_swap, __VA_ARGS__)
#define shmem_cswap(...) SHMEMI_OF_PE(SHMEMI_OLD_CASES, _cswap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
    SHMEMI_5_OR_6(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch(...) \
    SHMEMI_2_OR_3(__VA_ARGS__)(SHMEMI_EXTENDED_CASES, _atomic_fetch, __VA_ARGS__)
#define shmem_fetch(...) SHMEMI_OF_PE(SHMEMI_OLD_EXTENDED_CASES, _fetch, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_fetch_add, __VA_ARGS__)
#define shmem_fadd(...) SHMEMI_OF_PE(SHMEMI_OLD_CASES, _fadd, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) \
    SHMEMI_2_OR_3(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_finc(...) SHMEMI_OF_PE(SHMEMI_OLD_CASES, _finc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_EXTENDED_CASES, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_fetch_xor_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...) \
    SHMEMI_2_OR_3(__VA_ARGS__)(SHMEMI_ATOMIC_CASES, _atomic_inc, __VA_ARGS__)
#define shmem_inc(...) SHMEMI_OF_PE(SHMEMI_OLD_CASES, _inc, __VA_ARGS__)
#define shmem_atomic_or(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_or, __VA_ARGS__)
#define shmem_atomic_set(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_EXTENDED_CASES, _atomic_set, __VA_ARGS__)
#define shmem_set(...) SHMEMI_OF_PE(SHMEMI_OLD_EXTENDED_CASES, _set, __VA_ARGS__)
#define shmem_atomic_swap(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_EXTENDED_CASES, _atomic_swap, __VA_ARGS__)
#define shmem_swap(...) SHMEMI_OF_PE(SHMEMI_OLD_EXTENDED_CASES, _swap, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) \
    SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_EXTENDED_CASES, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_xor(...) \
    SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_BITWISE_CASES, _atomic_xor, __VA_ARGS__)
#define shmem_broadcast(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _fcollect, __VA_ARGS__)
#define shmem_g(...) SHMEMI_2_OR_3(__VA_ARGS__)(SHMEMI_RMA_CASES, _g, __VA_ARGS__)
#define shmem_get(...) SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_RMA_CASES, _get, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_RMA_CASES, _get_nbi, __VA_ARGS__)
#define shmem_ibget(...) SHMEMI_7_OR_8(__VA_ARGS__)(SHMEMI_RMA_CASES, _ibget, __VA_ARGS__)
#define shmem_ibput(...) SHMEMI_7_OR_8(__VA_ARGS__)(SHMEMI_RMA_CASES, _ibput, __VA_ARGS__)
#define shmem_iget(...) SHMEMI_6_OR_7(__VA_ARGS__)(SHMEMI_RMA_CASES, _iget, __VA_ARGS__)
#define shmem_iput(...) SHMEMI_6_OR_7(__VA_ARGS__)(SHMEMI_RMA_CASES, _iput, __VA_ARGS__)
#define shmem_p(...) SHMEMI_3_OR_4(__VA_ARGS__)(SHMEMI_RMA_CASES, _p, __VA_ARGS__)
#define shmem_put(...) SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_RMA_CASES, _put, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEMI_4_OR_5(__VA_ARGS__)(SHMEMI_RMA_CASES, _put_nbi, __VA_ARGS__)
#define shmem_put_signal(...) SHMEMI_7_OR_8(__VA_ARGS__)(SHMEMI_RMA_CASES, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) \
    SHMEMI_7_OR_8(__VA_ARGS__)(SHMEMI_RMA_CASES, _put_signal_nbi, __VA_ARGS__)
#define shmem_and_reduce(...) SHMEMI_OF_TEAM(SHMEMI_BITWISE_REDUCE_CASES, _and_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEMI_OF_TEAM(SHMEMI_RMA_CASES, _min_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEMI_OF_TEAM(SHMEMI_BITWISE_REDUCE_CASES, _or_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEMI_OF_TEAM(SHMEMI_SUM_CASES, _prod_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) SHMEMI_OF_TEAM(SHMEMI_SUM_CASES, _sum_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEMI_OF_TEAM(SHMEMI_BITWISE_REDUCE_CASES, _xor_reduce, __VA_ARGS__)
#define shmem_sum_exscan(...) SHMEMI_OF_TEAM(SHMEMI_SUM_CASES, _sum_exscan, __VA_ARGS__)
#define shmem_sum_inscan(...) SHMEMI_OF_TEAM(SHMEMI_SUM_CASES, _sum_inscan, __VA_ARGS__)
#define shmem_test(...) SHMEMI_OF_PE(SHMEMI_WAIT_CASES, _test, __VA_ARGS__)
#define shmem_test_all(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_all, __VA_ARGS__)
#define shmem_test_all_vector(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_all_vector, __VA_ARGS__)
#define shmem_test_any(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_any, __VA_ARGS__)
#define shmem_test_any_vector(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_any_vector, __VA_ARGS__)
#define shmem_test_some(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_some, __VA_ARGS__)
#define shmem_test_some_vector(...) \
    SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _test_some_vector, __VA_ARGS__)
#define shmem_wait_until(...) SHMEMI_OF_PE(SHMEMI_WAIT_CASES, _wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
    SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
    SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some(...) SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_some, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
    SHMEMI_OF_PE(SHMEMI_ATOMIC_CASES, _wait_until_some_vector, __VA_ARGS__)
#define shmem_signal_add(...) \
    SHMEMI_5TH(__VA_ARGS__, shmem_ctx_signal_add, shmem_signal_add, 0)(__VA_ARGS__)
#define shmem_signal_set(...) \
    SHMEMI_5TH(__VA_ARGS__, shmem_ctx_signal_set, shmem_signal_set, 0)(__VA_ARGS__)
#define shmem_sync(...) SHMEMI_5TH(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)
#endif

#endif
