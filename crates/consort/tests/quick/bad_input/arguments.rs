//! Invalid arguments: roots, numbers of PEs, lengths, buffers.

use consort::{
    Error, Job, Rank, Result,
    error::{CallError, LaunchError},
    launch::MOST_PES,
    ops::Sum,
    sync_modes::{SyncMode, SyncModes},
};
use consort_native::HeapError;

use super::on;

#[test]
fn root_out_of_range_is_an_error() {
    let errors = on(Job::threads(3), |world| {
        let root = Rank(3);
        let memory = world.symmetric::<u64>(1).expect("8 bytes");
        let other = world.symmetric::<u64>(1).expect("8 bytes");
        let errors = [
            world.broadcast(1, root).err(),
            world.in_place(&mut [1]).broadcast(root).err(),
            world.in_symmetric(&memory, &memory).broadcast(root).err(),
            world.reduce(1, Sum, root).err(),
            world.slices(&[1], &mut []).reduce(Sum, Rank(u32::MAX)).err(),
            world.in_symmetric(&memory, &other).reduce(Sum, root).err(),
        ];
        // The job continues.
        assert_eq!(world.broadcast(5, Rank(2)).ok(), Some(5));
        errors
    });
    for errors in errors {
        for error in errors.into_iter().flatten() {
            let Error::Call(CallError::RootOutOfRange { root, pes: 3 }) = error else {
                panic!("{error}")
            };
            let text = format!("root {root} is not in the team: its 3 PEs have ranks 0 to 2");
            assert_eq!(error.to_string(), text);
        }
    }
}

#[test]
fn invalid_number_of_pes_is_an_error() {
    let none = Job::threads(0).run(|_| Ok(())).expect_err("no PEs");
    assert_eq!(none, Error::Launch(LaunchError::NoPes));
    assert!(none.to_string().contains("1 to 1024"), "{none}");
    for requested in [MOST_PES + 1, usize::MAX] {
        let many = Job::threads(requested).run(|_| Ok(())).expect_err("too many PEs");
        assert_eq!(many, Error::Launch(LaunchError::TooManyPes { requested, most: MOST_PES }));
        let text = format!("{requested} PEs are too many: a job has at most {MOST_PES}");
        assert_eq!(many.to_string(), text);
    }
    let heap = Job::threads(2).heap_bytes(usize::MAX).run(|_| Ok(())).expect_err("no such heap");
    assert!(matches!(heap, Error::Memory(HeapError::System { pes: 2, .. })), "{heap}");
}

#[test]
fn borrowed_slices_are_not_left_behind() {
    let errors = on(Job::threads(2), |world| {
        let mut errors = Vec::new();
        for entry in SyncMode::EVERY {
            let team = world.with_sync(SyncModes { entry, exit: SyncMode::None });
            errors.push(team.in_place(&mut [1]).broadcast(Rank(0)).err());
            errors.push(team.slices(&[1], &mut [1]).reduce(Sum, Rank(0)).err());
        }
        assert_eq!(world.with_sync(SyncModes::LOOSE).broadcast(5, Rank(1)).ok(), Some(5));
        errors
    });
    for error in errors.into_iter().flatten() {
        let error = error.expect("an error");
        let Error::Call(CallError::BorrowedSlice(sync)) = &error else { panic!("{error}") };
        assert_eq!(sync.exit, SyncMode::None);
        assert!(error.to_string().contains("use symmetric memory"), "{error}");
    }
}

#[test]
fn target_of_another_length_is_an_error() {
    let errors = on(Job::threads(2), |world| {
        let (three, two) = (world.symmetric::<u64>(3)?, world.symmetric::<u64>(2)?);
        let error = Error::Call(CallError::Lengths { source_len: 3, target_len: 2 });
        assert_eq!(
            world.in_symmetric(&three, &two).reduce(Sum, Rank(0)).err(),
            Some(error.clone())
        );
        // On PEs other than the root, the target does not matter.
        world
            .slices(&[1; 3], &mut [0; 3][..if world.rank().0 == 0 { 3 } else { 1 }])
            .reduce(Sum, Rank(0))?;
        let result = world.slices(&[1; 3], &mut [0; 2]).reduce(Sum, Rank(0));
        if world.rank() == Rank(0) {
            assert_eq!(result.err(), Some(error));
        }
        // PE 1 may have left; but either PE 1 or PE 0 waits for the other in the next call.
        world.broadcast(1, Rank(0)).map(|_| ()).and_then(|()| world.barrier())
    });
    assert!(errors.iter().all(|error| matches!(error, Err(Error::Mismatched(_)))), "{errors:?}");
}

/// The source of a reduction is read while its target is written.
#[test]
fn reduction_onto_its_source_is_an_error() {
    let errors = on(Job::threads(3), |world| {
        let memory = world.symmetric::<u64>(10)?;
        let error = world.in_symmetric(&memory, &memory).reduce(Sum, Rank(2)).err();
        assert_eq!(error, Some(Error::Call(CallError::InPlace)));
        // There is nothing to read or write.
        let none = world.symmetric::<u64>(0)?;
        world.in_symmetric(&none, &none).reduce(Sum, Rank(2))?;
        world.barrier()
    });
    assert!(errors.iter().all(Result::is_ok), "{errors:?}");
    assert!(Error::Call(CallError::InPlace).to_string().contains("two allocations"));
}

/// Lengths of blocks whose product with the number of PEs overflows.
#[test]
fn overflowing_length_is_an_error() {
    let errors = on(Job::threads(4), |world| {
        let (root, len) = (Rank(0), usize::MAX / 4 + 1);
        (world.rank() == root)
            .then(|| world.start(Vec::<u8>::new()).with_len(len).scatter(root).err())
    });
    let [Some(error), None, None, None] = &errors[..] else { panic!("{errors:?}") };
    assert!(matches!(error, Some(Error::Call(CallError::Blocks { .. }))), "{error:?}");
}
