//! Two threads on two cores: the transfer of a line between them, and one thread's use of lines
//! that the other has just rewritten.

use std::{
    hint::black_box,
    io,
    panic::resume_unwind,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use consort_fabric::statistics::median;
use consort_machine::affinity::{self, CpuId};

use super::ping_pong::{PingPong, PingPongTimeout};

/// The number of round trips in a timed block: less than 10 ms on any machine, but far above the
/// clock's resolution.
const BLOCK_ROUNDS: u32 = 500;
/// The smallest number of samples for a median, unless they take [`PATIENCE`] times the budget.
const MIN_SAMPLES: usize = 3;
const PATIENCE: u32 = 8;
/// The smallest budget for this comparison, because suspending a thread takes milliseconds.
const SHORTEST: Duration = Duration::from_millis(10);

/// Returns the time in nanoseconds in which a cache line written on one core becomes readable on
/// the other: half the median round trip between two threads bound to `a` and `b`.
///
/// # Errors
/// If `a` is `b`, a thread cannot be bound, or one gets no processor time for a second.
pub fn transfer_ns(a: CpuId, b: CpuId, budget: Duration) -> io::Result<f64> {
    let stop = AtomicBool::new(false);
    pair(
        a,
        b,
        |link| {
            link.run(0, BLOCK_ROUNDS)?;
            let ns = median_within(budget, || link.one_way_ns(0, BLOCK_ROUNDS))?;
            // Relaxed: the other side reads it after the next block, whose pings publish it.
            stop.store(true, Ordering::Relaxed);
            link.run(0, BLOCK_ROUNDS)?;
            Ok(ns)
        },
        |link| {
            while !stop.load(Ordering::Relaxed) {
                link.run(1, BLOCK_ROUNDS)?;
            }
            Ok(())
        },
    )
}

/// Makes a buffer on core `b`. Then, repeatedly, core `b` rewrites it and core `a` uses it. Returns
/// the median of the results of `measured`.
///
/// # Errors
/// As for [`transfer_ns`].
pub fn after_rewriting<T: Send>(
    a: CpuId,
    b: CpuId,
    budget: Duration,
    make: impl FnOnce() -> Vec<T> + Send,
    rewrite: impl Fn(&mut [T]) + Sync,
    mut measured: impl FnMut(&[T]) -> f64 + Send,
) -> io::Result<f64> {
    // The ping-pong alternates the two sides, so the lock is never contended.
    let shared = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    pair(
        a,
        b,
        |link| {
            let result = median_within(budget, || {
                // The first round requests new contents from the owner, and the second waits for
                // them.
                link.run(0, 1)?;
                link.run(0, 1)?;
                Ok(measured(&lock(&shared)))
            })?;
            // Relaxed: the other side reads it after the next round, whose ping publishes it.
            stop.store(true, Ordering::Relaxed);
            link.run(0, 1)?;
            Ok(result)
        },
        |link| {
            *lock(&shared) = make();
            loop {
                link.run(1, 1)?;
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                rewrite(black_box(&mut *lock(&shared)));
                link.run(1, 1)?;
            }
        },
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the median of samples taken until the budget is spent.
///
/// # Errors
/// That of `one`.
pub fn median_within<E>(
    budget: Duration,
    mut one: impl FnMut() -> Result<f64, E>,
) -> Result<f64, E> {
    let start = Instant::now();
    let mut samples = Vec::new();
    loop {
        samples.push(one()?);
        let spent = start.elapsed();
        let enough = samples.len() >= MIN_SAMPLES || spent >= PATIENCE * budget.max(SHORTEST);
        if enough && spent >= budget {
            return Ok(median(&mut samples));
        }
    }
}

/// Runs `first` bound to `a` and `second` bound to `b`, with a ping-pong between them.
fn pair<T: Send>(
    a: CpuId,
    b: CpuId,
    first: impl FnOnce(&PingPong) -> Result<T, PingPongTimeout> + Send,
    second: impl FnOnce(&PingPong) -> Result<(), PingPongTimeout> + Send,
) -> io::Result<T> {
    if a == b {
        let message = format!("{a} has no transfer to itself");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let link = PingPong::new();
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| bound(a, &link, first));
        let second = scope.spawn(|| bound(b, &link, second));
        (first.join(), second.join())
    });
    let first = first.unwrap_or_else(|panic| resume_unwind(panic));
    let second = second.unwrap_or_else(|panic| resume_unwind(panic));
    match (first, second) {
        (Ok(value), Ok(())) => Ok(value),
        // The side that failed has the reason; the other only knows that it got no reply.
        (Err(error), Err(reason)) if error.kind() == io::ErrorKind::TimedOut => Err(reason),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn bound<T>(
    cpu: CpuId,
    link: &PingPong,
    side: impl FnOnce(&PingPong) -> Result<T, PingPongTimeout>,
) -> io::Result<T> {
    if let Err(error) = affinity::pin(cpu) {
        link.abandon();
        return Err(error);
    }
    Ok(side(link)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(20);

    #[test]
    fn a_transfer_is_plausible() {
        let [a, b, ..] = affinity::allowed()[..] else { return };
        let ns = transfer_ns(a, b, BUDGET).unwrap();
        assert!((1.0..1e6).contains(&ns), "{ns} ns");
    }

    #[test]
    fn three_samples_are_taken_unless_far_over_budget() {
        let count = |budget, sample| {
            let mut count = 0;
            let Ok(_) = median_within(budget, || {
                count += 1;
                thread::sleep(sample);
                Ok::<f64, std::convert::Infallible>(1.0)
            });
            count
        };
        let ms = Duration::from_millis;
        assert_eq!(count(ms(1), ms(100)), 1);
        assert_eq!(count(ms(0), ms(0)), MIN_SAMPLES);
    }

    #[test]
    fn a_core_has_no_transfer_to_itself() {
        let cpu = affinity::allowed()[0];
        let error = transfer_ns(cpu, cpu, BUDGET).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn failed_thread_binding_is_the_reason() {
        let error = transfer_ns(affinity::allowed()[0], CpuId(u32::MAX), BUDGET).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
