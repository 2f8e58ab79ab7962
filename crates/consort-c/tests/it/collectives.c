/* All collectives, with each type and operator, on short and long buffers. */
#include "check.h"

#include <stdint.h>

static const size_t counts[] = {0, 1, 7, 20000};

/* The reference of an operator. */
#define APPLY_NUMBER(op, a, b)                                                                     \
    ((op) == CONSORT_SUM    ? (a) + (b)                                                            \
     : (op) == CONSORT_PROD ? (a) * (b)                                                            \
     : (op) == CONSORT_MIN  ? ((a) < (b) ? (a) : (b))                                              \
                            : ((a) > (b) ? (a) : (b)))
#define APPLY_INTEGER(op, a, b)                                                                    \
    ((op) == CONSORT_AND   ? (a) & (b)                                                             \
     : (op) == CONSORT_OR  ? (a) | (b)                                                             \
     : (op) == CONSORT_XOR ? (a) ^ (b)                                                             \
                           : APPLY_NUMBER(op, a, b))

/* The contribution of a PE at an index. */
#define VALUE(rank, index) (1 + ((rank) + (int)((index) % 100)) % 2)

#define FOR(index, number) for (size_t index = 0; index < (size_t)(number); index++)

#define TESTS(T, NAME, TYPE, APPLY, OPERATORS)                                                     \
    /* The combination of the contributions of PEs `first` to `last`. */                           \
    static T folded_##NAME(int op, int first, int last, size_t index)                              \
    {                                                                                              \
        T result = (T)VALUE(first, index);                                                         \
        for (int rank = first + 1; rank <= last; rank++)                                           \
            result = (T)APPLY(op, result, (T)VALUE(rank, index));                                  \
        return result;                                                                             \
    }                                                                                              \
                                                                                                   \
    static void combining_##NAME(consort_team *team, size_t n, int op)                             \
    {                                                                                              \
        int me = consort_team_rank(team), pes = consort_team_size(team), root = pes - 1;           \
        size_t all = n * (size_t)pes, room = (all + 1) * sizeof(T);                                \
        T *source = (T *)malloc(room), *target = (T *)malloc(room);                                \
        FOR(i, all) source[i] = (T)VALUE(me, i);                                                   \
        T *result = me == root ? target : NULL;                                                    \
        CHECK(consort_reduce(team, source, result, n, TYPE, op, root) == CONSORT_OK);              \
        FOR(i, me == root ? n : 0) CHECK(target[i] == folded_##NAME(op, 0, root, i));              \
        CHECK(consort_all_reduce(team, source, target, n, TYPE, op) == CONSORT_OK);                \
        FOR(i, n) CHECK(target[i] == folded_##NAME(op, 0, root, i));                               \
        CHECK(consort_scan(team, source, target, n, TYPE, op) == CONSORT_OK);                      \
        FOR(i, n) CHECK(target[i] == folded_##NAME(op, 0, me, i));                                 \
        FOR(i, n) target[i] = (T)99;                                                               \
        CHECK(consort_exclusive_scan(team, source, target, n, TYPE, op) == CONSORT_OK);            \
        FOR(i, n) CHECK(target[i] == (me == 0 ? (T)99 : folded_##NAME(op, 0, me - 1, i)));         \
        CHECK(consort_reduce_scatter(team, source, target, n, TYPE, op) == CONSORT_OK);            \
        FOR(i, n) CHECK(target[i] == folded_##NAME(op, 0, root, (size_t)me * n + i));              \
        memcpy(target, source, room);                                                              \
        CHECK(consort_scan(team, target, target, n, TYPE, op) == CONSORT_OK);                      \
        FOR(i, n) CHECK(target[i] == folded_##NAME(op, 0, me, i));                                 \
        memcpy(target, source, room);                                                              \
        CHECK(consort_reduce(team, target, target, n, TYPE, op, 0) == CONSORT_OK);                 \
        FOR(i, n) CHECK(target[i] == (me == 0 ? folded_##NAME(op, 0, root, i) : source[i]));       \
        CHECK(consort_all_reduce(team, source, source, n, TYPE, op) == CONSORT_OK);                \
        FOR(i, n) CHECK(source[i] == folded_##NAME(op, 0, root, i));                               \
        free(source);                                                                              \
        free(target);                                                                              \
    }                                                                                              \
                                                                                                   \
    static void moving_##NAME(consort_team *team, size_t n)                                        \
    {                                                                                              \
        int me = consort_team_rank(team), pes = consort_team_size(team), root = pes - 1;           \
        size_t all = n * (size_t)pes, room = (all + 1) * sizeof(T);                                \
        T *source = (T *)malloc(room), *target = (T *)malloc(room);                                \
        FOR(i, all) source[i] = (T)(me + (int)(i % 50));                                           \
        T *result = me == root ? target : NULL;                                                    \
        CHECK(consort_gather(team, source, result, n, TYPE, root) == CONSORT_OK);                  \
        FOR(i, me == root ? all : 0) CHECK(target[i] == (T)(i / n + i % n % 50));                  \
        const T *given = me == root ? source : NULL;                                               \
        CHECK(consort_scatter(team, given, target, n, TYPE, root) == CONSORT_OK);                  \
        FOR(i, n) CHECK(target[i] == (T)(root + (int)(((size_t)me * n + i) % 50)));                \
        CHECK(consort_all_gather(team, source, target, n, TYPE) == CONSORT_OK);                    \
        FOR(i, all) CHECK(target[i] == (T)(i / n + i % n % 50));                                   \
        CHECK(consort_all_to_all(team, source, target, n, TYPE) == CONSORT_OK);                    \
        FOR(i, all) CHECK(target[i] == (T)(i / n + ((size_t)me * n + i % n) % 50));                \
        memcpy(target, source, room);                                                              \
        CHECK(consort_all_to_all(team, target, target, n, TYPE) == CONSORT_OK);                    \
        FOR(i, all) CHECK(target[i] == (T)(i / n + ((size_t)me * n + i % n) % 50));                \
        memcpy(target, source, room);                                                              \
        CHECK(consort_all_gather(team, target, target, n, TYPE) == CONSORT_OK);                    \
        FOR(i, all) CHECK(target[i] == (T)(i / n + i % 50));                                       \
        CHECK(consort_broadcast(team, source, n, TYPE, root) == CONSORT_OK);                       \
        FOR(i, n) CHECK(source[i] == (T)(root + (int)(i % 50)));                                   \
        free(source);                                                                              \
        free(target);                                                                              \
    }                                                                                              \
                                                                                                   \
    static void with_##NAME(consort_team *team)                                                    \
    {                                                                                              \
        FOR(at, sizeof counts / sizeof *counts)                                                    \
        {                                                                                          \
            moving_##NAME(team, counts[at]);                                                       \
            for (int op = 0; op < OPERATORS; op++)                                                 \
                combining_##NAME(team, counts[at], op);                                            \
        }                                                                                          \
    }

#define TYPES(X)                                                                                   \
    X(int8_t, int8, CONSORT_INT8, APPLY_INTEGER, 7)                                                \
    X(int16_t, int16, CONSORT_INT16, APPLY_INTEGER, 7)                                             \
    X(int32_t, int32, CONSORT_INT32, APPLY_INTEGER, 7)                                             \
    X(int64_t, int64, CONSORT_INT64, APPLY_INTEGER, 7)                                             \
    X(uint8_t, uint8, CONSORT_UINT8, APPLY_INTEGER, 7)                                             \
    X(uint16_t, uint16, CONSORT_UINT16, APPLY_INTEGER, 7)                                          \
    X(uint32_t, uint32, CONSORT_UINT32, APPLY_INTEGER, 7)                                          \
    X(uint64_t, uint64, CONSORT_UINT64, APPLY_INTEGER, 7)                                          \
    X(float, float, CONSORT_FLOAT, APPLY_NUMBER, 4)                                                \
    X(double, double, CONSORT_DOUBLE, APPLY_NUMBER, 4)

TYPES(TESTS)

/* Blocks of as many elements as the rank of their PE, in order, or apart by an offset of one. */
static void blocks(consort_team *team)
{
    int me = consort_team_rank(team), pes = consort_team_size(team), root = 0;
    size_t lengths[MOST_THREADS], apart[MOST_THREADS], same[MOST_THREADS], next = 0;
    int32_t source[128], target[128];
    FOR(rank, pes)
    {
        lengths[rank] = rank;
        apart[rank] = next;
        same[rank] = (size_t)me;
        next += rank + 1;
    }
    for (int is_apart = 0; is_apart < 2; is_apart++) {
        const size_t *offsets = is_apart ? apart : NULL;
        size_t gap = is_apart ? 1 : 0, at = 0;
        FOR(i, 128) source[i] = 100 * me;
        CHECK(consort_gather_blocks(team, source, (size_t)me, target, lengths, offsets,
                                    CONSORT_INT32, root) == CONSORT_OK);
        FOR(rank, me == root ? pes : 0)
        {
            FOR(i, rank) CHECK(target[at + i] == 100 * (int)rank);
            at += rank + gap;
        }
        at = 0;
        CHECK(consort_all_gather_blocks(team, source, (size_t)me, target, lengths, offsets,
                                        CONSORT_INT32) == CONSORT_OK);
        FOR(rank, pes)
        {
            FOR(i, rank) CHECK(target[at + i] == 100 * (int)rank);
            at += rank + gap;
        }
        at = 0;
        FOR(i, 128) source[i] = (int32_t)i;
        CHECK(consort_scatter_blocks(team, source, me == root ? lengths : NULL, offsets, target,
                                     (size_t)me, CONSORT_INT32, root) == CONSORT_OK);
        FOR(rank, me) at += rank + gap;
        FOR(i, me) CHECK(target[i] == (int32_t)(at + i));
        /* A PE gives each peer as many elements as the peer's rank, and gets as many as its own. */
        FOR(i, 128) source[i] = 100 * me;
        CHECK(consort_all_to_all_blocks(team, source, lengths, offsets, target, same, NULL,
                                        CONSORT_INT32) == CONSORT_OK);
        FOR(rank, pes) FOR(i, me) CHECK(target[rank * (size_t)me + i] == 100 * (int)rank);
    }
    lengths[0] = (size_t)-1;
    lengths[pes - 1] = (size_t)-1;
    FAILS(consort_all_gather_blocks(team, source, 1, target, lengths, NULL, CONSORT_INT32),
          CONSORT_ERROR_ARGUMENT, "consort_all_gather_blocks: ");
    FAILS(consort_gather_blocks(team, source, 1, target, NULL, NULL, CONSORT_INT32, me),
          CONSORT_ERROR_ARGUMENT, "argument counts is null");
}

static void all_types(consort_team *team)
{
#define WITH(T, NAME, TYPE, APPLY, OPERATORS) with_##NAME(team);
    TYPES(WITH)
}

int main(void)
{
    for (int threads = 1; threads <= 4; threads++)
        run_on(threads, all_types);
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        run_on(threads, blocks);
    return 0;
}
