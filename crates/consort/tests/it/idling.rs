//! PEs in long waits use hardly any processor time, and have all processors available.

use std::{fs, thread, time::Duration};

use consort::{Job, Rank, ops::Sum, symmetric::Until};

const LONG: Duration = Duration::from_millis(500);

/// The limit on the processor time of a wait of [`LONG`]: a twentieth.
const MOST_NS: u64 = 25_000_000;

/// Returns the processor time that this thread has used, in nanoseconds.
fn used_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("a system with schedstat");
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// Returns the processor time that PE 0 uses to wait for PE 1.
fn cost_ns(wait: impl Fn(&consort::Pe) -> consort::Result<()> + Sync) -> u64 {
    let costs = Job::threads(2).run(|pe| {
        pe.world().barrier()?;
        let before = used_ns();
        if pe.world().rank() == Rank(1) {
            thread::sleep(LONG);
        }
        wait(pe)?;
        Ok(used_ns() - before)
    });
    costs.expect("no failure")[0]
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "asks Linux")]
fn a_long_wait_is_cheap() {
    let in_a_call = cost_ns(|pe| pe.world().barrier());
    assert!(in_a_call < MOST_NS, "{in_a_call} ns");
    let for_a_word = cost_ns(|pe| {
        let flag = pe.world().symmetric::<u64>(1)?;
        if pe.world().rank() == Rank(1) {
            thread::sleep(LONG);
            return flag.put(Rank(0), 0, &[1]);
        }
        flag.wait_until(0, Until::Equals(1)).map(drop)
    });
    assert!(for_a_word < 2 * MOST_NS, "{for_a_word} ns");
    let awaited = cost_ns(|pe| {
        let executor = tokio::runtime::Builder::new_current_thread().build();
        let sum = pe.world().start(vec![1]).all_reduce(Sum)?;
        executor.expect("an executor").block_on(sum).map(drop)
    });
    assert!(awaited < MOST_NS, "{awaited} ns");
}

#[test]
fn a_pool_at_rest_is_cheap() {
    let pool = Job::threads(2).pool().expect("a pool");
    let idle = || {
        let before = pool.run(|_| Ok(used_ns()))?;
        thread::sleep(LONG);
        let after = pool.run(|_| Ok(used_ns()))?;
        Ok::<_, consort::Error>(after[1] - before[1])
    };
    let used = idle().expect("no failure");
    assert!(used < MOST_NS, "{used} ns");
}

/// Returns how often this thread has slept.
fn sleeps() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/status").expect("a system with /proc");
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a number")
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "asks Linux")]
fn a_warm_pool_does_not_sleep() {
    let pool = Job::threads(2).pool().expect("a pool");
    let slept = || {
        let before = pool.run(|_| Ok(sleeps()))?;
        thread::sleep(LONG / 10);
        let after = pool.run(|_| Ok(sleeps()))?;
        Ok::<_, consort::Error>(after[1] - before[1])
    };
    assert_ne!(slept(), Ok(0));
    pool.keep_warm(Duration::from_secs(60));
    assert_eq!(slept(), Ok(0));
    pool.keep_warm(Duration::ZERO);
    assert_ne!(slept(), Ok(0));
    pool.keep_warm(Duration::MAX);
    assert!(pool.run(|_| Ok(())).is_ok());
    drop(pool); // its threads end at once
}

#[test]
fn a_pe_sees_all_processors() {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let all = cores();
    let placed =
        Job::threads(1).run(|_| Ok((cores(), thread::spawn(cores).join().expect("no panic"))));
    assert_eq!(placed.expect("no failure"), [(all, all)]);
    let pinned = Job::threads(1).pinned().run(|_| Ok(cores()));
    assert_eq!(pinned.expect("no failure"), [1]);
    let pool = Job::one_per_core().pool().expect("a pool");
    assert_eq!(pool.size(), all);
    let seen = pool.run(|_| Ok(cores())).expect("no failure");
    assert!(seen.iter().all(|&seen| seen == all));
}

/// A job launched by a thread that is pinned to a core is not held there.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "threads are not pinned elsewhere")]
fn a_job_of_a_pinned_thread_has_all_processors() {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let all = cores();
    let pinned = thread::spawn(move || {
        let cpu = consort_machine::affinity::allowed()[0];
        consort_machine::affinity::pin(cpu).expect("it is allowed");
        assert_eq!(cores(), 1);
        let seen = Job::one_per_core().run(|_| Ok(cores())).expect("no failure");
        assert_eq!(seen.len(), all);
        seen.iter().for_each(|&seen| assert_eq!(seen, all));
    });
    pinned.join().expect("no panic");
}
