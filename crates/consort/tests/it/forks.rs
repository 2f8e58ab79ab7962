//! Children that a process forks take no part in its jobs: their calls return an error, they end
//! without waiting, and the parent's job goes on. They may launch jobs.
//!
//! A test forks in a process of its own, which has no threads but those of its jobs, with memory of
//! each origin.

#![expect(unsafe_code, reason = "no library has a fork that is safe")]

use std::{
    cell::Cell,
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use consort::{Barrier, Error, Pes, Rank, Result, Signal, Sum, Until};
use consort_tuner::Mix;

/// The environment variable that says that this process is to fork children.
const FORKS: &str = "CONSORT_TEST_FORKS";

/// Waits for a child, which must end well before long.
fn await_child(what: &str, child: i32) {
    assert!(child > 0, "a child");
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: writes the variable.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            // SAFETY: the child, which has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("{what}: the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "{what}");
}

/// Ends a child.
fn end_child(is_well: bool) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(!is_well)) }
}

fn fork() -> i32 {
    // SAFETY: the children of these tests end by `end_child`, or as threads do.
    unsafe { libc::fork() }
}

/// Runs `body` in a child.
fn in_child(what: &str, body: impl FnOnce()) {
    match fork() {
        0 => end_child(catch_unwind(AssertUnwindSafe(body)).is_ok()),
        child => await_child(what, child),
    }
}

fn is_refused<R>(result: Result<R>) {
    assert_eq!(result.err(), Some(Error::Forked));
}

/// A child may launch jobs of its own.
fn launch_jobs() {
    let sums = Pes::threads(2).run(|pe| pe.world().all_reduce(1, Sum));
    assert_eq!(sums, Ok(vec![(Rank(0), 2), (Rank(1), 2)]));
    let pool = Pes::threads(2).pool().expect("a pool");
    assert_eq!(pool.run(|pe| pe.world().all_reduce(1, Sum)), sums);
    let job = Pes::threads(1).job().expect("a job");
    assert_eq!(job.run(|pe| pe.world().all_reduce(1, Sum)), Ok(1));
    in_child("a child of a child", || is_refused(pool.run(|_| Ok(()))));
}

fn fork_beside_pool() {
    let mut pools = Some(Pes::threads(3).pool().expect("a pool"));
    let run = |pool: &consort::Pool| pool.run(|pe| pe.world().all_reduce(1, Sum));
    let pool = pools.as_ref().expect("a pool");
    run(pool).expect("a region");
    in_child("a region", || {
        is_refused(run(pool));
        launch_jobs();
    });
    let is_child = Cell::new(false);
    struct Shared<'a>(&'a Cell<bool>);
    // SAFETY: PE 0 alone uses it, which is the thread that runs the region.
    unsafe impl Sync for Shared<'_> {}
    let shared = Shared(&is_child);
    let shared = &shared;
    let ended = pool.run(move |pe| {
        pe.world().barrier()?;
        if pe.world().rank() == Rank(0) {
            match fork() {
                0 => shared.0.set(true),
                child => await_child("a fork in a region", child),
            }
        }
        pe.world().barrier()
    });
    if is_child.get() {
        end_child(ended.err() == Some(Error::Forked));
    }
    assert!(ended.is_ok(), "{ended:?}");
    let ended = pool.run(|pe| {
        if pe.world().rank() == Rank(1) {
            match fork() {
                0 => {} // its thread is the last of the child, and ends
                child => await_child("a fork of another PE's thread", child),
            }
        }
        pe.world().barrier()
    });
    assert!(ended.is_ok(), "{ended:?}");
    in_child("the end of a pool", || drop(pools.take()));
    run(pools.as_ref().expect("a pool")).expect("a region");
}

/// Elements of a call that takes several messages.
const LONG: usize = 100_000;

