//! Tests of the agreements that PEs reach through the directory.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_fabric::Rank;

use super::{
    blocks::HeapError,
    group_arena::GroupArenaPlace,
    group_error::GroupError,
    groups::GroupKey,
    keys::{BLOCK, FORMING, STRIDED},
    lock::{BYTES, Directory, LockedDirectory},
};
use crate::{
    inbox::line::LineWord,
    segment::{
        backing::Backing, origin::Origin, page::PAGE, reservation::Segment, slice::SegmentWords,
    },
    state::poison::Poison,
};

/// The maximum number of bytes for groups.
const MOST: usize = 200 * PAGE;

/// Returns a directory in a segment, for heaps of `heap_bytes`, with four pages for groups.
fn directory(heap_bytes: usize) -> Directory {
    let segment = Segment::reserve(BYTES + 4 * PAGE, Origin::Private, "a test");
    let segment = Arc::new(segment.expect("memory"));
    let backing = Backing::Process(Origin::Private);
    Directory::new(&segment, 0, heap_bytes, GroupArenaPlace { begin: BYTES, most: MOST, backing })
}

fn locked(directory: &Directory) -> LockedDirectory<'_> {
    directory.lock(Poison::<1>::default().flag()).expect("nobody has it")
}

#[test]
fn memory_is_reused_only_when_all_have_dropped_it() {
    let directory = directory(1024);
    let heap = locked(&directory);
    let at = |number, requested| heap.allocate((0, number), 2, requested).map(|taken| taken.at);
    assert_eq!((at(0, 512), at(0, 512), at(1, 500)), (Ok(0), Ok(0), Ok(512)));
    assert!(matches!(at(2, 1), Err(HeapError::Exhausted { free: 0, .. })));
    heap.release((0, 0));
    assert!(at(3, 1).is_err(), "the other PE still holds it");
    heap.release((0, 0));
    assert_eq!(at(4, 128), Ok(0));
    for number in [1, 1, 4, 4] {
        heap.release((0, number));
    }
    assert_eq!(at(5, 1024), Ok(0), "regions are joined again");
}

#[test]
fn memory_held_twice_is_not_reused_early() {
    let directory = directory(1024);
    let heap = locked(&directory);
    assert_eq!(heap.allocate((0, 0), 1, 1024).map(|taken| taken.at), Ok(0));
    heap.hold((0, 0));
    heap.release((0, 0));
    assert!(heap.allocate((0, 1), 1, 1024).is_err());
    heap.release((0, 0));
    assert!(heap.allocate((0, 2), 1, 1024).is_ok());
    heap.hold((0, 7)); // a block of zero bytes
}

#[test]
#[should_panic(expected = "PEs ask for 8 and 16 bytes at once")]
fn sizes_must_match() {
    let directory = directory(1024);
    let heap = locked(&directory);
    let _ = [8, 16].map(|requested| heap.allocate((0, 0), 2, requested));
}

#[test]
fn absurd_sizes_are_errors() {
    let directory = directory(1024);
    let heap = locked(&directory);
    let at = |number, requested| heap.allocate((0, number), 2, requested).map(|taken| taken.at);
    assert_eq!(at(0, 8), Ok(0));
    assert!(at(1, usize::MAX).is_err());
    assert_eq!((at(2, 0), at(3, 1016 - 128 + 8)), (Ok(0), Ok(128)));
    assert_eq!(at(4, 0), Ok(0), "nothing fits into a full heap");
}

#[test]
fn failed_allocations_leave_nothing() {
    let directory = directory(1024);
    let heap = locked(&directory);
    for number in 0..10 {
        let both = [(); 2].map(|()| heap.allocate((0, number), 2, 2000));
        assert!(both[0].is_err() && both[0] == both[1], "all hear the same");
    }
    assert_eq!(heap.map.of_kind(BLOCK).count(), 0);
}

#[test]
fn allocation_tells_fresh_from_used_bytes() {
    let directory = directory(1024);
    let heap = locked(&directory);
    let fresh =
        |number, requested| heap.allocate((0, number), 1, requested).map(|taken| taken.fresh);
    assert_eq!(fresh(0, 256), Ok(0));
    heap.release((0, 0));
    assert_eq!(fresh(1, 512), Ok(256));
    assert_eq!(fresh(2, 128), Ok(512));
}

