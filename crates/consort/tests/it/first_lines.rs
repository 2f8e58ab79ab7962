//! A first line of code for each public type: a local variable without annotations compiles.

use consort::{
    Barrier, Displacements, Error, Job, Rank, Rendezvous, Waiting, Weights,
    async_broadcasts::AsyncVariant,
    error::{CallError, DisplacementsError, LaunchError, Members, TeamError, WeightsError},
    launch::{Fabric, MachineShape, ProcessShape, Sharing},
    ops::Sum,
    pieces, pieces_mut,
    symmetric::{Atomic, Signal, Until},
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Candidate, Collective},
};

#[test]
fn jobs_and_teams() {
    let builder = Job::threads(2); // a `JobBuilder`
    let results = builder.run(|pe| {
        let world = pe.world(); // a `Pe` and its `Team`
        let sum = world.all_reduce(1, Sum)?;
        let (half, grid) = (world.split(Some(0), 0)?, world.cartesian(2)?); // `Grid`
        let all = [half, world.subset(&[Rank(0), Rank(1)])?, world.strided(Rank(0), 1, 2)?];
        let waits = pe.waits(); // `Waits`
        assert!(waits.yielding + waits.sleeping <= waits.time);
        Ok((sum, all.iter().flatten().count(), grid.row.size()))
    });
    let results = results.expect("no PE fails"); // `Results`
    assert_eq!(results[0], (2, 3, 1));
    let (from_env, per_core) = (Job::from_env(1), Job::one_per_core());
    assert!(!format!("{from_env:?} {per_core:?}").is_empty());
    let pool = Job::threads(2).pool().expect("threads"); // `Pool`
    let pooled = pool.run(|pe| pe.world().broadcast(7, Rank(0)));
    assert_eq!(pooled.expect("no PE fails")[1], 7);
    let kept = pool.run(|pe| {
        let kept = pe.keep(|_| Ok(7))?; // a `Kept`
        Ok(*kept)
    });
    assert_eq!(kept.expect("no PE fails")[1], 7);
    let job = Job::threads(1).build().expect("a job"); // `Job`
    let joined = job.join().expect("a rank"); // `JoinedPe`
    let size = joined.run(|pe| Ok(pe.world().size()));
    assert_eq!(size.expect("no PE fails"), 1);
    let meeting = Rendezvous::all_gather(|own| Ok::<_, Error>(vec![own.to_vec()]));
    let processes = Job::processes(Rank(0), 1, meeting); // a `Rendezvous`
    assert!(format!("{processes:?}").contains("Rendezvous"));
    let tried = Job::threads(1).try_run(|_| Err::<(), _>(std::io::Error::other("no")));
    assert!(tried.is_err());
}

#[test]
fn barriers() {
    let barrier = Barrier::new(1);
    let result = barrier.wait(); // `BarrierWaitResult`
    let member = barrier.join().expect("a place"); // `BarrierMember`
    assert!(result.is_leader() && member.wait().is_ok());
}

#[test]
fn memory() {
    let done = Job::threads(2).run(|pe| {
        let world = pe.world();
        let table = world.symmetric(4)?; // `Symmetric`
        table.put(world.right(), 0, &[1, 2])?;
        let flags = world.symmetric(1)?;
        flags.store(0, 0_u64)?; // nothing else here determines the element type
        world.barrier()?;
        flags.signal(world.right(), 0, Signal::Add(1))?;
        flags.wait_until(0, Until::AtLeast(1))?;
        let half = table.range(..2)?; // `SymmetricRange`: `Ranged`, and the table is `Whole`
        let shared = half.share()?; // `SharedSymmetric`
        let counter = world.completion_counter()?; // `CompletionCounter`
        table.put_counted(world.right(), 2, &[3, 4], &counter)?;
        counter.wait(1)?;
        assert_eq!((shared.len(), table.to_vec()?), (2, vec![1, 2, 3, 4]));
        let old = flags.atomic(Rank(0), 0, Atomic::FetchAdd(1))?;
        drop(shared);
        world.barrier()?;
        Ok(old)
    });
    assert_eq!(done.expect("no PE fails").len(), 2);
}

#[test]
fn calls() {
    let done = Job::threads(2).run(|pe| {
        let world = pe.world();
        let request = world.start(vec![1]).all_reduce(Sum)?; // `Request`
        assert_eq!(request.wait()?, [2]);
        let planned = world.plan(1).all_reduce(Sum)?; // `Planned`
        let barrier = world.plan_barrier()?; // `PlannedBarrier`
        barrier.start()?.wait()?;
        assert_eq!(planned.start(vec![1])?.wait()?, [2]);
        let mut data = [3];
        world.overlap(|overlap| {
            // `Overlap`
            let request = overlap.start_in_place(&mut data).broadcast(Rank(0))?;
            request.wait().map(|data| assert_eq!(data, [3]))
        })?;
        let mut received = 0;
        // `AsyncBroadcasts`
        let broadcasts = world.async_broadcasts(|_, data| received += data.len())?;
        broadcasts.close()?;
        let modes = SyncModes { entry: SyncMode::Mine, exit: SyncMode::All };
        world.with_sync(modes).barrier()
    });
    assert_eq!(done.expect("no PE fails").len(), 2);
}

