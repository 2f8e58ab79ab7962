//! Forked children of a process take no part in its jobs: their calls return an error, they end
//! without waiting, and the parent's job continues. They may launch jobs.
//!
//! A test forks in a separate process, which has only the threads of its jobs. It does so with
//! memory of each origin.

#![expect(unsafe_code, reason = "shares a cell with a region that one thread uses")]

use std::{
    cell::Cell,
    env,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use consort::{
    Barrier, Error, Job, Rank, Result,
    ops::Sum,
    symmetric::{Signal, Until},
};
use consort_sandbox::children;
use consort_tuner::Mix;

/// The environment variable that makes this process fork children.
const FORKS: &str = "TEST_FORKS";

fn is_refused<R>(result: Result<R>) {
    assert_eq!(result.err(), Some(Error::Forked));
}

/// A child may launch its own jobs.
fn launch_jobs() {
    let sums = Job::threads(2).run(|pe| pe.world().all_reduce(1, Sum)).expect("no failure");
    assert_eq!(sums, [2, 2]);
    let pool = Job::threads(2).pool().expect("a pool");
    assert_eq!(pool.run(|pe| pe.world().all_reduce(1, Sum)), Ok(sums));
    let job = Job::threads(1).build().expect("a job");
    assert_eq!(job.run(|pe| pe.world().all_reduce(1, Sum)), Ok(1));
    children::run("a child of a child", || is_refused(pool.run(|_| Ok(()))));
}

fn fork_while_a_pool_runs() {
    let mut pools = Some(Job::threads(3).pool().expect("a pool"));
    let run = |pool: &consort::Pool| pool.run(|pe| pe.world().all_reduce(1, Sum));
    let pool = pools.as_ref().expect("a pool");
    run(pool).expect("a region");
    children::run("a region", || {
        is_refused(run(pool));
        launch_jobs();
    });
    let is_child = Cell::new(false);
    struct Shared<'a>(&'a Cell<bool>);
    // SAFETY: only PE 0 uses it, which is the thread that runs the region.
    unsafe impl Sync for Shared<'_> {}
    let shared = Shared(&is_child);
    let shared = &shared;
    let ended = pool.run(move |pe| {
        pe.world().barrier()?;
        if pe.world().rank() == Rank(0) {
            match children::fork() {
                0 => shared.0.set(true),
                child => children::wait("a fork in a region", child),
            }
        }
        pe.world().barrier()
    });
    if is_child.get() {
        children::end(ended.err() == Some(Error::Forked));
    }
    assert!(ended.is_ok(), "{ended:?}");
    let ended = pool.run(|pe| {
        if pe.world().rank() == Rank(1) {
            match children::fork() {
                0 => {} // the thread is the last one of the child, and ends
                child => children::wait("a fork of another PE's thread", child),
            }
        }
        pe.world().barrier()
    });
    assert!(ended.is_ok(), "{ended:?}");
    children::run("the end of a pool", || drop(pools.take()));
    run(pools.as_ref().expect("a pool")).expect("a region");
}

/// The number of elements of a call that takes several messages.
const LONG: usize = 100_000;

fn fork_while_a_job_runs() {
    let job = Job::threads(2).helper_threads().build().expect("a job");
    let other = thread::spawn({
        let job = job.clone();
        move || {
            job.join_as(Rank(1)).expect("a free rank").run(|pe| {
                let memory = pe.world().symmetric::<u64>(4)?;
                memory.wait_until(3, Until::Equals(1))?;
                assert_eq!(pe.world().start(vec![1_u64; LONG]).all_reduce(Sum)?.wait()?[0], 2);
                pe.world().barrier()?;
                assert_eq!(memory.load(0)?, 0, "a child has reached this memory");
                Ok(())
            })
        }
    });
    let mut joined = Some(job.join_as(Rank(0)).expect("a free rank"));
    let pe = joined.as_ref().expect("a PE");
    let world = pe.world();
    let memory = world.symmetric::<u64>(4).expect("memory");
    let shared = memory.share().expect("a handle");
    children::run("calls", || {
        is_refused(world.barrier());
        is_refused(world.all_reduce(1, Sum));
        is_refused(world.split(Some(0), 0));
        is_refused(world.symmetric::<u8>(1));
        is_refused(world.start_barrier());
        let mut data = [1];
        is_refused(
            world.overlap(|scope| scope.start_in_place(&mut data).broadcast(Rank(0)).map(drop)),
        );
        is_refused(memory.put(Rank(1), 0, &[9]));
        is_refused(memory.put_signal(Rank(1), 0, &[9], &memory, 3, Signal::Set(9)));
        is_refused(memory.fetch_add(Rank(1), 0, 9));
        is_refused(memory.wait_until(0, Until::Equals(9)));
        is_refused(shared.put(Rank(1), 0, &[9]));
        is_refused(shared.wait_until(0, Until::Equals(9)));
        is_refused(job.join());
        is_refused(job.run(|_| Ok(())));
    });
    drop(shared);
    let request = world.start(vec![1_u64; LONG]).all_reduce(Sum).expect("a call");
    let mut requests = Some(request);
    children::run("a request", || is_refused(requests.take().expect("a request").wait()));
    children::run("a request that is dropped", || drop(requests.take()));
    memory.fetch_add(Rank(1), 3, 1).expect("the job goes on");
    assert_eq!(requests.expect("a request").wait().expect("the job goes on")[0], 2);
    world.barrier().expect("the job goes on");
    drop(memory);
    children::run("leaving", || is_refused(joined.take().expect("a PE").leave()));
    children::run("a PE that is dropped", || drop(joined.take()));
    children::run("a job that is dropped", || drop(job.clone()));
    joined.expect("a PE").leave().expect("the job goes on");
    other.join().expect("no panic").expect("the job goes on");
}

