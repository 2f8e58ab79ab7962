//! Each collective has the same forms: what each form reads, writes and returns.

use consort::{
    Displacements, Error, Job, Rank, Result, Team,
    error::{CallError, DisplacementsError},
    ops::Sum,
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};

const PES: usize = 3;
const ROOT: Rank = Rank(1);

fn on(program: impl Fn(&Team) -> Result<()> + Sync) {
    Job::threads(PES).run(|pe| program(pe.world())).expect("every form works");
}

/// Lengths that are sent in cache lines, in chunks, and from buffer to buffer.
const LENS: [usize; 3] = [1, 700, 100_000];

#[test]
fn broadcast_copies_the_source_of_the_root_to_every_target() {
    on(|world| {
        for len in LENS {
            let (mine, expected) = (vec![world.rank().0; len], vec![ROOT.0; len]);
            let mut target = vec![9; len];
            world.slices(&mine, &mut target).broadcast(ROOT)?;
            assert_eq!(target, expected);
            assert_eq!(world.values(&mine).broadcast(ROOT)?, expected);
            assert_eq!(world.start(mine.clone()).broadcast(ROOT)?.wait()?, expected);
            let call = world.start_into(mine.clone(), vec![9; len]).broadcast(ROOT)?;
            assert_eq!(call.wait()?, (mine.clone(), expected.clone()));
            target.fill(9);
            world.overlap(|scope| {
                let (source, target) =
                    scope.start_into(&mine, &mut target).broadcast(ROOT)?.wait()?;
                assert_eq!((source, &*target), (&mine, &*expected));
                Ok(())
            })?;
            let plan = world.plan(len).broadcast(ROOT)?;
            assert_eq!(plan.start(mine.clone())?.wait()?, expected);
            let call = plan.start_into(mine.clone(), vec![9; len])?;
            assert_eq!(call.wait()?, (mine.clone(), expected.clone()));
        }
        Ok(())
    });
}

/// Two memories would need a copy on the root, which peers could see too early or too late.
#[test]
fn broadcast_in_symmetric_memory_works_in_one() {
    on(|world| {
        let (one, other) = (world.symmetric::<u32>(3)?, world.symmetric::<u32>(3)?);
        let refused = Some(Error::Call(CallError::TwoMemories));
        assert_eq!(world.in_symmetric(&one, &other).broadcast(ROOT).err(), refused);
        assert_eq!(world.start_symmetric(&one, &other).broadcast(ROOT).err(), refused);
        let call = world.in_symmetric(&one, &other).with_len(1);
        assert_eq!(call.any(Collective::Broadcast, Sum, ROOT).err(), refused);
        for sync in SyncModes::every() {
            one.fill(world.rank().0 + 5)?;
            world.barrier()?;
            world.with_sync(sync).in_symmetric(&one, &one).with_len(2).broadcast(ROOT)?;
            world.barrier()?;
            assert_eq!(one.to_vec()?, [6, 6, world.rank().0 + 5]);
            world.barrier()?;
        }
        let none = [world.symmetric::<u32>(0)?, world.symmetric::<u32>(0)?];
        world.in_symmetric(&none[0], &none[1]).broadcast(ROOT)
    });
}

/// A stated length that does not fit the data is refused, and the job goes on.
#[test]
fn stated_length_must_fit() {
    on(|world| {
        let lens = |source_len, target_len| {
            Some(Error::Call(CallError::Lengths { source_len, target_len }))
        };
        for (len, stated) in [(1, 1000), (0, 5), (5, 0)] {
            let data = vec![1_u64; len];
            let refused = world.values(&data).with_len(stated).broadcast(ROOT);
            assert_eq!(refused.err(), lens(len, stated));
            let refused = world.start(data).with_len(stated).broadcast(ROOT);
            assert_eq!(refused.err(), lens(len, stated));
        }
        let refused = world.start(vec![1_u64; 3]).with_len(2).all_reduce(Sum);
        assert_eq!(refused.err(), lens(3, 2));
        let refused = world.values(&[1_u64; 3]).with_len(2).scan(Sum);
        assert_eq!(refused.err(), lens(3, 2));
        let is_of_blocks = |error| matches!(error, Some(Error::Call(CallError::Blocks { .. })));
        assert!(is_of_blocks(world.values(&[1_u64; 3]).with_len(2).all_gather().err()));
        if world.rank() == ROOT {
            assert!(is_of_blocks(world.values(&[0; 6]).with_len(1).scatter(ROOT).err()));
            assert!(is_of_blocks(world.start(vec![0; 6]).with_len(1).scatter(ROOT).err()));
        }
        world.barrier()?;
        // No memory is so long, so nothing is allocated.
        let is_refused = |error| matches!(error, Some(Error::Call(CallError::Plan(_))));
        if world.rank() != ROOT {
            let none = Vec::<u64>::new();
            let refused = world.values(&none).with_len(usize::MAX).scatter(ROOT);
            assert!(is_refused(refused.err()));
            let refused = world.start(none).with_len(usize::MAX).scatter(ROOT);
            assert!(is_refused(refused.err()));
        }
        world.barrier()
    });
}