/// Each form of data is a `Call`.
#[test]
fn forms() {
    let done = Job::threads(2).run(|pe| {
        let world = pe.world();
        let blocks = Displacements::new(&[1, 1])?;
        let (source, mut target) = ([1], [0; 2]);
        let slices = world.slices(&source, &mut target); // `Slices`
        slices.with_counts(&blocks).all_gather()?; // `WithCounts`
        let in_place = world.in_place(&mut target); // `InPlace`
        in_place.all_reduce(Sum)?;
        let values = world.values(&target); // `Values`
        assert_eq!(values.with_len(1).scatter(Rank(0))?, [2]); // `WithLen`
        let uneven = world.values(&target).uneven(); // `Uneven`
        uneven.all_gather()?;
        let memory = [world.symmetric(2)?, world.symmetric(2)?];
        memory[0].fill(1_u32)?;
        let in_symmetric = world.in_symmetric(&memory[0], &memory[1]); // `InSymmetric`
        in_symmetric.all_reduce(Sum)?;
        let start_symmetric = world.start_symmetric(&memory[0], &memory[1]); // `StartSymmetric`
        start_symmetric.all_reduce(Sum)?.wait()?;
        let start = world.start(vec![1]); // `Start`
        start.all_reduce(Sum)?.wait()?;
        let start_into = world.start_into(vec![1], vec![0]); // `StartInto`
        start_into.all_reduce(Sum)?.wait()?;
        let plan = world.plan(1); // `PlannedData`
        plan.all_reduce(Sum)?.start(vec![1])?.wait()?;
        world.overlap(|scope| {
            let borrowed = scope.start_into(&source, &mut target[..1]); // `Borrowed`
            borrowed.all_reduce(Sum)?;
            Ok(())
        })?;
        world.overlap(|scope| {
            let borrowed = scope.start_in_place(&mut target); // `BorrowedInPlace`
            borrowed.all_reduce(Sum)?;
            Ok(())
        })?;
        let algorithms = world.algorithms(); // `TeamAlgorithms`
        Ok(algorithms.served_by(Collective::AllReduce).is_some())
    });
    assert_eq!(done.expect("no PE fails"), [true; 2]);
}

#[test]
fn descriptions() {
    let blocks = Displacements::new(&[1, 2]).expect("a length that fits");
    let none = Displacements::default();
    assert!(blocks != none && Displacements::new(&[usize::MAX, 1]).is_err());
    let overflow: Result<_, DisplacementsError> = Displacements::at(&[1], &[0]);
    assert!(overflow.is_ok());
    let candidate = Candidate::new("knomial").with("radix", 4);
    assert_eq!(candidate.parameter("radix"), Some(4));
    let (here, threads) = (Algorithms::here(), Algorithms::of(Fabric::default()));
    let cores: usize = here.cores();
    assert!(cores > 0 && threads.fabric() == Fabric::default());
    let shape = ProcessShape { pes_each: 2, in_turn: false };
    let machine = MachineShape { processes: None, process: shape };
    assert_eq!((shape.processes(4), machine.process), (2, shape));
    let (sharing, waiting, variant) = (Sharing::default(), Waiting::Spin, AsyncVariant::Fair);
    assert!(!format!("{sharing:?} {waiting:?} {variant:?} {:?}", Members::default()).is_empty());
    let unknown = "nothing".parse::<Fabric>().expect_err("no fabric"); // `UnknownFabric`
    let error = Error::from(TeamError::Rows { rows: 2, pes: 3 });
    let (launch, call) = (Error::from(LaunchError::NoPes), Error::from(CallError::Freed));
    assert!(!format!("{unknown} {error} {launch} {call} {}", Collective::Reduce).is_empty());
    let mut data = [1, 2, 3];
    let shares = pieces_mut(&mut data, 2).map(|share| share.len()).sum::<usize>();
    assert_eq!((pieces(&data, 2).count(), shares), (2, 3));
    let (weights, error) = (Weights::equal(2), Weights::new([0.0]).expect_err("0"));
    assert!(matches!(error, WeightsError::Value { .. }));
    assert!(matches!(Error::from(error), Error::Call(CallError::Weights(_))));
    assert_eq!(weights.pieces(&data).count(), 2);
}
