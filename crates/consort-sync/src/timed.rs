//! Deadlines, and attempts with a time limit, for every lock.
//!
//! A waiting thread can leave a queue only if its node can be removed. So a thread with a time
//! limit does not queue up. It tries again and again: first after pauses, then after yields, then
//! after naps that last a small part of the time waited. Threads that wait without a limit may
//! overtake it.

use std::{
    hint, thread,
    time::{Duration, Instant},
};

use consort_machine::{Machine, nap_after};

use crate::machine::MACHINE;

/// The number of attempts after a pause, and then the number of attempts after a yield.
const PAUSES: u32 = 100;
const YIELDS: u32 = 20;

/// Returns the end of a time limit that begins now; `None` if the clock cannot represent it.
pub(crate) fn deadline_after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

/// Returns the time of the machine's clock at the deadline, or a little later.
pub(crate) fn clock_at(deadline: Instant) -> u64 {
    let left = deadline.saturating_duration_since(Instant::now());
    let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    MACHINE.now_ns().saturating_add(left_ns)
}

/// Tries until an attempt succeeds or the deadline has passed. `None` means no deadline. Tries at
/// least once.
pub(crate) fn try_until<T>(
    deadline: Option<Instant>,
    attempt: impl Fn() -> Option<T>,
) -> Option<T> {
    if let Some(result) = attempt() {
        return Some(result);
    }
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        let now = Instant::now();
        let left =
            deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now));
        if left.is_zero() {
            return None;
        }
        if attempts < PAUSES {
            hint::spin_loop();
        } else if attempts < PAUSES + YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(nap_after(now - begun).min(left));
        }
        attempts = attempts.saturating_add(1);
        if let Some(result) = attempt() {
            return Some(result);
        }
    }
}
