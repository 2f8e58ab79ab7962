//! The driver of waits on the native machine: polls, yields, sleeps.
//!
//! A table contains the parkers at which threads sleep. The address of the awaited word determines
//! the entry of the table. A thread that stores to a word checks whether a thread sleeps at the
//! word's entry. If two words share an entry, a store to one also wakes the threads that wait for
//! the other: they check their word and sleep again.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{
    monitor,
    threads::{ThreadState, with_thread},
};
use crate::{
    Word,
    sync::futex::Scope,
    system::{clock, slice::ShortSlice},
    wait::{
        executor::{self, Idle, Watch},
        parker::Parker,
        sleepers::{Sleeper, Sleepers},
        spin_budget::{POLLS_PER_YIELD, SLEEP, SpinBudget, Yields},
    },
};

/// Polls a future on [`NativeMachine`](crate::NativeMachine) in place until it is ready. The thread
/// polls, then yields, then sleeps until the word that it waits for changes. If it had to sleep in
/// earlier waits, it sleeps sooner (`wait::spin_budget`).
#[inline(always)]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    executor::block_on(
        future,
        &Unwatched,
        || with_thread(|state| state.budget.get().polls()),
        Backoff::default,
    )
}

/// Like [`block_on`], for a thread whose work is to wait for others: in each wait of the future, it
/// yields for longer before it sleeps. So it stays runnable while it has work, and the system gives
/// it its own core instead of the core of the thread that wakes it. A wait with a limit of a
/// millisecond or more is a rest, in which it sleeps at once.
pub fn block_on_yielding<T>(future: impl Future<Output = T>) -> T {
    let budget = SpinBudget::new(false);
    with_thread(|state| state.budget.set(budget));
    executor::block_on(future, &Unwatched, || budget.polls(), Backoff::of_server)
}

/// Returns the result of a future on [`NativeMachine`](crate::NativeMachine) that does not wait.
///
/// # Panics
/// When it waits.
#[inline(always)]
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future waits that should not"),
    }
}

/// The executor has no word to watch and polls the future again. The processor watches the future's
/// word.
struct Unwatched;

impl Watch for Unwatched {
    /// Pauses once, or makes the processor wait in place of all remaining polls.
    #[inline(always)]
    fn spin(&self, left: &mut u32) {
        if with_thread(|state| state.watches.get()) {
            monitor::wait();
            *left = 0;
        } else {
            std::hint::spin_loop();
        }
    }
}

/// A wait of a server with at least this limit is a rest, in nanoseconds. It is well below a
/// millisecond, because some time passes between the start of a wait and its first pause.
const REST_NS: u64 = 500_000;

/// The pauses of one call of [`block_on`], or of one wait of a server.
#[derive(Default)]
struct Backoff {
    is_server: bool,
    /// The word of the server's last wait, and when the wait ends regardless.
    last_wait: Option<(usize, Option<u64>)>,
    /// Whether that wait is a rest.
    rests: bool,
    yields: Option<Yields>,
    /// The sleep that the thread has announced, and the address of its word.
    announced: Option<(Sleeper<'static>, usize)>,
}

impl Backoff {
    fn of_server() -> Self {
        Self { is_server: true, last_wait: None, rests: false, yields: None, announced: None }
    }