fn fork_beside_job() {
    let job = Pes::threads(2).helper_threads().job().expect("a job");
    let other = thread::spawn({
        let job = job.clone();
        move || {
            job.join_as(Rank(1)).expect("a free rank").run(|pe| {
                let memory = pe.world().symmetric::<u64>(4)?;
                memory.wait_until(3, Until::Equals(1))?;
                assert_eq!(pe.world().start_all_reduce(vec![1_u64; LONG], Sum)?.wait()?[0], 2);
                pe.world().barrier()?;
                assert_eq!(memory.load(0)?, 0, "a child has reached this memory");
                Ok::<_, Error>(())
            })
        }
    });
    let mut joined = Some(job.join_as(Rank(0)).expect("a free rank"));
    let pe = joined.as_ref().expect("a PE");
    let world = pe.world();
    let memory = world.symmetric::<u64>(4).expect("memory");
    let shared = memory.share().expect("a handle");
    in_child("calls", || {
        is_refused(world.barrier());
        is_refused(world.all_reduce(1, Sum));
        is_refused(world.split(Some(0), 0));
        is_refused(world.symmetric::<u8>(1));
        is_refused(world.start_barrier());
        let mut data = [1];
        is_refused(world.overlap(|scope| scope.start_broadcast(&mut data, Rank(0)).map(drop)));
        is_refused(memory.put(Rank(1), 0, &[9]));
        is_refused(memory.put_signal(Rank(1), 0, &[9], &memory, 3, Signal::Set(9)));
        is_refused(memory.fetch_add(Rank(1), 0, 9));
        is_refused(memory.wait_until(0, Until::Equals(9)));
        is_refused(shared.put(Rank(1), 0, &[9]));
        is_refused(shared.wait_until(0, Until::Equals(9)));
        is_refused(job.join());
        is_refused(job.run(|_| Ok::<_, Error>(())));
    });
    drop(shared);
    let request = world.start_all_reduce(vec![1_u64; LONG], Sum).expect("a call");
    let mut requests = Some(request);
    in_child("a request", || is_refused(requests.take().expect("a request").wait()));
    in_child("a request that is dropped", || drop(requests.take()));
    memory.fetch_add(Rank(1), 3, 1).expect("the job goes on");
    assert_eq!(requests.expect("a request").wait().expect("the job goes on")[0], 2);
    world.barrier().expect("the job goes on");
    drop(memory);
    in_child("leaving", || is_refused(joined.take().expect("a PE").leave()));
    in_child("a PE that is dropped", || drop(joined.take()));
    in_child("a job that is dropped", || drop(job.clone()));
    joined.expect("a PE").leave().expect("the job goes on");
    other.join().expect("no panic").expect("the job goes on");
}

fn fork_beside_members() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| barrier.join()?.wait());
        let mut member = Some(barrier.join().expect("a member"));
        in_child("a member", || is_refused(member.as_ref().expect("a member").wait()));
        in_child("a member that is dropped", || drop(member.take()));
        member.expect("a member").wait().expect("the barrier goes on");
        other.join().expect("no panic").expect("the barrier goes on");
    });
}

/// The programs of a launch fork, in turn: the others wait in calls, and lock nothing of the process.
fn fork_in_programs() {
    let ended = Pes::threads(2).run(|pe| {
        let me = pe.world().rank();
        let memory = pe.world().symmetric::<u64>(1)?;
        for turn in [Rank(0), Rank(1)] {
            pe.world().barrier()?;
            if turn != me {
                continue;
            }
            in_child("a program", || {
                is_refused(pe.world().barrier());
                is_refused(memory.put(Rank(0), 0, &[9]));
                launch_jobs();
            });
            match fork() {
                0 => return Ok(0), // the child ends with its thread
                child => await_child("a program that returns", child),
            }
        }
        pe.world().barrier()?;
        memory.load(0)
    });
    assert_eq!(ended, Ok(vec![(Rank(0), 0), (Rank(1), 0)]));
}

#[test]
fn forked_child_takes_no_part_in_jobs() {
    if let Ok(what) = env::var(FORKS) {
        return match what.as_str() {
            "pool" => fork_beside_pool(),
            "job" => fork_beside_job(),
            "members" => fork_beside_members(),
            _ => fork_in_programs(),
        };
    }
    for what in ["pool", "job", "members", "programs"] {
        for segment in ["private", "shared"] {
            let mut program = Command::new(env::current_exe().expect("this program"));
            program.args(["forks::forked_child_takes_no_part_in_jobs", "--exact", "--nocapture"]);
            program.env(FORKS, what).env("CONSORT_SEGMENT", segment);
            let output = program.output().expect("it starts");
            assert!(output.status.success(), "{what}, {segment}: {output:?}");
        }
    }
}

#[test]
fn calls_are_recorded_by_the_parent_alone() {
    if env::var_os(FORKS).is_some() {
        let mut pools = Some(Pes::threads(2).pool().expect("a pool"));
        let pool = pools.as_ref().expect("a pool");
        pool.run(|pe| pe.world().barrier()).expect("a region");
        in_child("the end of a pool", || drop(pools.take()));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.toml");
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args(["forks::calls_are_recorded_by_the_parent_alone", "--exact", "--nocapture"]);
    let output = program.env(FORKS, "1").env("CONSORT_RECORD", &path).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let recorded = Mix::load(&path).expect("recorded calls");
    assert_eq!(recorded.calls().map(|(_, calls)| calls).collect::<Vec<_>>(), [1]);
}
