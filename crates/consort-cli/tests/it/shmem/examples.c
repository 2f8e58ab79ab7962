/* The subjects of the specification's examples, as programs of this project. */
#include "check.h"

enum { MOST = 8 };

static int me, n;

/* The first PE that arrives takes a place for which all compete. */
static void race(void) {
    static int winner = -1;
    shmem_barrier_all();
    int before = shmem_atomic_compare_swap(&winner, -1, me, 0);
    static int wins;
    if (before == -1) {
        shmem_atomic_inc(&wins, 0);
    }
    shmem_barrier_all();
    CHECK(shmem_atomic_fetch(&wins, 0) == 1);
    int found = shmem_g(&winner, 0);
    CHECK(found >= 0 && found < n && (before == -1 ? found == me : before == found));
}

/* Even and odd PEs swap values with the next PE of the other kind. */
static void swap(void) {
    static long value;
    value = me;
    shmem_barrier_all();
    int partner = me % 2 == 0 ? me + 1 : me - 1;
    if (me % 2 == 0 && partner < n) {
        long theirs = shmem_long_atomic_swap(&value, me, partner);
        CHECK(theirs == partner);
    }
    shmem_barrier_all();
    CHECK(value == (me % 2 == 1 ? partner : me));
}

/* Every second PE is in a team; numbers of PEs are translated. */
static void every_second(void) {
    shmem_team_t team;
    shmem_team_config_t config = {.num_contexts = 0};
    int size = (n + 1) / 2;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, size, &config, 0, &team) == 0);
    CHECK((team == SHMEM_TEAM_INVALID) == (me % 2 == 1));
    CHECK(shmem_team_my_pe(team) == (me % 2 == 0 ? me / 2 : -1));
    if (team != SHMEM_TEAM_INVALID) {
        for (int pe = 0; pe < size; pe++) {
            CHECK(shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD) == 2 * pe);
        }
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1 % n, team) == (n > 1 ? -1 : 0));
    }
    shmem_team_destroy(team);
}

/* Rows and columns of a mesh, the last row shorter, and sums along them. */
static void mesh(void) {
    static int one, along_row, along_column;
    shmem_team_t row, column;
    int width = n > 3 ? 3 : n;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) == 0);
    CHECK(shmem_team_my_pe(row) == me % width && shmem_team_my_pe(column) == me / width);
    one = 1;
    CHECK(shmem_sum_reduce(row, &along_row, &one, 1) == 0);
    CHECK(shmem_sum_reduce(column, &along_column, &one, 1) == 0);
    int last = n - me / width * width;
    CHECK(along_row == (last < width ? last : width));
    CHECK(along_column == (n - me % width + width - 1) / width);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
}

/* A pipeline of contexts: each block has its own, and is announced when it is complete. */
static void pipeline(void) {
    enum { BLOCKS = 4, LENGTH = 100 };
    static long blocks[BLOCKS][LENGTH], source[BLOCKS][LENGTH];
    static int ready[BLOCKS];
    shmem_ctx_t contexts[BLOCKS];
    int next = (me + 1) % n, before = (me + n - 1) % n;
    for (int block = 0; block < BLOCKS; block++) {
        CHECK(shmem_ctx_create(SHMEM_CTX_NOSTORE, &contexts[block]) == 0);
        for (int at = 0; at < LENGTH; at++) {
            source[block][at] = 1000 * me + 100 * block + at;
        }
    }
    shmem_barrier_all();
    for (int block = 0; block < BLOCKS; block++) {
        shmem_put_nbi(contexts[block], blocks[block], source[block], LENGTH, next);
    }
    for (int block = 0; block < BLOCKS; block++) {
        shmem_ctx_quiet(contexts[block]);
        shmem_p(contexts[block], &ready[block], 1, next);
    }
    for (int block = BLOCKS - 1; block >= 0; block--) {
        shmem_wait_until(&ready[block], SHMEM_CMP_EQ, 1);
        for (int at = 0; at < LENGTH; at++) {
            CHECK(blocks[block][at] == 1000 * before + 100 * block + at);
        }
        shmem_ctx_destroy(contexts[block]);
    }
    shmem_barrier_all();
}