    fn pause_as(&mut self, state: &ThreadState) -> u32 {
        let (word, end) = state.waits_for.get();
        let is_new = self.is_server && self.last_wait.replace((word, end)) != Some((word, end));
        if is_new {
            (self.yields, self.announced) = (None, None);
            self.rests = end.is_some_and(|end| end >= clock::now_ns() + REST_NS);
        }
        let yields = self.yields.get_or_insert_with(|| Yields::new(state.budget.get()));
        if let Some((sleeper, _)) = self.announced.take_if(|(_, announced)| *announced == word) {
            yields.note_sleep();
            let left = |end: u64| Duration::from_nanos(end.saturating_sub(clock::now_ns()));
            // The thread that wakes up should run at once, even if other programs are running.
            let _short = ShortSlice::begin();
            sleeper.sleep(end.map_or(SLEEP, |end| left(end).min(SLEEP)));
            return 1;
        }
        self.announced = None; // the wait went on to another word
        if self.rests || yields.are_over(yields.waited(), || true) {
            self.announced = Some((announce(word), word));
            return 0;
        }
        yields.yield_now(|| true);
        state.watches.set(monitor::is_supported());
        POLLS_PER_YIELD
    }
}

impl Idle for Backoff {
    #[cold]
    fn pause(&mut self) -> u32 {
        with_thread(|state| self.pause_as(state))
    }
}

impl Drop for Backoff {
    fn drop(&mut self) {
        if let Some(yields) = &self.yields {
            with_thread(|state| {
                state.budget.set(yields.next_budget());
                state.watches.set(false);
            });
        }
    }
}

/// The number of table entries: a power of two.
const SLOTS: usize = 256;

/// An entry of the table at which threads sleep that wait for a word.
struct ParkingSlot {
    sleepers: Sleepers,
    parker: Parker,
}

static TABLE: [ParkingSlot; SLOTS] =
    [const { ParkingSlot { sleepers: Sleepers::new(), parker: Parker::new() } }; SLOTS];

/// Returns the entry for the word at this address.
fn slot(address: usize) -> &'static ParkingSlot {
    // Fibonacci hashing (Knuth 1973, section 6.4): the upper bits of the product are well mixed.
    let mixed = (address as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[usize::try_from(mixed >> (u64::BITS - SLOTS.ilog2())).unwrap_or(0)]
}

/// Returns the address of a word, by which threads sleep.
pub(super) fn address(word: &Word) -> usize {
    std::ptr::from_ref(word).addr()
}

/// Announces that the calling thread is about to sleep until the word at this address changes. The
/// thread must then check the word once more.
fn announce(address: usize) -> Sleeper<'static> {
    let ParkingSlot { sleepers, parker } = slot(address);
    sleepers.announce(parker, false, Scope::Process)
}

/// Wakes the threads that sleep until this word changes. Call it after the store.
#[inline(always)]
pub(super) fn wake(word: &Word) {
    let ParkingSlot { sleepers, parker } = slot(address(word));
    if sleepers.any() {
        parker.wake(Scope::Process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of yields before a thread announces its sleep in this wait.
    fn yields(backoff: &mut Backoff, word: usize, end: Option<u64>) -> u32 {
        with_thread(|state| state.waits_for.set((word, end)));
        let mut yields = 0;
        while backoff.pause() != 0 {
            yields += 1;
        }
        yields
    }

    /// The limit of the servers' own rests.
    #[test]
    fn limit_of_a_millisecond_is_a_rest() {
        with_thread(|state| state.budget.set(SpinBudget::new(false)));
        let mut backoff = Backoff::of_server();
        for _ in 0..3 {
            let end = clock::now_ns() + 1_000_000;
            assert_eq!(yields(&mut backoff, 8, Some(end)), 0);
        }
    }

    #[test]
    fn server_yields_in_each_wait_except_in_rests() {
        with_thread(|state| state.budget.set(SpinBudget::new(false)));
        let mut backoff = Backoff::of_server();
        assert!(yields(&mut backoff, 8, None) > 0);
        assert!(yields(&mut backoff, 16, None) > 0, "the second wait");
        assert_eq!(yields(&mut backoff, 24, Some(clock::now_ns() + 100 * REST_NS)), 0);
        assert!(yields(&mut backoff, 24, Some(clock::now_ns())) > 0, "a short wait");
        with_thread(|state| state.budget.set(SpinBudget::new(false)));
        let mut backoff = Backoff::default();
        assert!(yields(&mut backoff, 8, None) > 0);
        assert_eq!(yields(&mut backoff, 16, None), 0, "a wait of the same call");
    }
}
