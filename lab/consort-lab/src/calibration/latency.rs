//! The latency of a load whose address depends on the previous load, the time of an atomic
//! addition, and the core's clock. Each is measured for about its budget, and the result is the
//! median.

use std::{
    convert::Infallible,
    hint::black_box,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use consort_bench::limits::{after_rewriting, median_within};
use consort_machine::affinity::CpuId;

/// The smallest number of loads in a sample: reading the clock takes tens of nanoseconds.
const SAMPLE_LOADS: usize = 4096;
/// The number of steps in a sample of the core's clock.
const SAMPLE_STEPS: u32 = 1 << 14;
/// Three shifts and three exclusive ors, each of which depends on the previous one.
const CYCLES_PER_STEP: f64 = 6.0;

/// Returns the next state of xorshift64 (Marsaglia 2003), which is never zero.
#[inline]
const fn step(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// A line of a chain: the index of the next one, and a word for rewriting the line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Link {
    next: usize,
    word: u64,
}

/// Returns a chain through all lines of `bytes` bytes (at least one), in an order that no
/// prefetcher predicts: a random cycle (Sattolo 1986), the same each time.
fn chain(bytes: usize) -> Vec<Link> {
    let count = (bytes / size_of::<Link>()).max(1);
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..count).rev() {
        state = step(state);
        let random = usize::try_from(state >> 33).unwrap_or(0);
        order.swap(last, random % last);
    }
    order.into_iter().map(|next| Link { next, word: 0 }).collect()
}

/// Returns the nanoseconds per load along a chain.
fn follow(chain: &[Link], loads: usize) -> f64 {
    let start = Instant::now();
    let mut at = 0;
    for _ in 0..loads {
        at = chain[at].next;
    }
    black_box(at);
    start.elapsed().as_secs_f64() * 1e9 / loads as f64
}

/// Returns the latency in nanoseconds of a load whose address depends on the previous load, among
/// `bytes` bytes of the calling thread: that of the cache in which they fit, or of memory.
pub(super) fn load_ns(bytes: usize, budget: Duration) -> f64 {
    let chain = chain(bytes);
    let loads = chain.len().max(SAMPLE_LOADS);
    follow(&chain, loads);
    let Ok(ns) = median_within(budget, || Ok::<_, Infallible>(follow(&chain, loads)));
    ns
}

/// As [`load_ns`] on core `a`, among lines that core `b` has just rewritten.
///
/// # Errors
/// As for [`transfer_ns`](consort_bench::limits::transfer_ns).
pub(super) fn pull_load_ns(a: CpuId, b: CpuId, bytes: usize, budget: Duration) -> io::Result<f64> {
    let make = || chain(bytes);
    let rewrite = |chain: &mut [Link]| chain.iter_mut().for_each(|link| link.word += 1);
    after_rewriting(a, b, budget, make, rewrite, |chain| follow(chain, chain.len()))
}

/// Returns the time in nanoseconds of an atomic addition to a word that only the calling thread's
/// core has cached.
pub(super) fn fetch_add_ns(budget: Duration) -> f64 {
    let word = AtomicU64::new(0);
    let Ok(ns) = median_within(budget, || {
        let start = Instant::now();
        for _ in 0..SAMPLE_LOADS {
            word.fetch_add(1, Ordering::AcqRel);
        }
        Ok::<_, Infallible>(start.elapsed().as_secs_f64() * 1e9 / SAMPLE_LOADS as f64)
    });
    ns
}

/// Returns the clock of the calling thread's core in GHz: the rate of one-cycle instructions that
/// each depend on the previous one.
pub(super) fn clock_ghz(budget: Duration) -> f64 {
    let mut state = black_box(1);
    let Ok(ghz) = median_within(budget, || {
        let start = Instant::now();
        for _ in 0..SAMPLE_STEPS {
            state = step(state);
        }
        black_box(state);
        let ns = start.elapsed().as_secs_f64() * 1e9;
        Ok::<_, Infallible>(f64::from(SAMPLE_STEPS) * CYCLES_PER_STEP / ns.max(1.0))
    });
    ghz
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(5);

    #[test]
    fn a_chain_visits_every_line_before_it_comes_back() {
        for bytes in [0, 64, 100, 4096, 1 << 16] {
            let chain = chain(bytes);
            let mut at = 0;
            let back = (1..=chain.len()).find(|_| {
                at = chain[at].next;
                at == 0
            });
            assert_eq!(back, Some((bytes / 64).max(1)), "{bytes} bytes");
        }
    }

    #[test]
    fn loads_from_another_core_are_plausible() {
        let [a, b, ..] = consort_machine::affinity::allowed()[..] else { return };
        let ns = pull_load_ns(a, b, 32 << 10, BUDGET).unwrap();
        assert!((0.5..1e5).contains(&ns), "{ns} ns");
    }

    #[test]
    fn a_core_is_plausible() {
        assert!((0.1..1000.0).contains(&load_ns(16 << 10, BUDGET)));
        assert!((0.1..1000.0).contains(&fetch_add_ns(BUDGET)));
        let ghz = clock_ghz(BUDGET);
        assert!((0.05..20.0).contains(&ghz), "{ghz} GHz");
    }
}