/// The root may pass only what it sends, but not a target of another length.
#[test]
fn target_of_the_root_of_a_broadcast_is_empty_or_as_long_as_the_source() {
    on(|world| {
        let is_root = world.rank() == ROOT;
        let mut target = vec![0; if is_root { 0 } else { 2 }];
        world.slices(&[5, 6], &mut target).broadcast(ROOT)?;
        let call = world.start_into(vec![5, 6], target).broadcast(ROOT)?;
        let mut target = call.wait()?.1;
        world.overlap(|scope| {
            scope.start_into(&[5, 6], &mut target).any(Collective::Broadcast, Sum, ROOT)?;
            Ok(())
        })?;
        assert_eq!(target, if is_root { vec![] } else { vec![5, 6] });
        if is_root {
            let short = Some(Error::Call(CallError::Lengths { source_len: 2, target_len: 1 }));
            assert_eq!(world.slices(&[5, 6], &mut [0]).broadcast(ROOT).err(), short);
            assert_eq!(world.start_into(vec![5, 6], vec![0]).broadcast(ROOT).err(), short);
            let plan = world.plan(2).broadcast(ROOT)?;
            assert_eq!(plan.start_into(vec![5, 6], vec![0]).err(), short);
        }
        Ok(())
    });
}

/// Blocks of different lengths: PE `i` has `i` elements for everybody.
#[test]
fn every_form_accepts_counts() {
    on(|world| {
        let me = world.rank();
        let is_root = me == ROOT;
        let blocks = Displacements::new(&[0, 1, 2])?;
        let mine = vec![me.0; me.index()];
        let all = vec![1, 2, 2];
        let parts = [vec![], vec![1], vec![2, 2]];

        assert_eq!(world.values(&mine).with_counts(&blocks).all_gather()?, all);
        let found = world.values(&mine).with_counts(&blocks).gather(ROOT)?;
        assert_eq!(found, is_root.then(|| all.clone()));
        let own = world.values(&all).with_len(me.index()).with_counts(&blocks).scatter(ROOT)?;
        assert_eq!(own, parts[me.index()]);

        let mut target = vec![0; 3];
        world.slices(&mine, &mut target).with_counts(&blocks).all_gather()?;
        assert_eq!(target, all);
        let mut own = vec![0; me.index()];
        world.slices(&all, &mut own).with_counts(&blocks).scatter(ROOT)?;
        assert_eq!(own, parts[me.index()]);

        let call = world.start(mine.clone()).with_counts(&blocks).all_gather()?;
        assert_eq!(call.wait()?, all);
        let call = world.start_into(mine.clone(), vec![0; 3]).with_counts(&blocks).all_gather()?;
        assert_eq!(call.wait()?, (mine.clone(), all.clone()));
        let call = world
            .start_into(all.clone(), vec![0; me.index()])
            .with_counts(&blocks)
            .scatter(ROOT)?;
        assert_eq!(call.wait()?.1, parts[me.index()]);
        target.fill(0);
        world.overlap(|scope| {
            scope.start_into(&mine, &mut target).with_counts(&blocks).gather(ROOT)?;
            Ok(())
        })?;
        assert_eq!(target, if is_root { all.clone() } else { vec![0; 3] });
        let plan = world.plan::<u32>(me.index()).with_counts(&blocks).scatter(ROOT)?;
        assert_eq!(plan.start(all.clone())?.wait()?, parts[me.index()]);

        let (source, target) = (world.symmetric::<u32>(3)?, world.symmetric::<u32>(3)?);
        for is_nonblocking in [false, true] {
            source.put(me, 0, &mine)?;
            target.fill(0)?;
            world.barrier()?;
            if is_nonblocking {
                let call = world.start_symmetric(&source, &target).with_len(me.index());
                call.with_counts(&blocks).all_gather()?.wait()?;
            } else {
                let call = world.in_symmetric(&source, &target).with_len(me.index());
                call.with_counts(&blocks).all_gather()?;
            }
            assert_eq!(target.to_vec()?, all);
            world.barrier()?;
        }
        Ok(())
    });
}

