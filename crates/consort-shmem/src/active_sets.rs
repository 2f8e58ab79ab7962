//! The collectives of 1.4, of active sets: `PE_size` PEs from `PE_start` on, 2 to the power of
//! `logPE_stride` apart.
//!
//! A set of all PEs makes the calls of the world, or meets as others do where calls are checked by
//! `SHMEM_DEBUG`. Others need no agreement on a team: each pair of
//! PEs meets in two words, one in the memory of each, which count how often they have met, and tell
//! for which call. Then PEs read each other's memory. They need no `pSync`. A PE's threads make
//! these calls in turn.

use std::{
    any::type_name,
    hash::{DefaultHasher, Hash, Hasher as _},
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

use bytemuck::Pod;
use consort::Rank;
use libc::{c_int, ptrdiff_t};

use crate::{
    collectives,
    elements::{Element, Reduction},
    failure::fail,
    ordering, reductions,
    rma::{bytes_of, copy},
    strided::move_blocks,
    teams::Team,
    world::{World, world},
};

/// How often this PE has met each other in a set.
static MEETINGS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The routines, as the words of meetings number them.
const ROUTINES: [&str; 8] = [
    "shmem_barrier",
    "shmem_sync",
    "shmem_broadcast",
    "shmem_fcollect",
    "shmem_collect",
    "shmem_alltoall",
    "shmem_alltoalls",
    "shmem_to_all",
];

/// The bits of a call that are of its arguments.
const ARGUMENTS: u32 = (1 << 24) - 1;

/// An active set, this PE among it.
#[derive(Clone, Copy)]
struct Set {
    routine: &'static str,
    /// The number of the routine, and below 24 bits of what its arguments are.
    call: u32,
    world: &'static World,
    start: u32,
    stride: u32,
    size: u32,
    own: u32,
}

impl Set {
    fn new(routine: &'static str, (start, log_stride, size): (c_int, c_int, c_int)) -> Self {
        let world = world(routine);
        let wrong = || -> ! {
            fail(
                routine,
                format_args!(
                    "arguments PE_start, logPE_stride and PE_size are {start}, {log_stride} and \
                     {size}, expected a set of PEs 0 to {}, this one among it",
                    world.pes - 1
                ),
            )
        };
        let stride = u32::try_from(log_stride).ok().and_then(|log| 1_u32.checked_shl(log));
        let (Ok(start), Some(stride), Ok(size)) =
            (u32::try_from(start), stride, u32::try_from(size))
        else {
            wrong()
        };
        let last = u64::from(start) + u64::from(size.max(1) - 1) * u64::from(stride);
        let own = world.rank.0.wrapping_sub(start);
        if size == 0
            || last >= u64::from(world.pes)
            || world.rank.0 < start
            || !own.is_multiple_of(stride)
            || own / stride >= size
        {
            wrong()
        }
        let numbered = (0_u32..).zip(ROUTINES).find(|(_, name)| *name == routine);
        let (number, _) = numbered.expect("a routine of active sets");
        let set =
            Self { routine, call: number << 24, world, start, stride, size, own: own / stride };
        set.with((start, stride, size))
    }

    /// The same call with more arguments, which all members give alike.
    fn with(mut self, arguments: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.call, arguments).hash(&mut hasher);
        self.call = self.call & !ARGUMENTS | halves(hasher.finish())[1] & ARGUMENTS;
        self
    }

    /// Whether all PEs are in it.
    fn is_world(&self) -> bool {
        self.size == self.world.pes
    }

    fn pe(&self, index: u32) -> Rank {
        Rank(self.start + index * self.stride)
    }

    /// The word of PE `of` in which PE `with` counts their meetings: the number, and the call.
    fn word(&self, of: Rank, with: Rank) -> &AtomicU64 {
        let at = self.world.one_sided().address(of, 8 * with.index(), 8);
        let at = at.expect("there are words for all PEs");
        // SAFETY: an aligned word at the beginning of a heap, which serves nothing else.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// Waits until all are here.
    fn synchronize(&self) {
        let (world, own) = (self.world, self.world.rank);
        if self.is_world() && !world.environment.debug {
            collectives::sync_all();
            return;
        }
        let mut meetings = MEETINGS.lock().unwrap_or_else(PoisonError::into_inner);
        meetings.resize(world.pes as usize, 0);
        let others = || (0..self.size).map(|index| self.pe(index)).filter(|&pe| pe != own);
        for pe in others() {
            let number = &mut meetings[pe.index()];
            *number = number.wrapping_add(1);
            let word = u64::from(*number) << 32 | u64::from(self.call);
            self.word(pe, own).store(word, Release);
            world.one_sided().wake(pe);
        }
        for pe in others() {
            let (word, due) = (self.word(own, pe), meetings[pe.index()]);
            let here = || {
                let [number, call] = halves(word.load(Acquire));
                // A peer is at most one meeting ahead. Then it has compared the calls of this one.
                (number.wrapping_sub(due) <= 1).then_some((number == due).then_some(call))
            };
            match world.one_sided().wait_for(own, here) {
                Ok(Some(theirs)) if theirs != self.call => self.mismatched(pe, theirs),
                Ok(_) => {}
                Err(_) => fail(self.routine, "the job has failed"),
            }
        }
    }

    #[cold]
    fn mismatched(&self, pe: Rank, call: u32) -> ! {
        let theirs = ROUTINES.get((call >> 24) as usize).copied().unwrap_or("another routine");
        let with = if theirs == self.routine { "with other arguments" } else { "instead" };
        let Self { start, stride, size, .. } = self;
        fail(
            self.routine,
            format_args!(
                "calls of active sets do not match: PE {pe} is in {theirs} {with}, this PE in the \
                 call of {size} PEs from {start} on, {stride} apart"
            ),
        )
    }

    /// The memory of a member that is symmetric to this PE's.
    fn of_member<T>(&self, index: u32, argument: &str, at: *const T, elements: usize) -> *mut T {
        let bytes = bytes_of::<T>(elements);
        self.world.place(self.routine, (argument, at), bytes, self.pe(index)).cast()
    }
}

/// The upper and the lower half of a word.
#[expect(clippy::cast_possible_truncation, reason = "one half each")]
fn halves(word: u64) -> [u32; 2] {
    [(word >> 32) as u32, word as u32]
}

/// The arguments that name a set: `PE_start`, `logPE_stride`, `PE_size`.
pub type Triplet = (c_int, c_int, c_int);

/// `shmem_barrier`.
pub fn barrier(set: Triplet) {
    ordering::quiet_all();
    Set::new("shmem_barrier", set).synchronize();
}

/// `shmem_sync`.
pub fn sync(set: Triplet) {
    Set::new("shmem_sync", set).synchronize();
}

/// `shmem_broadcast32` and `64`: the root's `dest` is not written.
///
/// # Safety
/// Here and below: both buffers are of as many elements as the call needs.
pub unsafe fn broadcast<T: Element>(
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe_root: c_int,
    set: Triplet,
) {
    let set = Set::new("shmem_broadcast", set);
    let Some(root) = u32::try_from(pe_root).ok().filter(|&root| root < set.size) else {
        let last = set.size - 1;
        fail(set.routine, format_args!("argument PE_root is {pe_root}, expected 0 to {last}"))
    };
    let set = set.with((root, bytes_of::<T>(nelems)));
    set.of_member(set.own, "dest", dest, nelems);
    set.synchronize();
    if set.own != root {
        let theirs = set.of_member(root, "source", source, nelems);
        // SAFETY: symmetric memory, which the root leaves alone until all have met again.
        unsafe {
            copy("shmem, of an active set", dest.cast(), theirs.cast(), bytes_of::<T>(nelems))
        };
    }
    set.synchronize();
}

/// `shmem_fcollect32` and `64`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn fcollect<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    let set = Set::new("shmem_fcollect", set);
    if set.is_world() {
        // SAFETY: the caller's promise.
        unsafe { collectives::fcollect(Team::WORLD, dest, source, nelems) };
        return;
    }
    let set = set.with(bytes_of::<T>(nelems));
    let all = nelems.saturating_mul(set.size as usize);
    set.of_member(set.own, "dest", dest, all);
    set.synchronize();
    for index in 0..set.size {
        let theirs = set.of_member(index, "source", source, nelems);
        let target = dest.wrapping_add(index as usize * nelems);
        // SAFETY: what has been checked; all leave their sources alone until they meet again.
        unsafe {
            copy("shmem, of an active set", target.cast(), theirs.cast(), bytes_of::<T>(nelems))
        };
    }
    set.synchronize();
}

