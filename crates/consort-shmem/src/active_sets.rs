//! The collectives of OpenSHMEM 1.4, on active sets: `PE_size` PEs beginning with `PE_start`, 2 to
//! the power of `logPE_stride` apart.
//!
//! An active set is a team, and its calls are those of teams. A PE's first call creates its part of
//! the team, without the PEs outside the set; the team lasts as long as the job. A set of all PEs
//! is the world team. The calls need no `pSync` and no `pWrk`. Threads may make calls of different
//! sets at the same time, as with different teams.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use bytemuck::Pod;
use consort::{Rank, bindings::form_strided, tune::Collective};
use libc::{c_int, ptrdiff_t};

use crate::{
    collectives,
    elements::{Element, Reduction},
    failure::fail,
    reductions,
    teams::{Config, Team, handle},
    world::{World, world},
};

/// The teams that this PE has created, by first PE, stride and size.
static TEAMS: Mutex<BTreeMap<[u32; 3], Team>> = Mutex::new(BTreeMap::new());

/// The arguments that define a set: `PE_start`, `logPE_stride`, `PE_size`.
pub type Triplet = (c_int, c_int, c_int);

/// Returns the team of a set that contains this PE.
fn team(routine: &'static str, set: Triplet) -> Team {
    let world = world(routine);
    let Some(members @ [start, stride, size]) = members(world, set) else {
        let ((start, log_stride, size), last) = (set, world.pes - 1);
        fail(
            routine,
            format_args!(
                "arguments PE_start, logPE_stride and PE_size are {start}, {log_stride} and \
                 {size}, expected a set of PEs from 0 to {last} that contains this PE"
            ),
        )
    };
    if size == world.pes {
        return Team::WORLD;
    }
    let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
    *teams.entry(members).or_insert_with(|| {
        let driver = world.driver();
        let calls = form_strided(driver.world(), Rank(start), stride, size);
        handle(calls.unwrap_or_else(|error| fail(routine, error)), Config::default())
    })
}

/// Forgets the teams of all sets, when this PE leaves the job.
pub(crate) fn forget_all() {
    TEAMS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Returns the first PE, the stride and the size of a set; `None` if the arguments define no set,
/// or this PE is not in it.
fn members(world: &World, (start, log_stride, size): Triplet) -> Option<[u32; 3]> {
    let [start, log_stride, size] =
        [start, log_stride, size].map(|argument| u32::try_from(argument).ok());
    let (start, size) = (start?, size?);
    let stride = 1_u32.checked_shl(log_stride?)?;
    let last = u64::from(start) + u64::from(size.checked_sub(1)?) * u64::from(stride);
    let own = world.rank.0.checked_sub(start)?;
    let is_in = own.is_multiple_of(stride) && own / stride < size;
    // The stride of a single PE is meaningless.
    let stride = if size == 1 { 1 } else { stride };
    (is_in && last < u64::from(world.pes)).then_some([start, stride, size])
}

/// `shmem_barrier`.
pub fn barrier(set: Triplet) {
    world("shmem_barrier").one_sided().quiet();
    synchronize("shmem_barrier", set);
}

/// `shmem_sync`.
pub fn sync(set: Triplet) {
    synchronize("shmem_sync", set);
}

fn synchronize(routine: &'static str, set: Triplet) {
    if let Some(call) = collectives::TeamCall::new(routine, team(routine, set)) {
        call.barrier();
    }
}

/// `shmem_broadcast32` and `64`: the root's `dest` is not written.
///
/// # Safety
/// Here and below: both buffers have as many elements as the call needs.
pub unsafe fn broadcast<T: Element>(
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe_root: c_int,
    set: Triplet,
) {
    let team = team("shmem_broadcast", set);
    collectives::broadcast_to_others(team, (dest, source), nelems, pe_root);
}

/// `shmem_fcollect32` and `64`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn fcollect<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    // SAFETY: guaranteed by the caller, here and below.
    unsafe { collectives::fcollect(team("shmem_fcollect", set), dest, source, nelems) };
}

/// `shmem_collect32` and `64`: PEs contribute different numbers of elements.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn collect<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    // SAFETY: as above.
    unsafe { collectives::collect(team("shmem_collect", set), dest, source, nelems) };
}

/// `shmem_alltoall32` and `64`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn alltoall<T: Element>(dest: *mut T, source: *const T, nelems: usize, set: Triplet) {
    // SAFETY: as above.
    unsafe { collectives::alltoall(team("shmem_alltoall", set), dest, source, nelems) };
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
    let team = team("shmem_alltoalls", set);
    // SAFETY: as above.
    unsafe { collectives::alltoalls(team, dest, source, dst, sst, nelems) };
}

/// `shmem_and_to_all` and the others.
///
/// # Safety
/// As [`broadcast`]; both buffers are the same or disjoint.
pub unsafe fn to_all<T: Pod + Send, O: Reduction<T>>(
    dest: *mut T,
    source: *const T,
    nreduce: c_int,
    set: Triplet,
) {
    let routine = "shmem_to_all";
    let Ok(nelems) = usize::try_from(nreduce) else {
        fail(routine, format_args!("argument nreduce is {nreduce}, expected 0 or more"))
    };
    let (kind, team) = ((routine, Collective::AllReduce), team(routine, set));
    // SAFETY: as above.
    unsafe { reductions::combine::<T, O>(kind, team, dest, source, nelems) };
}