/// Each PE notices that its own block has two lengths, before the call begins.
#[test]
fn own_block_has_one_length() {
    on(|world| {
        let rank = world.rank();
        let blocks = Displacements::new(&[1, 2, 3])?;
        let of = |given| {
            let received = rank.index() + 1;
            Some(Error::from(DisplacementsError::Own { rank, given, received }))
        };
        let own = vec![1; 5];
        assert_eq!(world.values(&own).with_counts(&blocks).all_gather().err(), of(5));
        assert_eq!(world.start(own.clone()).with_counts(&blocks).all_gather().err(), of(5));
        let mut target = [0; 6];
        let call = world.slices(&own, &mut target).with_counts(&blocks);
        assert_eq!(call.all_gather().err(), of(5));
        let none = Displacements::new(&[0; PES])?;
        let call = world.slices(&own, &mut target).with_counts((&none, &blocks));
        assert_eq!(call.all_to_all().err(), of(0));
        if rank == ROOT {
            let call = world.slices(&own, &mut target).with_counts(&blocks);
            assert_eq!(call.gather(ROOT).err(), of(5));
        }
        Ok(())
    });
}

/// In the modes All, no barrier is needed before peers' memory is read.
#[test]
fn counts_in_symmetric_memory_in_every_mode() {
    on(|world| {
        let (me, pes) = (world.rank(), world.size());
        let blocks = Displacements::new(&[0, 1, 2])?;
        let (source, target) = (world.symmetric::<u32>(3)?, world.symmetric::<u32>(6)?);
        let given = Displacements::new(&[1; PES])?;
        for sync in SyncModes::every() {
            let team = world.with_sync(sync);
            for is_nonblocking in [false, true] {
                let context = format!("{sync}, nonblocking: {is_nonblocking}");
                source.put(me, 0, &[me.0; 3])?;
                target.fill(9)?;
                world.barrier()?;
                if is_nonblocking {
                    let call = team.start_symmetric(&source, &target).with_len(me.index());
                    call.with_counts(&blocks).gather(ROOT)?.wait()?;
                } else {
                    let call = team.in_symmetric(&source, &target).with_len(me.index());
                    call.with_counts(&blocks).gather(ROOT)?;
                }
                world.barrier()?;
                let gathered = if me == ROOT { [1, 2, 2, 9, 9, 9] } else { [9; 6] };
                assert_eq!(target.to_vec()?, gathered, "{context}");
                world.barrier()?;
                if is_nonblocking {
                    let call = team.start_symmetric(&source, &target);
                    call.with_counts((&given, &given)).all_to_all()?.wait()?;
                } else {
                    let call = team.in_symmetric(&source, &target);
                    call.with_counts((&given, &given)).all_to_all()?;
                }
                if sync.exit == SyncMode::All {
                    let mut seen = [0; PES];
                    target.get(world.right(), 0, &mut seen)?;
                    assert_eq!(seen, [0, 1, 2], "{context}");
                }
                world.barrier()?;
                assert_eq!(target.to_vec()?[..pes], [0, 1, 2], "{context}");
                world.barrier()?;
            }
        }
        Ok(())
    });
}

/// A stated length makes a call use the beginning of symmetric memory.
#[test]
fn stated_length_uses_the_beginning_of_symmetric_memory() {
    on(|world| {
        let me = world.rank().0;
        let (source, target) = (world.symmetric::<u32>(12)?, world.symmetric::<u32>(12)?);
        source.fill(me + 1)?;
        world.barrier()?;
        for is_nonblocking in [false, true] {
            target.fill(0)?;
            world.barrier()?;
            if is_nonblocking {
                let call = world.start_symmetric(&source, &target).with_len(2);
                call.all_gather()?.wait()?;
            } else {
                world.in_symmetric(&source, &target).with_len(2).all_gather()?;
            }
            assert_eq!(target.to_vec()?, [1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0]);
            world.barrier()?;
            world.in_symmetric(&source, &target).with_len(5).all_reduce(Sum)?;
            assert_eq!(target.to_vec()?[..6], [6, 6, 6, 6, 6, 3]);
            world.barrier()?;
        }
        let beyond = CallError::OutOfBounds { first: 0, end: 15, len: 12 };
        let refused = world.in_symmetric(&source, &target).with_len(5).all_gather();
        assert_eq!(refused.err(), Some(Error::Call(beyond.clone())));
        let refused = world.start_symmetric(&source, &target).with_len(5).all_gather();
        assert_eq!(refused.err(), Some(Error::Call(beyond)));
        let refused = world.in_symmetric(&source, &target).with_len(usize::MAX).all_gather();
        assert!(matches!(refused, Err(Error::Call(CallError::OutOfBounds { .. }))));
        Ok(())
    });
}