/// `shmem_collect32` and `64`: PEs contribute different numbers of elements.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn collect<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    let set = Set::new("shmem_collect", set);
    if set.is_world() {
        // SAFETY: the caller's promise.
        unsafe { collectives::collect(Team::WORLD, dest, source, nelems) };
        return;
    }
    // Each PE tells its number in a word behind those of meetings.
    let set = set.with(size_of::<T>());
    let world = set.world;
    let count_of = |pe: Rank| {
        let at = world.one_sided().address(pe, crate::world::COUNT_AT, 8);
        // SAFETY: an aligned word of a heap's beginning, which serves nothing else.
        unsafe { AtomicU64::from_ptr(at.expect("there is such a word").cast()) }
    };
    count_of(world.rank).store(nelems as u64, std::sync::atomic::Ordering::Release);
    set.synchronize();
    let counts: Vec<usize> = (0..set.size)
        .map(|index| usize::try_from(count_of(set.pe(index)).load(Acquire)).unwrap_or(usize::MAX))
        .collect();
    let all = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
    set.of_member(set.own, "dest", dest, all);
    let mut target = dest;
    for (index, &count) in (0..).zip(&counts) {
        if count > 0 {
            // A PE that contributes nothing may pass any address, so theirs is looked up here.
            let theirs = set.of_member(index, "source", source, count);
            // SAFETY: as in `fcollect`.
            unsafe {
                copy("shmem, of an active set", target.cast(), theirs.cast(), bytes_of::<T>(count))
            };
            target = target.wrapping_add(count);
        }
    }
    set.synchronize();
}

