//! The calls that `CONSORT_RECORD` records: the program runs in a separate process with that
//! variable.

use std::{env, fs, process::Command};

use consort::{
    Job, Rank,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Collective, Query},
};
use consort_fabric::OperatorClass;
use consort_tuner::Mix;

const RECORD: &str = "CONSORT_RECORD";

/// A job with every kind of recorded call, a pool, and a job that fails.
fn program() {
    let calls = Job::threads(3).run(|pe| {
        let world = pe.world();
        for _ in 0..5 {
            world.barrier()?;
        }
        for _ in 0..100 {
            world.all_reduce(1_u64, Sum)?;
        }
        world
            .with_sync(SyncModes::STRICT)
            .slices(&[1.0; 12], &mut [0.0; 12])
            .reduce(Sum, Rank(2))?;
        world.all_reduce(1_u64, |a: u64, _: u64| a)?;
        let table = world.symmetric::<u64>(8)?;
        let target = world.symmetric::<u64>(8)?;
        world.in_symmetric(&table, &target).all_reduce(Sum)?;
        world.start(vec![1_u64; 64]).all_reduce(Sum)?.wait()?;
        world.start(vec![1_u64; 60]).all_reduce(Sum)?.wait()?;
        let part = world.split(Some(world.rank().0 / 2), 0)?.expect("a team");
        part.broadcast(1_u32, Rank(0))?;
        world.barrier()
    });
    calls.expect("the calls work");
    let pool = Job::threads(2).pool().expect("a pool");
    for _ in 0..3 {
        pool.run(|pe| pe.world().all_gather(1_u64)).expect("a region");
    }
    drop(pool);
    let failed = Job::threads(2).run(|pe| {
        pe.world().barrier()?;
        assert!(pe.world().rank() != Rank(1), "on purpose");
        pe.world().barrier()
    });
    assert!(failed.is_err());
}

#[test]
fn the_calls_of_each_job_are_appended() {
    if env::var_os(RECORD).is_some() {
        return program();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.toml");
    let play = |path: &str| {
        let program = env::current_exe().expect("this program");
        let mut program = Command::new(program);
        program.args(["recording::the_calls_of_each_job_are_appended", "--exact", "--nocapture"]);
        let output = program.env(RECORD, path).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let complaint = play(path.to_str().expect("a path in UTF-8"));
    assert!(!complaint.contains(RECORD), "{complaint}");
    let once = Mix::load(&path).expect("recorded calls");
    let kind = |collective, pes, bytes| Query {
        collective,
        sync: SyncModes::MINE,
        pes,
        bytes,
        operator: OperatorClass::Commutative,
        symmetric: false,
    };
    let barrier = |pes| Query {
        sync: SyncModes::STRICT,
        symmetric: true,
        ..kind(Collective::Barrier, pes, 0)
    };
    let sum = |bytes| kind(Collective::AllReduce, 3, bytes);
    let mut expected = Mix::default();
    for (query, calls) in [
        (barrier(3), 8), // two of them allocate symmetric memory
        (sum(8), 100),
        (Query { sync: SyncModes::STRICT, ..kind(Collective::Reduce, 3, 96) }, 1),
        (Query { operator: OperatorClass::Ordered, ..sum(8) }, 1),
        (Query { symmetric: true, ..sum(64) }, 1),
        (sum(512), 2),
        (kind(Collective::Broadcast, 2, 8), 1),
        (kind(Collective::Broadcast, 1, 8), 1),
        (kind(Collective::AllGather, 2, 8), 3),
    ] {
        expected.add(&query, calls);
    }
    let calls: Vec<(Query, u64)> = once.calls().collect();
    let (of_failed, others): (Vec<_>, Vec<_>) =
        calls.iter().copied().partition(|(query, _)| *query == barrier(2));
    assert_eq!(others, expected.calls().collect::<Vec<_>>());
    // PE 0 may see that the job has failed before its second barrier.
    assert!([1, 2].contains(&of_failed[0].1), "the failed job too: {of_failed:?}");

    play(path.to_str().expect("a path in UTF-8"));
    let twice = Mix::load(&path).expect("recorded calls");
    let of = |mix: &Mix, query| mix.calls().find(|(known, _)| *known == query).expect("a query").1;
    assert_eq!(of(&twice, sum(8)), 200, "jobs append");

    // An unusable file does not fail the job, and is reported once; an empty name is ignored.
    let other = folder.path().join("other");
    fs::write(&other, "a letter").expect("a file");
    for path in [folder.path(), &other] {
        let complaint = play(path.to_str().expect("a path in UTF-8"));
        let said: Vec<&str> = complaint.lines().filter(|line| line.contains(RECORD)).collect();
        assert!(said.len() == 1 && said[0].contains("calls are not recorded"), "{complaint}");
    }
    play("");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
    assert_eq!(fs::read_to_string(&other).expect("a file"), "a letter");
}