/// The counts of an all-to-all have all lengths, so another length may be a mistake.
#[test]
fn length_of_an_all_to_all_with_counts_is_refused() {
    on(|world| {
        let data = vec![world.rank().0; 3];
        let (source, target) = (world.symmetric::<u32>(3)?, world.symmetric::<u32>(3)?);
        let blocks = Displacements::new(&[1; 3])?;
        let counts = (&blocks, &blocks);
        let refused = Some(Error::Call(CallError::LengthWithCounts { len: 1 }));
        let call = world.values(&data).with_len(1).with_counts(counts);
        assert_eq!(call.all_to_all().err(), refused);
        let call = world.start(data.clone()).with_len(1).with_counts(counts);
        assert_eq!(call.all_to_all().err(), refused);
        let call = world.in_symmetric(&source, &target).with_len(1).with_counts(counts);
        assert_eq!(call.all_to_all().err(), refused);
        let call = world.start_symmetric(&source, &target).with_len(1).with_counts(counts);
        assert_eq!(call.all_to_all().err(), refused);
        let call = world.plan::<u32>(1).with_counts(counts);
        assert_eq!(call.all_to_all().err(), refused);
        let plan = world.plan::<u32>(0).with_counts(counts).all_to_all()?;
        assert_eq!(plan.start(data)?.wait()?, [0, 1, 2]);
        Ok(())
    });
}

#[test]
fn scope_replaces_data_in_place() {
    on(|world| {
        let me = world.rank().0;
        for len in LENS {
            let mut data = vec![me + 1; len * PES];
            world.overlap(|scope| {
                let data = scope.start_in_place(&mut data).all_reduce(Sum)?.wait()?;
                assert!(data.iter().all(|&sum| sum == 6));
                data.fill(me + 1);
                let data = scope.start_in_place(data).scan(Sum)?.wait()?;
                assert!(data.iter().all(|&sum| sum == (me + 1) * (me + 2) / 2));
                data.fill(me + 1);
                let data = scope.start_in_place(data).reduce(Sum, ROOT)?.wait()?;
                assert!(world.rank() != ROOT || data.iter().all(|&sum| sum == 6));
                data.fill(me + 1);
                let data = scope.start_in_place(data).all_gather()?.wait()?;
                assert!(data.chunks(len).zip(1..).all(|(block, of)| block[0] == of));
                data.fill(me + 1);
                let data = scope.start_in_place(data).all_to_all()?.wait()?;
                assert!(data.chunks(len).zip(1..).all(|(block, of)| block[len - 1] == of));
                let data = scope.start_in_place(data).broadcast(Rank(2))?.wait()?;
                assert!(data.chunks(len).zip(1..).all(|(block, of)| block[0] == of));
                Ok(())
            })?;
        }
        Ok(())
    });
}

/// Borrowed data may not be used by a call that returns while they still move.
#[test]
fn borrowed_data_are_refused_in_exit_mode_none() {
    on(|world| {
        let loose = world.with_sync(SyncModes { exit: SyncMode::None, ..SyncModes::MINE });
        let refused = Some(Error::Call(CallError::BorrowedSlice(loose.sync())));
        let (one, mut other) = ([1; 3], [0; 3]);
        assert_eq!(loose.slices(&one, &mut other).all_reduce(Sum).err(), refused);
        assert_eq!(loose.in_place(&mut other).all_reduce(Sum).err(), refused);
        assert_eq!(loose.in_place(&mut other).broadcast(ROOT).err(), refused);
        let call = loose.overlap(|scope| {
            scope.start_in_place(&mut other).all_reduce(Sum)?;
            Ok(())
        });
        assert_eq!(call.err(), refused);
        assert_eq!(loose.values(&one).all_reduce(Sum)?, [3; 3]);
        Ok(())
    });
}
