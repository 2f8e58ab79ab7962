/* The locks and condition variables of nsync, under the names that `native_locks` loads. */
#include <nsync.h>
#include <string.h>

/* As `BYTES` in functions.rs. */
enum { BYTES = 64 };
_Static_assert(sizeof(nsync_mu) <= BYTES && sizeof(nsync_cv) <= BYTES, "they need more memory");

int zeros_are_valid(void *zeros) {
    char memory[BYTES] = {0};
    nsync_mu_init((nsync_mu *)memory);
    int are_valid = memcmp(memory, zeros, sizeof(nsync_mu)) == 0;
    memset(memory, 0, BYTES);
    nsync_cv_init((nsync_cv *)memory);
    return are_valid && memcmp(memory, zeros, sizeof(nsync_cv)) == 0;
}

void mutex_lock(void *lock) { nsync_mu_lock(lock); }
int mutex_try_lock(void *lock) { return nsync_mu_trylock(lock); }
void mutex_unlock(void *lock) { nsync_mu_unlock(lock); }

void reader_lock(void *lock) { nsync_mu_rlock(lock); }
int reader_try_lock(void *lock) { return nsync_mu_rtrylock(lock); }
void reader_unlock(void *lock) { nsync_mu_runlock(lock); }

void condition_wait(void *condition, void *lock) { nsync_cv_wait(condition, lock); }
void condition_notify_one(void *condition) { nsync_cv_signal(condition); }
void condition_notify_all(void *condition) { nsync_cv_broadcast(condition); }
