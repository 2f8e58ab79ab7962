//! The profile that `CONSORT_PROFILE` asks for: the program runs in a separate process with that
//! variable.

use std::{
    env, fs,
    process::{self, Command, Output},
    time::Duration,
};

use consort::{Job, Rank, ops::Sum, tune::Collective};
use consort_tuner::{CallProfile, Origin, PeProfile};

use super::waits::{late_barriers, time_of_waiter};

const PROFILE: &str = "CONSORT_PROFILE";
/// The variable that tells the separate process how to end.
const ENDING: &str = "TEST_ENDING";
/// The time for which PE 1 is late, in each of some barriers.
const LATE: Duration = Duration::from_millis(20);
const BARRIERS: u64 = 12;

/// A job whose PE 1 is late. Prints for how long PE 0 waited in barriers, at least and at most, in
/// nanoseconds.
fn program(ending: &str) {
    let ended = Job::threads(2).named("late").run(|pe| {
        let world = pe.world();
        let barriers = late_barriers(pe, BARRIERS, LATE)?;
        for _ in 0..100 {
            world.all_reduce(1_u64, Sum)?;
        }
        match ending {
            "panic" if world.rank() == Rank(1) => panic!("on purpose"),
            "abort" if world.rank() == Rank(1) => process::abort(),
            _ => {}
        }
        let both = world.start(vec![1_u64; 64]).all_reduce(Sum)?;
        let table = world.symmetric::<u64>(8)?;
        table.put(world.right(), 0, &[1])?;
        both.wait()?;
        Ok(barriers)
    });
    assert_eq!(ended.is_err(), ending != "return");
    if let Ok(ended) = ended {
        let [least, most] = time_of_waiter(&ended[0], &ended[1]).map(|time| time.as_nanos());
        println!("waited {least} {most} ns");
    }
}

/// Runs the program, and returns the profiles of its PEs and its output.
fn profiled(ending: &str) -> (Vec<PeProfile>, Output) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["profiling::late_peer_shows_as_waiting", "--exact", "--nocapture"]);
    let output = command.env(PROFILE, folder.path()).env(ENDING, ending).output();
    let parts = fs::read_dir(folder.path()).expect("the folder");
    let parts = parts.map(|part| fs::read(part.expect("a file").path()).expect("a readable file"));
    let mut parts: Vec<_> = parts.map(|part| PeProfile::parse(&part).expect("a profile")).collect();
    parts.sort_by_key(|part| part.rank);
    (parts, output.expect("it starts"))
}

/// Returns the calls whose name begins like this, at the place that makes the most.
fn calls_of(pe: &PeProfile, name: &str) -> CallProfile {
    let found = pe.calls.iter().filter(|call| call.name.starts_with(name));
    let most = found.max_by_key(|call| call.count);
    most.unwrap_or_else(|| panic!("no {name} in {pe:?}")).clone()
}

/// The clocks that the PEs read around each barrier are a second measurement of the time waiting.
#[test]
fn late_peer_shows_as_waiting() {
    if env::var_os(PROFILE).is_some() {
        return program(&env::var(ENDING).expect("how to end"));
    }
    let (pes, output) = profiled("return");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let waited = said.split("waited ").nth(1).expect("a line").split(' ');
    let waited: Vec<f64> = waited.map_while(|ns| ns.parse().ok()).collect();
    let [least_ns, most_ns] = waited[..] else { panic!("{said}") };
    let [waiter, late] = &pes[..] else { panic!("{pes:?}") };
    for pe in [waiter, late] {
        assert_eq!((&*pe.name, &*pe.fabric, pe.pes, pe.has_ended), ("late", "threads", 2, true));
    }
    assert_eq!(waiter.job, late.job);

    let [barriers, of_late] = [waiter, late].map(|pe| calls_of(pe, "barrier"));
    let waiting_ns = barriers.waiting_ns as f64;
    let is_confirmed = waiting_ns > 0.95 * least_ns && waiting_ns < 1.05 * most_ns;
    assert!(is_confirmed, "{barriers:?} took {least_ns} to {most_ns} ns");
    assert!(of_late.waiting_ns < barriers.waiting_ns, "{of_late:?}");
    assert!(barriers.waiting_ns <= barriers.ns && barriers.longest_ns <= barriers.ns);
    assert!(barriers.ns <= waiter.until_ns - waiter.begun_ns, "{waiter:?}");
    assert!(barriers.site.contains("waits.rs:"), "{barriers:?}");
    assert_eq!((barriers.count, barriers.is_blocking), (BARRIERS, true));
    assert_eq!(barriers.origin, Some(Origin::Model));
    assert!(waiter.paused > 0 && waiter.sleeps > 0, "{waiter:?}");

    let sums = calls_of(waiter, "all_reduce(8 bytes of u64");
    assert_eq!((sums.count, sums.query.collective), (100, Collective::AllReduce));
    let started = calls_of(waiter, "start all_reduce(512 bytes");
    assert_eq!((started.count, started.is_blocking, started.waiting_ns), (1, false, 0));
    let own = waiter.calls.iter().filter(|call| call.origin.is_none()).count();
    assert!(own > 0, "allocating is a call that the library makes: {waiter:?}");
}

#[test]
fn program_that_fails_or_dies_leaves_its_profile() {
    for ending in ["panic", "abort"] {
        let (pes, output) = profiled(ending);
        assert_eq!(output.status.success(), ending == "panic", "{output:?}");
        assert_eq!(pes.len(), 2);
        for pe in &pes {
            assert_eq!(pe.has_ended, ending == "panic", "{ending}: {pe:?}");
            let barriers = calls_of(pe, "barrier").count;
            // Of a process that dies, the calls of the last 0.1 s may be missing.
            let least = if pe.has_ended { BARRIERS } else { BARRIERS - 6 };
            assert!((least..=BARRIERS).contains(&barriers), "{ending}: {pe:?}");
        }
    }
}
