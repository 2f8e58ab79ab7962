/* Consort for threads of a program in C or C++: barriers, collectives, teams and parallel regions.
 *
 * Every function that can fail returns 0 (CONSORT_OK) or a code below. consort_error_message() then
 * says what happened and what to do. */
#ifndef CONSORT_H
#define CONSORT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The call did what it should. */
#define CONSORT_OK 0

/* The call had no effect, and the job goes on. */
#define CONSORT_ERROR_ARGUMENT 1     /* an argument is wrong */
#define CONSORT_ERROR_THREAD 2       /* the handle belongs to another thread */
#define CONSORT_ERROR_ENDED 3        /* the team is freed, or its PE is not running */
#define CONSORT_ERROR_FULL 4         /* threads run all PEs of the job */
#define CONSORT_ERROR_TAKEN 5        /* another thread runs this PE, or has teams of it */
#define CONSORT_ERROR_JOINED 6       /* the thread runs a PE of this job already */
#define CONSORT_ERROR_NESTED 7       /* a region inside a region of the same pool */
#define CONSORT_ERROR_SYSTEM 8       /* the system refuses memory or threads, or a setting is wrong */
#define CONSORT_ERROR_INTERNAL 9     /* a fault of the library */

/* The job has failed, and no later call of it can succeed. All its PEs get the same error. */
#define CONSORT_ERROR_PE_FAILED 16   /* a PE has failed, or its thread ended without leaving */
#define CONSORT_ERROR_MISMATCHED 17  /* PEs made different calls, or wait for each other */
#define CONSORT_ERROR_TIMED_OUT 18   /* a wait has exceeded its limit, such as for a PE to join */
#define CONSORT_ERROR_FORKED 19      /* a forked child used an object of its parent */

/* Returns the message of this thread's last error; "" before the first. It is valid until the next
 * call of this thread that fails. */
const char *consort_error_message(void);

/* A job: a fixed number of PEs (processing elements), which are threads of the program. Any thread
 * may use it. */
typedef struct consort_job consort_job;
/* A PE. Only the thread that has joined as this PE may use it. */
typedef struct consort_pe consort_pe;
/* A team of PEs, from the view of one of them. Only the thread that runs that PE may use it. */
typedef struct consort_team consort_team;
/* Threads that run one parallel region after the other. Any thread may use it. */
typedef struct consort_pool consort_pool;
/* A barrier without PEs, for any threads. */
typedef struct consort_barrier consort_barrier;

/* The most PEs of a job. */
#define CONSORT_MOST_PES 1024

/* How PEs wait. */
#define CONSORT_WAITING_DEFAULT 0
#define CONSORT_WAITING_SPIN 1            /* poll, and never yield the core */
#define CONSORT_WAITING_SPIN_YIELD 2      /* poll, then yield between polls */
#define CONSORT_WAITING_SPIN_YIELD_PARK 3 /* poll, then yield, then sleep: the default */

/* Options of a job or a pool. A field of 0 has its default. Start with CONSORT_OPTIONS. */
typedef struct {
    size_t size;            /* sizeof(consort_options) */
    double join_timeout_s;  /* how long calls wait for a PE that no thread has joined; 10 s */
    int waiting;            /* CONSORT_WAITING_...; all PEs wait in the same way */
} consort_options;
#define CONSORT_OPTIONS {sizeof(consort_options), 0.0, CONSORT_WAITING_DEFAULT}

/* Creates a job of 1 to CONSORT_MOST_PES threads. `options` may be null. */
int consort_job_create(int threads, const consort_options *options, consort_job **job);
/* Destroys it. Threads that have joined may still use their PEs, and leave. Null is ignored. */
void consort_job_destroy(consort_job *job);

/* Joins as the lowest PE that no thread runs. */
#define CONSORT_ANY_RANK (-1)
/* Makes the calling thread the PE of this rank, from 0 on. Its calls wait for PEs that no thread has
 * joined yet. */
int consort_join(consort_job *job, int rank, consort_pe **pe);
/* Leaves the job, so that another thread may join as this PE. The handle is invalid afterwards, also
 * after an error, unless that is CONSORT_ERROR_THREAD. A thread that ends without leaving fails the
 * job. */
int consort_leave(consort_pe *pe);
/* Fails the job, for a reason that the other PEs get as an error. */
int consort_abort(consort_pe *pe, const char *reason);

/* Returns the team of all PEs; null if `pe` is null. It is valid until the PE leaves, and is not
 * freed. */
consort_team *consort_world(consort_pe *pe);

/* The rank of the calling PE in the team, from 0 on, and the number of PEs; -1 if `team` is null, or
 * if it is another thread's. */
int consort_team_rank(const consort_team *team);
int consort_team_size(const consort_team *team);

/* All functions below on a team are collective: all its PEs call them, in the same order, with the
 * same root, count, type and operator. */

/* Forms teams of the PEs that give the same colour, ordered by key and then by rank. A negative
 * colour forms none: `*made` is null. */
int consort_team_split(consort_team *team, int color, long key, consort_team **made);
/* Forms a team of `size` PEs: start, start + stride and so on. `*made` is null on other PEs. */
int consort_team_strided(consort_team *team, int start, int stride, int size, consort_team **made);
/* Frees a team once all its PEs have called this. The handle is invalid afterwards, also after an
 * error, unless that is CONSORT_ERROR_THREAD or CONSORT_ERROR_ARGUMENT. */
