/* The five barriers of Concurrency Kit, as a library that is loaded when it is used.
 *
 * Each thread has a state on its own cache lines. Threads of the combining tree are in groups of
 * four. A barrier is never freed: it lives as long as the process.
 */
#include <ck_barrier.h>
#include <stdlib.h>

enum { CENTRALIZED, COMBINING, DISSEMINATION, TOURNAMENT, MCS, GROUP = 4 };

union state {
    ck_barrier_centralized_state_t centralized;
    ck_barrier_combining_state_t combining;
    ck_barrier_dissemination_state_t dissemination;
    ck_barrier_tournament_state_t tournament;
    ck_barrier_mcs_state_t mcs;
} __attribute__((aligned(128)));

struct barrier {
    ck_barrier_centralized_t centralized __attribute__((aligned(128)));
    ck_barrier_combining_t combining;
    ck_barrier_combining_group_t *groups;
    ck_barrier_dissemination_t *dissemination;
    ck_barrier_tournament_t tournament;
    ck_barrier_mcs_t *mcs;
    union state *states;
    unsigned threads;
    int kind;
};

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 128, count * bytes + 1))
        abort();
    return __builtin_memset(memory, 0, count * bytes + 1);
}

static void init_combining(struct barrier *barrier)
{
    unsigned threads = barrier->threads, groups = (threads + GROUP - 1) / GROUP;
    ck_barrier_combining_init(&barrier->combining, zeroed(1, sizeof *barrier->groups));
    barrier->groups = zeroed(groups, sizeof *barrier->groups);
    for (unsigned i = 0; i < groups; i++) {
        unsigned left = threads - i * GROUP;
        ck_barrier_combining_group_init(&barrier->combining, &barrier->groups[i],
                                        left < GROUP ? left : GROUP);
    }
    for (unsigned i = 0; i < threads; i++)
        barrier->states[i].combining =
            (ck_barrier_combining_state_t)CK_BARRIER_COMBINING_STATE_INITIALIZER;
}

static void init_dissemination(struct barrier *barrier)
{
    unsigned threads = barrier->threads;
    ck_barrier_dissemination_flag_t **flags = zeroed(threads, sizeof *flags);
    for (unsigned i = 0; i < threads; i++)
        flags[i] = zeroed(ck_barrier_dissemination_size(threads), sizeof **flags);
    barrier->dissemination = zeroed(threads, sizeof *barrier->dissemination);
    ck_barrier_dissemination_init(barrier->dissemination, flags, threads);
    for (unsigned i = 0; i < threads; i++)
        ck_barrier_dissemination_subscribe(barrier->dissemination,
                                           &barrier->states[i].dissemination);
}

static void init_tournament(struct barrier *barrier)
{
    unsigned threads = barrier->threads;
    ck_barrier_tournament_round_t **rounds = zeroed(threads, sizeof *rounds);
    for (unsigned i = 0; i < threads; i++)
        rounds[i] = zeroed(ck_barrier_tournament_size(threads), sizeof **rounds);
    ck_barrier_tournament_init(&barrier->tournament, rounds, threads);
    for (unsigned i = 0; i < threads; i++)
        ck_barrier_tournament_subscribe(&barrier->tournament, &barrier->states[i].tournament);
}

static void init_mcs(struct barrier *barrier)
{
    barrier->mcs = zeroed(barrier->threads, sizeof *barrier->mcs);
    ck_barrier_mcs_init(barrier->mcs, barrier->threads);
    for (unsigned i = 0; i < barrier->threads; i++)
        ck_barrier_mcs_subscribe(barrier->mcs, &barrier->states[i].mcs);
}

void *fork_join_barrier(int kind, unsigned threads)
{
    struct barrier *barrier = zeroed(1, sizeof *barrier);
    barrier->states = zeroed(threads, sizeof *barrier->states);
    barrier->threads = threads;
    barrier->kind = kind;
    switch (kind) {
    case CENTRALIZED:
        break; /* it is zero, and so are its states */
    case COMBINING:
        init_combining(barrier);
        break;
    case DISSEMINATION:
        init_dissemination(barrier);
        break;
    case TOURNAMENT:
        init_tournament(barrier);
        break;
    case MCS:
        init_mcs(barrier);
        break;
    default:
        return NULL;
    }
    return barrier;
}

void fork_join_wait(void *pointer, unsigned rank)
{
    struct barrier *barrier = pointer;
    union state *state = &barrier->states[rank];
    switch (barrier->kind) {
    case CENTRALIZED:
        ck_barrier_centralized(&barrier->centralized, &state->centralized, barrier->threads);
        break;
    case COMBINING:
        ck_barrier_combining(&barrier->combining, &barrier->groups[rank / GROUP],
                             &state->combining);
        break;
    case DISSEMINATION:
        ck_barrier_dissemination(barrier->dissemination, &state->dissemination);
        break;
    case TOURNAMENT:
        ck_barrier_tournament(&barrier->tournament, &state->tournament);
        break;
    default:
        ck_barrier_mcs(barrier->mcs, &state->mcs);
    }
}
