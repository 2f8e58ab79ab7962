//! The executor, which polls an algorithm's future in place. Only the executor spins and pauses.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// The pauses that the executor makes when spinning has not helped.
pub trait Idle {
    /// Yields, checks for failure or sleeps; returns how often to poll before the next pause.
    fn pause(&mut self) -> u32;
}

/// The word that a pending future waits for. The executor watches it.
pub trait Watch {
    /// Spins until the word may have changed, at most `left` times. Subtracts from `left` the
    /// number of times that it spun.
    fn spin(&self, left: &mut u32);
}

/// Polls `future` in place until it is ready. Only the executor spins and pauses: the waits inside
/// the future return pending at once, and `watch` spins until it is worth polling again. The
/// executor polls `polls()` times before the first pause of `idle`.
#[inline(always)]
pub fn block_on<F: Future, I: Idle>(
    future: F,
    watch: &impl Watch,
    polls: impl FnOnce() -> u32,
    idle: impl Fn() -> I,
) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    // Fast path: if the result is there already, no waiting is set up.
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
