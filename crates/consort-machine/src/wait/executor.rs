//! The executor, which polls an algorithm in place: it alone spins and pauses.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// A pause of the executor, once spinning has not helped.
pub trait Idle {
    /// Yields, checks for failure, sleeps; returns how often to poll before the next pause.
    fn pause(&mut self) -> u32;
}

/// The word that a pending future waits for, which the executor watches.
pub trait Watch {
    /// Waits until that may have happened, at most `left` times, and takes from `left` what it
    /// used.
    fn spin(&self, left: &mut u32);
}

/// Polls `future` in place until it is ready. The executor alone spins and pauses: the future's
/// waits are pending at once, and `watch` says what to look at until it is worth polling again.
/// Polls and looks `polls()` times before the first pause of `idle`.
#[inline(always)]
pub fn block_on<F: Future, I: Idle>(
    future: F,
    watch: &impl Watch,
    polls: impl FnOnce() -> u32,
    idle: impl Fn() -> I,
) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    // What is there already is had without a thought of waiting.
    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
        return output;
    }
    let mut left = polls();
    let mut pauses = None;
    loop {
        if left == 0 {
            left = pauses.get_or_insert_with(&idle).pause();
        } else {
            left -= 1;
            watch.spin(&mut left);
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
