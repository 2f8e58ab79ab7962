//! Counts of the polls, yields and sleeps of a PE's waits.

use std::{
    thread,
    time::{Duration, Instant},
};

use consort::{Job, Pe, Rank, Result, Waiting, Waits};

/// The time for which PE 1 is late, in each of some barriers.
const LATE: Duration = Duration::from_millis(30);

/// Calls barriers for which PE 1 is `late`. Returns when this PE called each, and when it returned.
pub(super) fn late_barriers(pe: &Pe, count: u64, late: Duration) -> Result<Vec<[Instant; 2]>> {
    let world = pe.world();
    let barrier = |_| {
        if world.rank() == Rank(1) {
            thread::sleep(late);
        }
        let called = Instant::now();
        world.barrier()?;
        Ok([called, Instant::now()])
    };
    (0..count).map(barrier).collect()
}

/// Returns the least and the most time that PE 0 can have waited in barriers: until PE 1 called
/// each, and until PE 0 returned. They differ only if the machine is busy.
pub(super) fn time_of_waiter(waiter: &[[Instant; 2]], late: &[[Instant; 2]]) -> [Duration; 2] {
    let of_both = waiter.iter().zip(late);
    let least = of_both.map(|(&[from, _], &[until, _])| until.saturating_duration_since(from));
    [least.sum(), waiter.iter().map(|&[from, until]| until - from).sum()]
}

/// Returns the counts of PE 0, which waits for PE 1 in barriers, and how long it waited.
fn counts_of_waiter(policy: Waiting) -> (Waits, [Duration; 2]) {
    let ended = Job::threads(2).waiting(policy).run(|pe| {
        let barriers = late_barriers(pe, 4, LATE)?;
        Ok((pe.waits(), barriers))
    });
    let ended = ended.expect("no PE fails");
    (ended[0].0, time_of_waiter(&ended[0].1, &ended[1].1))
}

#[test]
fn each_policy_counts_its_pauses() {
    for policy in Waiting::EVERY {
        let (waits, _) = counts_of_waiter(policy);
        assert!(waits.paused > 0 && waits.polls >= waits.paused, "{policy}: {waits:?}");
        assert_eq!(waits.yields > 0, policy != Waiting::Spin, "{policy}: {waits:?}");
        assert_eq!(waits.sleeps > 0, policy == Waiting::SpinYieldPark, "{policy}: {waits:?}");
        assert!(waits.yielding + waits.sleeping <= waits.time, "{policy}: {waits:?}");
    }
}

/// The clocks that the PEs read around each barrier are a second measurement.
#[test]
fn waits_last_as_long_as_the_peer_is_late() {
    for policy in Waiting::EVERY {
        let (waits, [least, most]) = counts_of_waiter(policy);
        let is_confirmed = waits.time > least.mul_f64(0.95) && waits.time < most.mul_f64(1.05);
        assert!(is_confirmed, "{policy}: {waits:?}, waited for {least:?} to {most:?}");
    }
}
