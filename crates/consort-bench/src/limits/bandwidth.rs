//! The bandwidth at which one core copies and adds its own data, and another core's data.
//!
//! All figures are bytes written to the target per nanosecond (GB/s). A core's own buffers are warm
//! and reused in each pass. If the data is another core's, a thread on that core first adds to each
//! word of its buffer. This leaves the lines dirty in that core's caches, if they fit. Then only
//! the first core's work on the lines is timed.

use std::{
    convert::Infallible,
    hint::black_box,
    io,
    time::{Duration, Instant},
};

use consort_machine::affinity::CpuId;

use super::between::{after_rewriting, median_within};

/// The smallest number of bytes of a sample. Smaller local buffers are passed over several times,
/// because reading the clock takes tens of nanoseconds.
const SAMPLE_BYTES: usize = 1 << 20;

/// Returns the bandwidth of memcpy on the calling thread in GB/s, for a buffer of `bytes` bytes
/// (rounded down to whole doubles, at least one). The thread owns source and target.
pub fn copy_gbps(bytes: usize, budget: Duration) -> f64 {
    let source = vec![1.0; words(bytes)];
    let mut target = vec![0.0; words(bytes)];
    local_gbps(bytes, budget, || {
        black_box(&mut target[..]).copy_from_slice(black_box(&source));
    })
}

/// Returns the bandwidth of `target[i] = a[i] + b[i]` over doubles on the calling thread, in GB/s
/// of `target`, which has `bytes` bytes (rounded down to whole doubles, at least one).
pub fn combine_gbps(bytes: usize, budget: Duration) -> f64 {
    let (a, b) = (vec![1.0; words(bytes)], vec![2.0; words(bytes)]);
    let mut target = vec![0.0; words(bytes)];
    local_gbps(bytes, budget, || {
        add(black_box(&mut target), black_box(&a), black_box(&b));
    })
}

/// Returns the bandwidth in GB/s at which core `a` copies a buffer of `bytes` bytes (rounded down
/// to whole doubles, at least one) that core `b` has just rewritten.
///
/// # Errors
/// As for [`transfer_ns`](super::transfer_ns).
pub fn pull_gbps(a: CpuId, b: CpuId, bytes: usize, budget: Duration) -> io::Result<f64> {
    remote_gbps(a, b, bytes, budget, |target, _, theirs| target.copy_from_slice(theirs))
}

/// As [`combine_gbps`] on core `a`, if core `b` has just rewritten the second summand.
///
/// # Errors
/// As for [`transfer_ns`](super::transfer_ns).
pub fn pull_combine_gbps(a: CpuId, b: CpuId, bytes: usize, budget: Duration) -> io::Result<f64> {
    remote_gbps(a, b, bytes, budget, add)
}

fn local_gbps(bytes: usize, budget: Duration, mut pass: impl FnMut()) -> f64 {
    let bytes = words(bytes) * size_of::<f64>();
    let passes = (SAMPLE_BYTES / bytes).max(1);
    pass();
    let Ok(gbps) = median_within(budget, || {
        let start = Instant::now();
        (0..passes).for_each(|_| pass());
        Ok::<f64, Infallible>(gbps(passes * bytes, start.elapsed()))
    });
    gbps
}

/// Calls `pass` with `(target, own, theirs)` on core `a` each time `b` has rewritten `theirs`.
fn remote_gbps(
    a: CpuId,
    b: CpuId,
    bytes: usize,
    budget: Duration,
    pass: fn(&mut [f64], &[f64], &[f64]),
) -> io::Result<f64> {
    let words = words(bytes);
    let (own, mut target) = (vec![1.0; words], vec![0.0; words]);
    let rewrite = |theirs: &mut [f64]| theirs.iter_mut().for_each(|word| *word += 1.0);
    after_rewriting(
        a,
        b,
        budget,
        || vec![1.0; words],
        rewrite,
        |theirs| {
            let start = Instant::now();
            pass(black_box(&mut target), black_box(&own), black_box(theirs));
            gbps(words * size_of::<f64>(), start.elapsed())
        },
    )
}

fn add(target: &mut [f64], a: &[f64], b: &[f64]) {
    for ((target, a), b) in target.iter_mut().zip(a).zip(b) {
        *target = a + b;
    }
}

fn words(bytes: usize) -> usize {
    (bytes / size_of::<f64>()).max(1)
}

fn gbps(bytes: usize, time: Duration) -> f64 {
    // A pass below the resolution of the clock counts as 1 ns.
    bytes as f64 / (time.as_secs_f64() * 1e9).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_between_two_cores_are_plausible() {
        let [a, b, ..] = consort_machine::affinity::allowed()[..] else { return };
        for measure in [pull_gbps, pull_combine_gbps] {
            let gbps = measure(a, b, 32 << 10, Duration::from_millis(20)).unwrap();
            assert!((0.01..10_000.0).contains(&gbps), "{gbps} GB/s");
        }
    }

    #[test]
    fn local_bandwidths_are_plausible() {
        for measure in [copy_gbps, combine_gbps] {
            for bytes in [0, 12, 32 << 10] {
                let gbps = measure(bytes, Duration::from_millis(5));
                assert!((0.001..10_000.0).contains(&gbps), "{bytes} bytes: {gbps} GB/s");
            }
        }
    }

    #[test]
    fn whole_doubles_are_counted() {
        assert_eq!([0, 7, 8, 17, 1 << 20].map(words), [1, 1, 1, 2, 1 << 17]);
        assert_eq!(gbps(1000, Duration::from_nanos(500)), 2.0);
    }

    #[test]
    fn add_sums_element_by_element() {
        let mut target = [0.0; 3];
        add(&mut target, &[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]);
        assert_eq!(target, [11.0, 22.0, 33.0]);
    }
}
