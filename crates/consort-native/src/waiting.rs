//! How a PE waits, and the executor that polls an algorithm in place.
//!
//! | policy | while nothing arrives |
//! | --- | --- |
//! | spin | poll again |
//! | spin-yield | poll a while, then offer the core to others between polls |
//! | spin-yield-park | after many yields, sleep until a message wakes the PE (a futex) |
//!
//! Parking: the waiter raises its flag, fences, polls once more, and sleeps; a sender stores its
//! message, fences, and looks at the flag. One of the two sees the other (the store-buffer
//! pattern with a sequentially consistent fence on both sides), so no wake-up is lost.

use std::{
    fmt,
    future::Future,
    pin::pin,
    str::FromStr,
    sync::OnceLock,
    sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::sync::{AtomicBool, Thread, current, fence, park_at_most};

/// What a PE does while it waits; one policy a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waiting {
    /// Poll, and never give the core away.
    Spin,
    /// Poll, then yield between polls.
    SpinYield,
    /// Poll, then yield, then sleep until woken.
    SpinYieldPark,
}

impl Waiting {
    /// Every policy.
    pub const EVERY: [Self; 3] = [Self::Spin, Self::SpinYield, Self::SpinYieldPark];

    /// The policy for `pes` PEs on `cores` usable cores: park only where they do not fit.
    #[must_use]
    pub const fn suited(pes: usize, cores: usize) -> Self {
        if pes <= cores { Self::SpinYield } else { Self::SpinYieldPark }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::SpinYield => "spin-yield",
            Self::SpinYieldPark => "spin-yield-park",
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no waiting policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no waiting policy: use spin, spin-yield or spin-yield-park")]
pub struct UnknownWaiting(String);

impl FromStr for Waiting {
    type Err = UnknownWaiting;

    fn from_str(text: &str) -> Result<Self, UnknownWaiting> {
        Self::EVERY
            .into_iter()
            .find(|waiting| waiting.name() == text)
            .ok_or_else(|| UnknownWaiting(text.to_owned()))
    }
}

/// Where one PE sleeps.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Parker {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Parker {
    /// Says that the calling thread is the one that sleeps here. Once.
    pub fn settle(&self) {
        // A second call comes from the same thread and changes nothing.
        let _ = self.thread.set(current());
    }

    /// Announces that the PE is about to sleep; it must look once more before it does.
    pub fn prepare(&self) {
        // Release: pairs with the acquire in `unpark`, which must find the thread settled.
        self.asleep.store(true, Release);
        // Pairs with the fence in `wake`: either the sender sees the flag, or the waiter's next
        // look sees the message.
        fence(SeqCst);
    }

    /// The last look found something: no sleep.
    pub fn cancel(&self) {
        self.asleep.store(false, Relaxed);
    }

    /// Sleeps until woken, or at most for `limit`.
    pub fn sleep(&self, limit: Duration) {
        park_at_most(limit);
        self.cancel();
    }

    /// Wakes the PE if it sleeps or is about to; call it after the store it waits for.
    #[inline(always)]
    pub fn wake(&self) {
        fence(SeqCst); // pairs with the fence in `prepare`
        if self.asleep.load(Relaxed) {
            self.unpark();
        }
    }

    #[cold]
    fn unpark(&self) {
        // Acquire: pairs with the release in `prepare`.
        if self.asleep.swap(false, Acquire)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

/// What the executor does between polls once spinning has not helped.
pub(crate) trait Idle {
    /// Yields, checks for failure, sleeps; returns how often to poll before the next pause.
    fn pause(&mut self) -> u32;
}

/// What a future waits for while it is pending, for the executor to watch.
pub(crate) trait Watch {
    /// Waits until that may have happened, at most `left` times, and takes from `left` what it
    /// used.
    fn spin(&self, left: &mut u32);
}

/// Polls `future` in place until it is ready. The executor alone spins and pauses: the future's
/// waits are pending at once, and `watch` says what to look at until it is worth polling again.
/// Polls and looks `polls()` times before the first pause of `idle`.
#[inline(always)]
pub(crate) fn block_on<F: Future, I: Idle>(
    future: F,
    watch: &impl Watch,
    polls: impl Fn() -> u32,
    idle: impl Fn() -> I,
) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let mut left = None;
    let mut pauses = None;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let left = left.get_or_insert_with(&polls);
        if *left == 0 {
            *left = pauses.get_or_insert_with(&idle).pause();
        } else {
            *left -= 1;
            watch.spin(left);
        }
    }
}