/// `shmem_alltoall32` and `64`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn alltoall<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    let set = Set::new("shmem_alltoall", set);
    if set.is_world() {
        // SAFETY: the caller's promise.
        unsafe { collectives::alltoall(Team::WORLD, dest, source, nelems) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { exchange(set, dest, source, (1, 1), nelems) };
}

/// `shmem_alltoalls32` and `64`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn alltoalls<T: Element>(
    dest: *mut T,
    source: *const T,
    dst: ptrdiff_t,
    sst: ptrdiff_t,
    nelems: usize,
    set: Triplet,
) {
    let set = Set::new("shmem_alltoalls", set);
    if dst < 1 || sst < 1 {
        fail(
            set.routine,
            format_args!("arguments dst and sst are {dst} and {sst}, expected 1 or more"),
        );
    }
    // SAFETY: the caller's promise.
    unsafe { exchange(set, dest, source, (dst, sst), nelems) };
}

unsafe fn exchange<T: Element>(
    set: Set,
    dest: *mut T,
    source: *const T,
    (dst, sst): (ptrdiff_t, ptrdiff_t),
    nelems: usize,
) {
    let set = set.with((dst, sst, bytes_of::<T>(nelems)));
    let [to_step, from_step] = [dst, sst].map(isize::unsigned_abs);
    let elements = nelems.saturating_mul(set.size as usize);
    let extent =
        |step: usize| elements.checked_sub(1).map_or(0, |last| last.saturating_mul(step) + 1);
    set.of_member(set.own, "dest", dest, extent(to_step));
    set.synchronize();
    for index in 0..set.size {
        let theirs = set.of_member(index, "source", source, extent(from_step)).cast_const();
        let theirs = theirs.wrapping_add(set.own as usize * nelems * from_step);
        let target = dest.wrapping_add(index as usize * nelems * to_step);
        // SAFETY: both lie in what has been checked.
        unsafe { move_blocks("shmem, of an active set", target, theirs, (dst, sst), (1, nelems)) };
    }
    set.synchronize();
}

/// `shmem_and_to_all` and the others.
///
/// # Safety
/// As [`broadcast`]; both are the same or apart.
pub unsafe fn to_all<T: Pod + Send, O: Reduction<T>>(
    dest: *mut T,
    source: *const T,
    nreduce: c_int,
    set: Triplet,
) {
    let set = Set::new("shmem_to_all", set);
    let Ok(nelems) = usize::try_from(nreduce) else {
        fail(set.routine, format_args!("argument nreduce is {nreduce}, expected 0 or more"))
    };
    if set.is_world() {
        // SAFETY: the caller's promise.
        unsafe { reductions::reduce::<T, O>(Team::WORLD, dest, source, nelems) };
        return;
    }
    let set = set.with((type_name::<(T, O)>(), nelems));
    set.of_member(set.own, "dest", dest, nelems);
    set.synchronize();
    let operator = O::default();
    let mut result: Vec<T> = Vec::with_capacity(nelems);
    for index in 0..set.size {
        let theirs = set.of_member(index, "source", source, nelems);
        let mut read = vec![T::zeroed(); nelems];
        // SAFETY: symmetric memory, which all leave alone until they meet again.
        unsafe {
            copy(
                "shmem, of an active set",
                read.as_mut_ptr().cast(),
                theirs.cast(),
                bytes_of::<T>(nelems),
            )
        };
        if index == 0 {
            result = read;
        } else {
            let pairs = result.iter_mut().zip(read);
            pairs.for_each(|(value, other)| *value = operator.apply(*value, other));
        }
    }
    set.synchronize();
    // SAFETY: the own memory.
    unsafe {
        copy("shmem, of an active set", dest.cast(), result.as_ptr().cast(), bytes_of::<T>(nelems))
    };
    // In a call with other sets a peer may read it next.
    set.world.one_sided().wake(set.world.rank);
}