/* All PEs send to all, and process data in the order of its arrival. */
static void as_it_comes(void) {
    static int flags[MOST], values[MOST];
    int taken[MOST] = {0};
    size_t found[MOST];
    for (int pe = 0; pe < n; pe++) {
        shmem_p(&values[me], 100 + me, pe);
        shmem_fence();
        shmem_p(&flags[me], 1, pe);
    }
    for (int left = n; left > 0;) {
        size_t many = shmem_test_some(flags, n, found, taken, SHMEM_CMP_EQ, 1);
        for (size_t at = 0; at < many; at++) {
            CHECK(!taken[found[at]] && values[found[at]] == 100 + (int)found[at]);
            taken[found[at]] = 1;
        }
        left -= (int)many;
    }
    CHECK(shmem_wait_until_any(flags, n, taken, SHMEM_CMP_EQ, 1) == SIZE_MAX);
    shmem_barrier_all();
}

/* Data with its signal, around a ring. */
static void around(void) {
    static uint64_t come;
    static double row[50];
    double sent[50];
    for (int at = 0; at < 50; at++) {
        sent[at] = me + at / 100.0;
    }
    shmem_barrier_all();
    shmem_put_signal(row, sent, 50, &come, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
    shmem_put_signal_nbi(row, sent, 50, &come, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
    CHECK(shmem_signal_wait_until(&come, SHMEM_CMP_EQ, 2) == 2);
    CHECK(shmem_signal_fetch(&come) == 2 && row[49] == (me + n - 1) % n + 49 / 100.0);
    shmem_barrier_all();
}

/* Every second element goes to every third place. */
static void strides(void) {
    static short spread[30];
    short source[20];
    for (int at = 0; at < 20; at++) {
        source[at] = (short)(100 * me + at);
    }
    shmem_barrier_all();
    shmem_iput(spread, source, 3, 2, 10, (me + 1) % n);
    shmem_barrier_all();
    short first = (short)(100 * ((me + n - 1) % n));
    for (int at = 0; at < 30; at++) {
        CHECK(spread[at] == (at % 3 == 0 ? first + at / 3 * 2 : 0));
    }
}

/* Parts of different lengths, one after the other. */
static void collected(void) {
    long *part = shmem_malloc(MOST * sizeof *part);
    long *all = shmem_calloc(MOST * MOST, sizeof *all);
    for (int at = 0; at <= me; at++) {
        part[at] = 10 * me + at;
    }
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, all, part, me + 1) == 0);
    long *next = all;
    for (int pe = 0; pe < n; pe++) {
        for (int at = 0; at <= pe; at++) {
            CHECK(*next++ == 10 * pe + at);
        }
    }
    shmem_free(all);
    shmem_free(part);
}

/* Sums of all previous PEs, with and without this one. */
static void scanned(void) {
    static int mine[3], sums[3];
    for (int at = 0; at < 3; at++) {
        mine[at] = me + at;
    }
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, sums, mine, 3) == 0);
    CHECK(sums[2] == me * (me + 1) / 2 + 2 * (me + 1));
    CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, sums, mine, 3) == 0);
    CHECK(sums[2] == me * (me - 1) / 2 + 2 * me);
}

/* Direct access to a peer's memory, if it is near. */
static void direct(void) {
    int next = (me + 1) % n;
    int *words = shmem_malloc(MOST * sizeof *words);
    int *theirs = shmem_ptr(words, next);
    CHECK((theirs != NULL) ==
          (shmem_team_translate_pe(SHMEM_TEAM_WORLD, next, SHMEM_TEAM_SHARED) >= 0));
    shmem_barrier_all();
    for (int at = 0; at < MOST; at++) {
        if (theirs != NULL)
            theirs[at] = 10 * me + at;
        else
            shmem_p(&words[at], 10 * me + at, next);
    }
    shmem_barrier_all();
    CHECK(words[7] == 10 * ((me + n - 1) % n) + 7);
    shmem_free(words);
}

int main(void) {
    int level, major, minor;
    char name[SHMEM_MAX_NAME_LEN];
    CHECK(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &level) == 0);
    CHECK(level >= SHMEM_THREAD_SERIALIZED);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    me = shmem_my_pe();
    n = shmem_n_pes();
    race();
    swap();
    every_second();
    mesh();
    pipeline();
    as_it_comes();
    around();
    strides();
    collected();
    scanned();
    direct();
    shmem_finalize();
    return 0;
}