#[test]
fn members_find_their_group_and_its_pages_are_zero_again() {
    let directory = directory(0);
    let groups = locked(&directory);
    let world = groups.found_group(3, 100).expect("a page");
    assert_eq!((world.number, groups.groups()), (0, vec![(BYTES, 3)]));
    for made in 0..10 {
        let join = |color| groups.join(GroupKey::Color(0, made, color), 2, PAGE).expect("a page");
        let [one, other, same] = [7, 8, 7].map(join);
        assert_eq!((one.at, one), (BYTES + PAGE, same));
        assert_ne!((one.at, one.number), (other.at, other.number));
        let another_size = groups.join(GroupKey::Color(0, made, 8), 3, PAGE);
        assert_eq!(another_size, Err(GroupError::PeerExhausted));
        let (segment, at) = directory.find_group(one.at).expect("a page");
        let words = SegmentWords::new(&segment, at, PAGE / 8);
        let zero = |word: &LineWord| word.swap(7, Relaxed) == 0;
        assert!(words.iter().all(zero), "others' are never seen");
        assert_eq!(join(8), other);
        for number in [one.number, other.number] {
            groups.leave(number);
            groups.leave(number);
        }
    }
    assert_eq!(groups.groups().len(), 1);
    assert_eq!(groups.map.of_kind(FORMING).count(), 0);
}

/// Two groups with the same first PE as a third: one has the third's stride, the other its size.
#[test]
fn members_alone_find_their_group_in_any_order() {
    let directory = directory(0);
    let groups = locked(&directory);
    let join = |stride, pes| groups.join(GroupKey::Strided(Rank(1), stride), pes, PAGE);
    let [pair, apart, three] = [(1, 2), (2, 2), (1, 3)].map(|(stride, pes)| join(stride, pes));
    assert_eq!((&join(1, 3), &join(2, 2)), (&three, &apart));
    assert_eq!((&join(1, 2), &join(1, 3)), (&pair, &three));
    let numbers = [pair, apart, three].map(|place| place.expect("a page").number);
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(groups.map.of_kind(STRIDED).count(), 0, "all members have come");
}

#[test]
fn group_without_memory_fails_for_all_members() {
    let directory = directory(0);
    let groups = locked(&directory);
    let join = |color| groups.join(GroupKey::Color(0, 0, color), 2, MOST);
    assert_eq!(join(1), Err(GroupError::Full { most: MOST }));
    assert_eq!(join(1), Err(GroupError::PeerExhausted));
    assert_eq!(join(2), Err(GroupError::Full { most: MOST }));
    assert_eq!(groups.groups(), []);
    assert!(groups.found_group(2, 4 * PAGE).is_ok(), "what was refused takes no room");
}

/// Groups lie in the segment and in added extents, and get the same places again after all have
/// left.
#[test]
fn groups_that_fill_the_segment_get_extents() {
    let directory = directory(0);
    let groups = locked(&directory);
    let make = |pages: usize| groups.found_group(1, pages * PAGE).expect("memory");
    let made: Vec<_> =
        [3, 3, 1, 7, 40, 2, 5].into_iter().map(|pages| (make(pages), pages)).collect();
    for (place, pages) in &made {
        let (segment, at) = directory.find_group(place.at).expect("mapped");
        let words = SegmentWords::new(&segment, at, pages * PAGE / 8);
        assert!(words.iter().all(|word| word.swap(place.number + 1, Relaxed) == 0));
    }
    for (place, pages) in made.iter().rev() {
        let (segment, at) = directory.find_group(place.at).expect("mapped");
        let words = SegmentWords::new(&segment, at, pages * PAGE / 8);
        assert!(words.iter().all(|word| word.load(Relaxed) == place.number + 1));
        groups.leave(place.number);
        assert!(words.iter().all(|word| word.load(Relaxed) == 0));
    }
    let places: Vec<_> = made.iter().map(|(place, _)| place.at).collect();
    let again: Vec<_> = made.iter().map(|(_, pages)| make(*pages).at).collect();
    assert_eq!(places, again);
}

#[test]
fn waiter_on_lost_lock_gets_job_error() {
    let (directory, poison) = (directory(0), Poison::<1>::default());
    std::mem::drop(directory.lock(poison.flag()).expect("nobody has it"));
    let lost = directory.lock(poison.flag()).expect("it was given back");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| directory.lock(poison.flag()).is_none());
        assert!(poison.claim(&[]));
        assert!(waiter.join().expect("no panic"));
    });
    drop(lost);
    assert!(directory.lock(poison.flag()).is_some(), "free, it is given all the same");
}

#[test]
fn directory_lock_is_exclusive() {
    let (directory, poison) = (directory(1 << 20), Poison::<1>::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (directory, poison) = (&directory, &poison);
            scope.spawn(move || {
                for number in 0..500 {
                    let lock = || directory.lock(poison.flag()).expect("the job is sound");
                    lock().allocate((thread, number), 1, 8).expect("room");
                    lock().hold_name("a call", |_| ()).expect("a number");
                    lock().release((thread, number));
                }
            });
        }
    });
    let all = locked(&directory);
    assert_eq!(all.map.of_kind(BLOCK).count(), 0);
    assert_eq!(all.hold_name("another", |_| ()), Ok(2));
    assert_eq!(all.allocate((0, 0), 1, 1 << 20).map(|taken| taken.at), Ok(0));
}
