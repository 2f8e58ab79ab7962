//! A mutex that one thread locks only with loads and stores, until another thread locks it too.
//! (Biased locking: Kawachiya, Koseki and Onodera, Lock Reservation, 2002. Here an asymmetric fence
//! ends the bias; the paper stops the thread.)
//!
//! | the thread that has the bias | the first other thread |
//! | --- | --- |
//! | stores that it is inside | locks the mutex |
//! | reads whether the bias still holds | ends the bias, and makes running threads fence |
//! | is inside | waits until the other thread is not inside |
//!
//! After that, all threads lock the mutex. On systems without such a fence there is no bias.

#![expect(unsafe_code, reason = "returns references to the guarded data; reads a register")]

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::{
        PoisonError,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
    time::{Duration, Instant},
};

use super::{
    AtomicU32, AtomicU64, Mutex, MutexGuard,
    asymmetric::{heavy, light},
    futex::Scope,
};

/// A value protected by a biased mutex.
#[derive(Debug)]
pub struct BiasedMutex<T> {
    /// The token of the thread that has the bias, or 0.
    owner: AtomicU64,
    /// 1 while that thread is inside.
    inside: AtomicU32,
    mutex: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: only one thread at a time uses the value: the one that has locked it.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}

/// Access to the value, until the guard is dropped.
#[derive(Debug)]
pub struct BiasedGuard<'b, T> {
    lock: &'b BiasedMutex<T>,
    /// `None` if the thread has the bias. It is boxed, because a flag next to it would be written
    /// as a byte and then read as part of a word, and a processor stalls on such a read.
    held: Option<Box<MutexGuard<'b, ()>>>,
    /// As for a mutable reference: threads may share the guard if they may share the value.
    value: PhantomData<&'b mut T>,
}

/// A number for a thread. No other running thread of the process has the same one. It stays on its
/// thread, so that no other thread can lock with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadToken(u64, PhantomData<*const ()>);

impl ThreadToken {
    /// Returns the token of the calling thread.
    #[cfg(not(loom))]
    #[inline(always)]
    #[must_use]
    pub fn current() -> Self {
        Self(address_of_thread(), PhantomData)
    }

    /// Creates a token for a thread that is the only one to use it. `number` is not 0.
    ///
    /// # Safety
    /// No other thread uses the number for the same lock.
    #[must_use]
    pub const unsafe fn new(number: u64) -> Self {
        Self(number, PhantomData)
    }
}

/// Returns the address of the calling thread's control block. In a shared library, the address of a
/// thread-local variable costs a call.
#[cfg(all(not(loom), target_os = "linux", target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn address_of_thread() -> u64 {
    let address: u64;
    // SAFETY: the ABI of ELF systems on x86-64 ("ELF Handling For Thread-Local Storage", Drepper
    // 2005, section 3.4.6) has the address of the running thread's control block in its first word,
    // to which the register fs points. No thread ever writes it.
    unsafe {
        std::arch::asm!(
            "mov {}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    address
}

/// Returns the address of a variable of the calling thread.
#[cfg(all(not(loom), not(all(target_os = "linux", target_arch = "x86_64", not(miri)))))]
#[inline(always)]
fn address_of_thread() -> u64 {
    std::thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr()) as u64
}

impl<T> BiasedMutex<T> {
    /// Creates a mutex without a bias.
    pub fn new(value: T) -> Self {
        Self {
            owner: AtomicU64::new(0),
            inside: AtomicU32::new(0),
            mutex: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Biases the mutex to the calling thread, whose token is `own`, if the system can end a bias.
    ///
    /// # Panics
    /// When the thread has locked it.
    pub fn bias_to(&self, own: ThreadToken) {
        let held = self.lock_mutex(own);
        assert!(held.is_some(), "a lock that the thread has locked is not biased to it");
        if heavy(Scope::Process) {
            self.owner.store(own.0, Relaxed);
        }
    }

    /// Locks the mutex for the calling thread, whose token is `own`. Returns `None` if the thread
    /// has the bias and has locked the mutex already.
    ///
    /// # Panics
    /// When the system refuses the fence that ends the bias of another thread, although it granted
    /// one when the bias began.
    #[inline(always)]
    pub fn lock(&self, own: ThreadToken) -> Option<BiasedGuard<'_, T>> {
        if self.owner.load(Relaxed) == own.0 && self.inside.load(Relaxed) == 0 {
            self.inside.store(1, Relaxed);
            light(); // pairs with the fence in `lock_mutex`
            if self.owner.load(Relaxed) == own.0 {
                return Some(BiasedGuard { lock: self, held: None, value: PhantomData });
            }
            self.inside.store(0, Release);
        }
        self.lock_mutex(own)
    }

    /// Returns the value, which nobody else can lock meanwhile.
    pub const fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    #[inline(never)]
    fn lock_mutex(&self, own: ThreadToken) -> Option<BiasedGuard<'_, T>> {
        let owner = self.owner.load(Relaxed);
        if owner == own.0 && self.inside.load(Relaxed) == 1 {
            return None;
        }
        let held = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = self.owner.load(Relaxed);
        self.owner.store(0, Relaxed);
        // A thread that has the bias and comes here was about to lose it to another thread. It is
        // not inside, so it needs no fence.
        if owner != 0 && owner != own.0 {
            if !heavy(Scope::Process) {
                self.owner.store(owner, Relaxed);
                panic!("the system refuses the fence (membarrier) that it has granted before");
            }
            let begun = Instant::now();
            // Acquire: pairs with the release when the guard is dropped.
            while self.inside.load(Acquire) != 0 {
                pause(begun.elapsed());
            }
        }
        Some(BiasedGuard { lock: self, held: Some(Box::new(held)), value: PhantomData })
    }
}

/// Pauses a wait that has lasted for `waited`. It sleeps, because the other thread may be inside
/// for seconds. A bias ends once, so this delays few locks.
#[cfg(not(loom))]
fn pause(waited: Duration) {
    std::thread::sleep(crate::wait::spin_budget::nap_after(waited));
}

#[cfg(loom)]
fn pause(_: Duration) {
    super::yield_now();
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: one thread at a time has a guard. The thread with the mutex has waited until the
        // only thread with the bias is not inside, and that thread no longer finds its bias.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is mutably borrowed.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.held.is_none() {
            // Release: the thread that ends the bias sees what was done inside.
            self.lock.inside.store(0, Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let sum = BiasedMutex::new(0_u64);
        sum.bias_to(ThreadToken::current());
        let add = || {
            for _ in 0..10_000 {
                let mut sum = sum.lock(ThreadToken::current()).expect("it is not locked here");
                *sum += 1;
            }
        };
        add();
        std::thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
            add();
        });
        assert_eq!(*sum.lock(ThreadToken::current()).unwrap(), 40_000);
    }

    #[test]
    fn running_threads_have_different_tokens() {
        let own = ThreadToken::current();
        assert_eq!(own, ThreadToken::current());
        let other = std::thread::spawn(|| ThreadToken::current().0).join().expect("no panic");
        assert!(own.0 != 0 && other != 0 && own.0 != other, "{own:?} {other}");
    }

    #[test]
    fn biased_thread_cannot_lock_twice() {
        let lock = BiasedMutex::new(());
        lock.bias_to(ThreadToken::current());
        let held = lock.lock(ThreadToken::current());
        let is_biased = held.as_ref().is_some_and(|held| held.held.is_none());
        if is_biased {
            assert!(lock.lock(ThreadToken::current()).is_none());
        }
        drop(held);
        assert!(lock.lock(ThreadToken::current()).is_some());
    }
}
