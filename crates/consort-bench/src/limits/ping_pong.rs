//! A ping-pong of two PEs, for timing the transfer of one cache line.
//!
//! Each side owns a counter on its own line. In round `n` side 0 writes `n` and waits until side
//! 1's counter reaches it; side 1 waits for side 0's counter, then writes `n`. A round is two
//! transfers on the critical path. The counters continue from one run to the next, so they need no
//! reset between two uses. Each counter has two lines, because the prefetcher also loads the
//! adjacent line.

use std::{
    hint::spin_loop,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long one side waits for the other in one round.
const PATIENCE: Duration = Duration::from_secs(1);
/// The clock is read once in this many spins.
const SPINS_PER_LOOK: u32 = 1 << 12;

/// The other side of a [`PingPong`] did not answer within a second, or has abandoned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side of the ping-pong did not answer within 1 s")]
pub struct PingPongTimeout;

impl From<PingPongTimeout> for io::Error {
    fn from(unanswered: PingPongTimeout) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, unanswered)
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

/// The shared part of a ping-pong between two threads.
///
/// Both threads call [`run`](PingPong::run) with the same number of rounds, one as side 0 and one
/// as side 1. Data that a side wrote before its run may be read by the other side after it.
///
/// It consists of words that are all zero before it begins, so processes may share its memory.
#[derive(Debug, Default)]
pub struct PingPong {
    /// The last round that each side has written.
    rounds: [Line<AtomicU64>; 2],
    /// Not 0 if a side has given up: the counters may no longer agree.
    broken: Line<AtomicU64>,
}

impl PingPong {
    /// Creates a ping-pong that has not begun.
    pub fn new() -> PingPong {
        PingPong::default()
    }

    /// Plays `rounds` round trips as `side` 0 or 1.
    ///
    /// # Errors
    /// If a round of the other side takes more than a second. Every later run of both sides then
    /// fails at once.
    ///
    /// # Panics
    /// If `side` is neither 0 nor 1.
    pub fn run(&self, side: u32, rounds: u32) -> Result<(), PingPongTimeout> {
        assert!(side < 2, "a ping-pong has sides 0 and 1, not {side}");
        self.ensure_whole()?;
        let [ping, pong] = &self.rounds;
        let done = if side == 0 { &ping.0 } else { &pong.0 }.load(Ordering::Relaxed);
        for round in done + 1..=done + u64::from(rounds) {
            // Release: pairs with the Acquire in `wait` on the other side.
            if side == 0 {
                ping.0.store(round, Ordering::Release);
                self.wait(&pong.0, round)?;
            } else {
                self.wait(&ping.0, round)?;
                pong.0.store(round, Ordering::Release);
            }
        }
        Ok(())
    }

    /// As [`run`](PingPong::run), timed: returns the mean time of a one-way transfer in
    /// nanoseconds.
    ///
    /// # Errors
    /// As for [`run`](PingPong::run).
    pub fn one_way_ns(&self, side: u32, rounds: u32) -> Result<f64, PingPongTimeout> {
        let start = Instant::now();
        self.run(side, rounds)?;
        Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds) / 2.0)
    }

    /// Makes the other side's current or next run fail, because this side will not reply.
    pub fn abandon(&self) {
        self.broken.0.store(1, Ordering::Relaxed);
    }

    fn ensure_whole(&self) -> Result<(), PingPongTimeout> {
        if self.broken.0.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(PingPongTimeout) }
    }

    #[inline]
    fn wait(&self, word: &AtomicU64, round: u64) -> Result<(), PingPongTimeout> {
        let mut since = None;
        let mut spins = 0;
        // Acquire: pairs with the Release stores of `run` on the other side.
        while word.load(Ordering::Acquire) < round {
            spin_loop();
            spins += 1;
            if spins == SPINS_PER_LOOK {
                self.look(since.get_or_insert_with(Instant::now))?;
                spins = 0;
            }
        }
        Ok(())
    }

    #[cold]
    fn look(&self, since: &Instant) -> Result<(), PingPongTimeout> {
        if since.elapsed() > PATIENCE {
            self.abandon();
        }
        self.ensure_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn two_sides_agree_run_after_run() {
        let link = PingPong::new();
        thread::scope(|scope| {
            let other = scope.spawn(|| (1..20).try_for_each(|rounds| link.run(1, rounds)));
            assert_eq!((1..20).try_for_each(|rounds| link.run(0, rounds)), Ok(()));
            assert_eq!(other.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn one_side_alone_gives_up_after_a_second() {
        let link = PingPong::new();
        let start = Instant::now();
        assert_eq!(link.run(1, 1), Err(PingPongTimeout));
        assert!(start.elapsed() >= PATIENCE);
        assert_eq!(link.run(0, 1), Err(PingPongTimeout), "for good");
    }

    #[test]
    fn an_abandoned_side_returns_at_once() {
        let link = PingPong::new();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| link.run(0, 1));
            link.abandon();
            assert_eq!(waiting.join().unwrap(), Err(PingPongTimeout));
        });
    }

    #[test]
    #[should_panic(expected = "sides 0 and 1")]
    fn third_side_panics() {
        let _ = PingPong::new().run(2, 1);
    }
}
