//! The symmetric heap: allocation, exhaustion, bounds.

use consort::{
    Error, Job, Rank, Result, Symmetric,
    error::CallError,
    symmetric::{Signal, Until},
};
use consort_native::HeapError;

use crate::jobs::on;

fn exhausted<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Memory(HeapError::Exhausted { .. })))
}

#[test]
fn memory_is_zero_and_is_used_again() {
    on(Job::threads(3).heap_bytes(1 << 16), |world| {
        for round in 0..200 {
            let one = world.symmetric::<u64>(1000)?;
            let two = world.symmetric::<u8>(1 + round)?;
            let mut data = [1; 1000];
            one.get(world.right(), 0, &mut data)?;
            assert_eq!(data, [0; 1000], "round {round}");
            assert_eq!(two.load(round)?, 0);
            world.barrier()?;
            one.put(world.left(), 0, &[u64::MAX; 1000])?;
            two.put(world.left(), 0, &vec![255; 1 + round])?;
            world.barrier()?;
            // Dropping is local, and possible in any order.
            if (round + world.rank().index()) % 2 == 0 {
                drop(one);
            }
        }
        Ok(())
    });
}

#[test]
fn exhaustion_fails_on_all_and_the_job_goes_on() {
    let errors = on(Job::threads(4).heap_bytes(1 << 12), |world| {
        let held = world.symmetric::<u64>(256)?;
        let error = world.symmetric::<u64>(257).map(|_| ()).expect_err("2056 bytes");
        let none = world.symmetric::<u64>(usize::MAX);
        let said = none.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(said.ends_with("so check the length"), "{said}");
        assert!(exhausted(none));
        assert!(exhausted(world.symmetric::<u64>(usize::MAX / 8)));
        let rest = world.symmetric::<u64>(256)?;
        assert!(exhausted(world.symmetric::<u8>(1)));
        rest.put(world.right(), 255, &[1])?;
        world.barrier()?;
        drop(held);
        world.barrier()?;
        let again = world.symmetric::<u64>(256)?;
        again.put(world.right(), 0, &[7])?;
        world.barrier()?;
        assert_eq!((rest.load(255)?, again.load(0)?), (1, 7));
        world.barrier()?;
        Ok(error.to_string())
    });
    for error in errors {
        for part in ["2056 bytes", "2048 of 4096", "CONSORT_HEAP_BYTES=8192", "heap_bytes(8192)"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn empty_allocation_fits_a_full_heap() {
    on(Job::threads(2).heap_bytes(128), |world| {
        let all = world.symmetric::<u8>(128)?;
        let none = world.symmetric::<u64>(0)?;
        assert!(none.is_empty());
        let shapeless = world.symmetric::<[u8; 0]>(9)?;
        assert_eq!((shapeless.len(), shapeless.load(8)?), (9, []));
        drop(all);
        world.barrier()
    });
}

/// A PE that still holds a block prevents its reuse.
#[test]
fn memory_is_kept_as_long_as_one_pe_holds_it() {
    on(Job::threads(3).heap_bytes(1024), |world| {
        let keeper = world.rank() == Rank(1);
        let mut held = Some(world.symmetric::<u64>(128)?);
        if !keeper {
            held = None;
        }
        world.barrier()?;
        assert!(exhausted(world.symmetric::<u64>(1)));
        if let Some(held) = held {
            held.put(Rank(0), 0, &[5])?;
        }
        world.barrier()?;
        world.symmetric::<u64>(128).map(|_| ())
    });
}

#[test]
fn out_of_bounds_access_is_an_error() {
    on(Job::threads(2), |world| {
        let me = world.rank();
        let memory = world.symmetric::<u64>(4)?;
        let flags = world.symmetric::<u64>(1)?;
        let bounds = |first, end| Error::Call(CallError::OutOfBounds { first, end, len: 4 });
        let put = |first, len| memory.put(me, first, &vec![1; len]).err();
        assert_eq!(put(0, 5), Some(bounds(0, 5)));
        assert_eq!(put(4, 1), Some(bounds(4, 5)));
        assert_eq!(put(5, 0), Some(bounds(5, 5)));
        assert_eq!(put(usize::MAX, 2), Some(bounds(usize::MAX, usize::MAX)));
        assert_eq!(put(4, 0), None);
        assert_eq!(memory.get(me, 3, &mut [0; 2]).err(), Some(bounds(3, 5)));
        assert_eq!(memory.load(4).err(), Some(bounds(4, 5)));
        assert_eq!(memory.store(4, 1).err(), Some(bounds(4, 5)));
        assert_eq!(memory.fetch_add(me, 9, 1).err(), Some(bounds(9, 10)));
        assert_eq!(memory.wait_until(4, Until::Equals(0)).err(), Some(bounds(4, 5)));
        let out = memory.put_signal(me, 0, &[1], &flags, 1, Signal::Set(1));
        assert_eq!(
            out.err(),
            Some(Error::Call(CallError::OutOfBounds { first: 1, end: 2, len: 1 }))
        );
        let ranks = |symmetric: &Symmetric<u64>| {
            let stranger = Rank(2);
            [
                symmetric.put(stranger, 0, &[1]).err(),
                symmetric.get(stranger, 0, &mut [1]).err(),
                symmetric.fetch_add(stranger, 0, 1).err(),
                symmetric.put_signal(stranger, 0, &[1], &flags, 0, Signal::Add(1)).err(),
            ]
        };
        let error = Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 });
        assert!(ranks(&memory).iter().all(|found| found.as_ref() == Some(&error)));
        assert!(error.to_string().contains("ranks 0 to 1"), "{error}");
        world.barrier()?;
        assert_eq!(memory.load(0)?, 0, "nothing was written");
        world.barrier()
    });
}

/// Untouched memory costs nothing: a launch with gigabytes of it is not slower.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_committed_only_on_use() {
    fn resident_pages() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        pages.expect("a number of pages")
    }
    let grown = on(Job::threads(4).heap_bytes(512 << 20), |world| {
        let before = resident_pages();
        let memory = world.symmetric::<u64>(1000)?;
        memory.store(999, 1)?;
        world.barrier()?;
        Ok(resident_pages().saturating_sub(before))
    });
    assert!(grown[0] < 50_000, "{} pages for 8000 bytes", grown[0]);
}