int consort_team_free(consort_team *team);

/* Returns when all PEs of the team have called it. */
int consort_team_barrier(consort_team *team);

/* The types of elements. */
#define CONSORT_INT8 0
#define CONSORT_INT16 1
#define CONSORT_INT32 2
#define CONSORT_INT64 3
#define CONSORT_UINT8 4
#define CONSORT_UINT16 5
#define CONSORT_UINT32 6
#define CONSORT_UINT64 7
#define CONSORT_FLOAT 8
#define CONSORT_DOUBLE 9

/* The operators. Floats have no bitwise ones. */
#define CONSORT_SUM 0
#define CONSORT_PROD 1
#define CONSORT_MIN 2
#define CONSORT_MAX 3
#define CONSORT_AND 4
#define CONSORT_OR 5
#define CONSORT_XOR 6

/* Collectives. A block has `count` elements. A buffer that this PE neither reads nor writes may be
 * null. Source and target are the same address (on all PEs), where the comment says "in place", or
 * do not overlap. */

/* Copies the root's data to the data of all other PEs. */
int consort_broadcast(consort_team *team, void *data, size_t count, int type, int root);
/* Combines the sources of all PEs, in the order of the ranks, in the root's target; in place. */
int consort_reduce(consort_team *team, const void *source, void *target, size_t count, int type,
                   int op, int root);
/* The same, in the target of every PE; in place. */
int consort_all_reduce(consort_team *team, const void *source, void *target, size_t count, int type,
                       int op);
/* Combines the sources, each of one block for each PE, and copies block i to PE i's target. */
int consort_reduce_scatter(consort_team *team, const void *source, void *target, size_t count,
                           int type, int op);
/* Combines the sources of PEs 0 to i in PE i's target; in place. */
int consort_scan(consort_team *team, const void *source, void *target, size_t count, int type,
                 int op);
/* Combines the sources of the PEs before PE i in its target. PE 0's target is not written, but is not
 * null. */
int consort_exclusive_scan(consort_team *team, const void *source, void *target, size_t count,
                           int type, int op);
/* Copies PE i's source to block i of the root's target. */
int consort_gather(consort_team *team, const void *source, void *target, size_t count, int type,
                   int root);
/* Copies block i of the root's source to PE i's target. */
int consort_scatter(consort_team *team, const void *source, void *target, size_t count, int type,
                    int root);
/* Copies PE i's source to block i of every target. In place, where the source is the target, PE i's
 * block i is there already. */
int consort_all_gather(consort_team *team, const void *source, void *target, size_t count,
                       int type);
/* Copies block i of PE j's source to block j of PE i's target; in place. */
int consort_all_to_all(consort_team *team, const void *source, void *target, size_t count,
                       int type);

/* Collectives on blocks of different lengths: `counts` and `offsets` have an entry for each PE, in
 * elements. If `offsets` is null, the blocks follow each other. */

/* As consort_gather. `counts` and `offsets` are read on the root. */
int consort_gather_blocks(consort_team *team, const void *source, size_t count, void *target,
                          const size_t *counts, const size_t *offsets, int type, int root);
/* As consort_scatter. `counts` and `offsets` are read on the root. */
int consort_scatter_blocks(consort_team *team, const void *source, const size_t *counts,
                           const size_t *offsets, void *target, size_t count, int type, int root);
/* As consort_all_gather, and not in place. */
int consort_all_gather_blocks(consort_team *team, const void *source, size_t count, void *target,
                              const size_t *counts, const size_t *offsets, int type);
/* As consort_all_to_all, and not in place. */
int consort_all_to_all_blocks(consort_team *team, const void *source, const size_t *source_counts,
                              const size_t *source_offsets, void *target,
                              const size_t *target_counts, const size_t *target_offsets, int type);

/* A function that each PE of a pool runs, with the team of all PEs, which is valid until it returns.
 * If it returns another value than 0, the region fails. No exception or longjmp may leave it. */
typedef int (*consort_region)(consort_team *world, void *data);

/* Starts a pool of 1 to CONSORT_MOST_PES PEs. `options` may be null. */
int consort_pool_create(int threads, const consort_options *options, consort_pool **pool);
/* Runs the function on every PE, and returns when all have left it. The calling thread is PE 0; other
 * threads that run a region of the pool wait. After an error the pool can be used again. */
int consort_pool_run(consort_pool *pool, consort_region region, void *data);
/* The number of PEs; -1 if `pool` is null. */
int consort_pool_size(const consort_pool *pool);
/* Ends the threads. No thread is in a region of the pool. Null is ignored. */
void consort_pool_destroy(consort_pool *pool);

/* Creates a barrier for this number of threads, from 1 to 65535. */
int consort_barrier_create(int threads, consort_barrier **barrier);
/* Waits until this number of threads have called it, without a limit. Sets `*is_leader` to 1 on the
 * last one and to 0 on the others, unless it is null. If more threads call it than the barrier has,
 * those that come later begin the next round. */
int consort_barrier_wait(consort_barrier *barrier, int *is_leader);
/* As above, for at most `limit_s` seconds. After CONSORT_ERROR_TIMED_OUT the thread is not counted,
 * and may wait again. */
int consort_barrier_wait_for(consort_barrier *barrier, double limit_s, int *is_leader);
/* Destroys it. All calls on it have returned. Null is ignored. */
void consort_barrier_destroy(consort_barrier *barrier);

#ifdef __cplusplus
}
#endif

#endif
