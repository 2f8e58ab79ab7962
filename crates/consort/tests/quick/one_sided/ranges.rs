//! Ranges of symmetric memory: operations with the range's own indices, within its bounds.

use std::thread;

use consort::{
    Error, Job, Rank,
    error::{CallError, HeapError},
    ops::Max,
    symmetric::{Atomic, Signal, SymmetricRange, Until},
};

use crate::jobs::on;

#[test]
fn operations_on_a_range_count_from_its_first_element() {
    on(Job::threads(2), |world| {
        let (me, other) = (world.rank(), world.right());
        let table = world.symmetric::<u32>(40)?;
        table.fill(9)?;
        world.barrier()?;
        let range = table.range(10..20)?;
        range.put(other, 1, &[1, 2, 3])?;
        range.put_strided(other, 4, 2, &[4, 5, 6], 1)?;
        assert_eq!(range.atomic(other, 9, Atomic::Swap(7))?, 9);
        world.barrier()?;
        assert_eq!(table.range(9..=20)?.to_vec()?, [9, 9, 1, 2, 3, 4, 9, 5, 9, 6, 7, 9]);
        assert_eq!(range.to_vec()?, [9, 1, 2, 3, 4, 9, 5, 9, 6, 7]);
        assert_eq!((range.load(3)?, range.len()), (3, 10));
        let mut some = [0; 3];
        range.get(other, 1, &mut some)?;
        assert_eq!(some, [1, 2, 3]);
        range.get_strided(other, 4, 2, &mut some, 1)?;
        assert_eq!(some, [4, 5, 6]);
        range.get_combine(other, 0, &mut some, Max)?;
        assert_eq!(some, [9, 5, 6]);
        // A range of a range, and its ends.
        let inner = range.range(2..)?.range(..=1)?;
        assert_eq!(inner.to_vec()?, [2, 3]);
        world.barrier()?;
        inner.fill(0)?;
        inner.store(1, me.0 + 50)?;
        assert_eq!(table.range(11..15)?.to_vec()?, [1, 0, me.0 + 50, 4]);
        world.barrier()
    });
}

#[test]
fn words_of_a_range_are_signalled_and_shared() {
    on(Job::threads(2), |world| {
        let other = world.right();
        let (data, words) = (world.symmetric::<u8>(30)?, world.symmetric::<usize>(6)?);
        let (end, flags) = (data.range(27..)?, words.range(4..)?);
        end.put_signal(other, 1, &[5, 6], &flags, 1, Signal::Add(1))?;
        assert_eq!(flags.wait_until(1, Until::AtLeast(1))?, 1);
        assert_eq!((words.load(5)?, data.load(28)?, data.load(29)?), (1, 5, 6));
        let arrived = world.completion_counter()?;
        end.put_counted(other, 0, &[4], &arrived)?;
        arrived.wait(1)?;
        assert_eq!(end.to_vec()?, [4, 5, 6]);
        let handle = flags.share()?;
        thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(handle.len(), 2);
                assert_eq!(handle.fetch_add(other, 0, usize::MAX).expect("a sound job"), 0);
                assert!(handle.fetch_add(other, 2, 1).is_err());
            });
        });
        assert_eq!(flags.wait_until(0, Until::AtLeast(1))?, usize::MAX);
        assert_eq!(words.to_vec()?, [0, 0, 0, 0, usize::MAX, 1]);
        let signed = world.symmetric::<isize>(1)?;
        assert_eq!(signed.fetch_add(other, 0, -3)?, 0);
        assert_eq!(signed.atomic(other, 0, Atomic::Load)?, -3);
        world.barrier()
    });
}

#[test]
fn access_outside_a_range_is_an_error() {
    on(Job::threads(1), |world| {
        let table = world.symmetric::<u64>(10)?;
        let me = Rank(0);
        let range = table.range(4..8)?;
        let bounds = |first, end, len| Error::Call(CallError::OutOfBounds { first, end, len });
        assert_eq!(range.load(4).err(), Some(bounds(4, 5, 4)));
        assert_eq!(range.put(me, 2, &[1; 3]).err(), Some(bounds(2, 5, 4)));
        assert_eq!(range.get(me, usize::MAX, &mut [1; 2]).err().map(|_| ()), Some(()));
        assert_eq!(range.range(3..5).map(drop).err(), Some(bounds(3, 5, 4)));
        assert_eq!(table.range(..11).map(drop).err(), Some(bounds(0, 11, 10)));
        let [from, to] = [7, 3];
        assert_eq!(table.range(from..to).map(drop).err(), Some(bounds(7, 3, 10)));
        assert!(table.range(..=usize::MAX).is_err());
        let none = table.range(10..)?;
        assert!(none.is_empty() && none.to_vec()?.is_empty());
        none.fill(1)?;
        assert_eq!(table.to_vec()?, [0; 10]);
        Ok(())
    });
}

/// Longer than the size of a copy, and not a multiple of it; and zero-sized elements.
#[test]
fn fill_reaches_every_element() {
    on(Job::threads(1).heap_bytes(1 << 20), |world| {
        for len in [0, 1, 511, 512, 513, 514, 1024, 1026, 5000] {
            let table = world.symmetric::<u64>(len + 2)?;
            table.range(1..=len)?.fill(3)?;
            let mut expected = vec![3; len + 2];
            (expected[0], expected[len + 1]) = (0, 0);
            assert_eq!(table.to_vec()?, expected, "{len} elements");
        }
        let large = world.symmetric::<[u64; 1000]>(3)?;
        large.fill([7; 1000])?;
        assert!(large.to_vec()? == [[7; 1000]; 3]);
        let shapeless = world.symmetric::<[u8; 0]>(9)?;
        shapeless.fill([])?;
        assert_eq!(shapeless.to_vec()?, [[0_u8; 0]; 9]);
        Ok(())
    });
}

/// A range keeps its allocation alive.
#[test]
fn memory_is_kept_as_long_as_a_range_holds_it() {
    on(Job::threads(2).heap_bytes(1024), |world| {
        let range: SymmetricRange<u64> = world.symmetric::<u64>(128)?.range(100..101)?;
        let exhausted = world.symmetric::<u64>(1).map(drop);
        assert!(matches!(exhausted, Err(Error::Memory(HeapError::Exhausted { .. }))));
        range.store(0, 1)?;
        drop(range);
        world.barrier()?;
        world.symmetric::<u64>(128).map(drop)
    });
}
