/* The locks and condition variables of Abseil, under the names that `native_locks` loads. */
#include <absl/synchronization/mutex.h>

#include <cstring>

/* As `BYTES` in functions.rs. */
enum { BYTES = 64 };
static_assert(sizeof(absl::Mutex) <= BYTES && sizeof(absl::CondVar) <= BYTES,
              "they need more memory");

static absl::Mutex *mutex(void *lock) { return static_cast<absl::Mutex *>(lock); }
static absl::CondVar *variable(void *condition) { return static_cast<absl::CondVar *>(condition); }

extern "C" {

/* Returns whether new ones consist of zeros, which are passed. */
int zeros_are_valid(void *zeros)
{
    absl::Mutex lock;
    absl::CondVar condition;
    return memcmp(&lock, zeros, sizeof lock) == 0
        && memcmp(&condition, zeros, sizeof condition) == 0;
}

void mutex_lock(void *lock) { mutex(lock)->Lock(); }
int mutex_try_lock(void *lock) { return mutex(lock)->TryLock(); }
void mutex_unlock(void *lock) { mutex(lock)->Unlock(); }

void reader_lock(void *lock) { mutex(lock)->ReaderLock(); }
int reader_try_lock(void *lock) { return mutex(lock)->ReaderTryLock(); }
void reader_unlock(void *lock) { mutex(lock)->ReaderUnlock(); }

void condition_wait(void *condition, void *lock) { variable(condition)->Wait(mutex(lock)); }
void condition_notify_one(void *condition) { variable(condition)->Signal(); }
void condition_notify_all(void *condition) { variable(condition)->SignalAll(); }

}