fn fork_while_members_wait() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let other = scope.spawn(|| barrier.join()?.wait());
        let mut member = Some(barrier.join().expect("a member"));
        children::run("a member", || is_refused(member.as_ref().expect("a member").wait()));
        children::run("a member that is dropped", || drop(member.take()));
        member.expect("a member").wait().expect("the barrier goes on");
        other.join().expect("no panic").expect("the barrier goes on");
    });
}

/// The programs of a launch fork, in turn: the others wait in calls, and hold no locks.
fn fork_in_programs() {
    let ended = Job::threads(2).run(|pe| {
        let me = pe.world().rank();
        let memory = pe.world().symmetric::<u64>(1)?;
        for turn in [Rank(0), Rank(1)] {
            pe.world().barrier()?;
            if turn != me {
                continue;
            }
            children::run("a program", || {
                is_refused(pe.world().barrier());
                is_refused(memory.put(Rank(0), 0, &[9]));
                launch_jobs();
            });
            match children::fork() {
                0 => return Ok(0), // the child ends with its thread
                child => children::wait("a program that returns", child),
            }
        }
        pe.world().barrier()?;
        memory.load(0)
    });
    assert_eq!(ended.expect("no failure"), [0, 0]);
}

/// A process launches its first jobs, and joins its first barrier, and another thread forks
/// meanwhile. The children do the same, so they need the data and the locks that the parent was
/// about to obtain.
fn fork_while_jobs_are_launched(after: Duration) {
    static BARRIER: Barrier = Barrier::new(1);
    let launch = || {
        let sums = Job::threads(2).run(|pe| pe.world().all_reduce(1, Sum));
        assert_eq!(sums.expect("no failure"), [2, 2]);
    };
    let launcher = thread::spawn(move || {
        BARRIER.join().expect("a place").wait().expect("alone");
        (0..3).for_each(|_| launch());
    });
    let begun = Instant::now();
    while begun.elapsed() < after {
        std::hint::spin_loop();
    }
    children::run("a launch", || {
        launch();
        match BARRIER.join() {
            Ok(member) => member.wait().map(drop).expect("alone"),
            Err(error) => assert_eq!(error, Error::Forked),
        }
    });
    launcher.join().expect("no panic");
}

#[test]
fn child_forked_while_another_thread_launches_does_not_hang() {
    if let Ok(after) = env::var(FORKS) {
        return fork_while_jobs_are_launched(Duration::from_micros(
            after.parse().expect("a number"),
        ));
    }
    // With wisdom, a launch also reads the identity of the machine.
    let wisdom = tempfile::NamedTempFile::new().expect("a file");
    for after in (0..4_000).step_by(100) {
        let mut program = Command::new(env::current_exe().expect("this program"));
        let name = "forks::child_forked_while_another_thread_launches_does_not_hang";
        program.args([name, "--exact", "--nocapture"]).env(FORKS, after.to_string());
        if after % 200 == 0 {
            program.env("CONSORT_WISDOM", wisdom.path());
        }
        let output = program.output().expect("it starts");
        assert!(output.status.success(), "after {after} µs: {output:?}");
    }
}

/// All PEs of a launch fork at the same time, when the first call of each may have to wait.
fn fork_at_once() {
    let ended = Job::threads(2).run(|pe| {
        pe.world().barrier()?;
        children::run("a launch", launch_jobs);
        pe.world().barrier()
    });
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn children_forked_at_the_same_moment_do_not_hang() {
    if env::var_os(FORKS).is_some() {
        return fork_at_once();
    }
    for _ in 0..40 {
        let mut program = Command::new(env::current_exe().expect("this program"));
        let name = "forks::children_forked_at_the_same_moment_do_not_hang";
        program.args([name, "--exact", "--nocapture"]).env(FORKS, "at once");
        let output = program.output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn forked_child_takes_no_part_in_jobs() {
    if let Ok(what) = env::var(FORKS) {
        return match what.as_str() {
            "pool" => fork_while_a_pool_runs(),
            "job" => fork_while_a_job_runs(),
            "members" => fork_while_members_wait(),
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
        let mut pools = Some(Job::threads(2).pool().expect("a pool"));
        let pool = pools.as_ref().expect("a pool");
        pool.run(|pe| pe.world().barrier()).expect("a region");
        children::run("the end of a pool", || drop(pools.take()));
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
