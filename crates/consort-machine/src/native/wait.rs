//! The driver of waits on the native machine: polls, yields, sleeps.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{
    monitor,
    sleep::announce,
    threads::{Me, me},
};
use crate::{
    system::clock,
    wait::sleepers::Sleeper,
    wait::{
        executor::{self, Idle, Watch},
        patience::{POLLS_PER_YIELD, Patience, SLEEP, Yields},
    },
};

/// Polls a future on [`NativeMachine`](crate::NativeMachine) in place until it is ready. The thread
/// polls, then yields, then sleeps until the word that it waits for changes. It waits for less time
/// before it sleeps if it had to sleep before (`wait::patience`).
#[inline(always)]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    executor::block_on(future, &Unwatched, || me(|me| me.patience.get().polls()), Pauses::default)
}

/// As [`block_on`], for a thread whose work it is to wait for others: it yields for longer before
/// it sleeps. So while it has work it stays runnable, and the system gives it a core of its own
/// rather than that of whoever wakes it.
pub fn block_on_patiently<T>(future: impl Future<Output = T>) -> T {
    me(|me| me.patience.set(Patience::new(false)));
    block_on(future)
}

/// The result of a future on [`NativeMachine`](crate::NativeMachine) that does not wait.
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

/// Nothing is watched but the future, by the thread; its word, by the processor.
struct Unwatched;

impl Watch for Unwatched {
    /// One pause, or the processor's own wait in place of all that are left.
    #[inline(always)]
    fn spin(&self, left: &mut u32) {
        if me(|me| me.watches.get()) {
            monitor::wait();
            *left = 0;
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The pauses of one wait.
#[derive(Default)]
struct Pauses {
    yields: Option<Yields>,
    /// The sleep that the thread has announced, and the word's address.
    announced: Option<(Sleeper<'static>, usize)>,
}

impl Pauses {
    fn pause_as(&mut self, me: &Me) -> u32 {
        let yields = self.yields.get_or_insert_with(|| Yields::new(me.patience.get()));
        let (word, end) = me.waits_for.get();
        if let Some((sleeper, _)) = self.announced.take_if(|(_, announced)| *announced == word) {
            yields.note_sleep();
            let left = |end: u64| Duration::from_nanos(end.saturating_sub(clock::now_ns()));
            sleeper.sleep(end.map_or(SLEEP, |end| left(end).min(SLEEP)));
            return 1;
        }
        self.announced = None; // the wait went on to another word
        if yields.are_over(yields.waited()) {
            self.announced = Some((announce(word), word));
            return 0;
        }
        yields.yield_now();
        me.watches.set(monitor::is_there());
        POLLS_PER_YIELD
    }
}

impl Idle for Pauses {
    #[cold]
    fn pause(&mut self) -> u32 {
        me(|me| self.pause_as(me))
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        if let Some(yields) = &self.yields {
            me(|me| {
                me.patience.set(yields.next_patience());
                me.watches.set(false);
            });
        }
    }
}
