//! The collectives of teams: those of the crate `consort`, on symmetric memory.
//!
//! One thread at a time makes calls, and blocks in them. If the program has requested
//! `SHMEM_THREAD_MULTIPLE`, threads take turns instead: a thread starts its call, and then polls it
//! in turn with threads that wait for calls of other teams.

use std::{
    sync::atomic::Ordering::Relaxed,
    thread,
    time::{Duration, Instant},
};

use bytemuck::Pod;
use consort::{
    Displacements, Error, Rank, Result,
    bindings::{
        is_before_turn,
        places::{
            all_gather_blocks_at, collective_at, start_all_gather_blocks_at, start_collective_at,
        },
    },
    nonblocking::Request,
    ops::Sum,
    tune::Collective,
};
use libc::{c_int, ptrdiff_t};

use crate::{
    elements::{Element, Reduction},
    failure::{departure, fail},
    rma::{bytes_of, copy, publish},
    strided::get_blocks,
    teams::{Members, Team},
    world::{World, not_symmetric, world},
};

use consort::Team as CollectiveTeam;

/// The longest time for which a thread keeps the driver when no other thread waits for it, and the
/// longest sleep between its turns.
const TURN: Duration = Duration::from_micros(200);

/// The data that a call of a team needs.
pub(crate) struct TeamCall {
    pub(crate) routine: &'static str,
    pub(crate) world: &'static World,
    pub(crate) team: Team,
    pub(crate) members: Members,
}

impl TeamCall {
    /// Creates a call of a team; `None` for `SHMEM_TEAM_INVALID`.
    pub(crate) fn new(routine: &'static str, team: Team) -> Option<Self> {
        let world = world(routine);
        if team == Team::INVALID {
            return None;
        }
        Some(Self { routine, world, team, members: Members::of(routine, team) })
    }

    pub(crate) fn pes(&self) -> usize {
        self.members.size() as usize
    }

    /// Checks that memory is symmetric.
    #[inline(always)]
    pub(crate) fn check<T>(&self, argument: &str, at: *const T, elements: usize) {
        let bytes = bytes_of::<T>(elements);
        self.world.locate(self.routine, (argument, at), bytes, self.world.rank);
    }

    #[inline(always)]
    pub(crate) fn offset<T>(&self, argument: &str, at: *const T, elements: usize) -> usize {
        let (address, bytes) = (at.addr(), bytes_of::<T>(elements));
        let offset = self.world.offset_of(address, bytes);
        let offset = offset.or_else(|| self.world.offset_of_constant(argument, address, bytes));
        // Zero bytes: any address is valid.
        let offset = offset.or((bytes == 0).then_some(0));
        let offset =
            offset.unwrap_or_else(|| not_symmetric(self.routine, argument, address, bytes));
        self.world.check_if_debugging(self.routine, (argument, address), bytes);
        offset
    }

    /// Makes a call; `start` starts it if threads take turns.
    pub(crate) fn make<R>(
        &self,
        blocking: impl FnOnce(&CollectiveTeam) -> Result<R>,
        start: impl FnOnce(&CollectiveTeam) -> Result<Request<R>>,
    ) -> R {
        if self.takes_turns() { self.by_turns(start) } else { self.blocking(blocking) }
    }

    pub(crate) fn takes_turns(&self) -> bool {
        self.world.takes_turns.load(Relaxed)
    }

    /// Makes a blocking call. All other calls block until it returns.
    pub(crate) fn blocking<R>(&self, call: impl FnOnce(&CollectiveTeam) -> Result<R>) -> R {
        let driver = self.world.driver();
        let done = call(self.team.calls(self.routine, &driver));
        drop(driver);
        done.unwrap_or_else(|error| self.fail(&error))
    }

    /// Ends the job with the reason why the call has failed.
    #[cold]
    fn fail(&self, error: &Error) -> ! {
        match departure(self.routine, error) {
            Some(reason) => fail(self.routine, reason),
            None => fail(self.routine, error),
        }
    }

    /// Makes a call while other threads make calls of other teams. So no thread waits while it
    /// holds the driver's lock, unless it is alone, and then only briefly.
    #[cold]
    #[inline(never)]
    pub(crate) fn by_turns<R>(
        &self,
        start: impl FnOnce(&CollectiveTeam) -> Result<Request<R>>,
    ) -> R {
        let is_before_turn = || is_before_turn(self.team.calls(self.routine, &self.world.driver()));
        self.world.callers.fetch_add(1, Relaxed);
        // After a barrier in this quarter of the window of calls, the call that begins the next
        // quarter need not wait for credits.
        if is_before_turn() {
            self.complete(|team| team.start_barrier());
        }
        let result = self.complete(start);
        self.world.callers.fetch_sub(1, Relaxed);
        result
    }

    /// Starts a call, and checks in turn with other threads whether it is complete.
    fn complete<R>(&self, start: impl FnOnce(&CollectiveTeam) -> Result<Request<R>>) -> R {
        let driver = self.world.driver();
        let started = start(self.team.calls(self.routine, &driver));
        drop(driver);
        let mut request = started.unwrap_or_else(|error| self.fail(&error));
        let begun = Instant::now();
        loop {
            let driver = self.world.driver();
            let is_alone = self.world.callers.load(Relaxed) == 1;
            let limit = if is_alone { TURN } else { Duration::ZERO };
            match request.wait_timeout(limit) {
                Ok(Ok(result)) => return result,
                Ok(Err(later)) => request = later,
                Err(error) => self.fail(&error),
            }
            drop(driver);
            if is_alone || begun.elapsed() < TURN {
                thread::yield_now();
            } else {
                thread::sleep((begun.elapsed() / 64).min(TURN));
            }
        }
    }

    pub(crate) fn barrier(&self) {
        self.make(|team| team.barrier(), |team| team.start_barrier());
    }

    /// Moves or combines data at these offsets.
    pub(crate) fn move_at<T: Pod + Send, O: Reduction<T>>(
        &self,
        kind: (Collective, Option<Rank>),
        operator: Option<O>,
        places: (usize, usize),
        len: usize,
    ) {
        if self.takes_turns() {
            self.by_turns(|team| start_collective_at::<T, O>(team, kind, operator, places, len));
        } else {
            let operator = operator.as_ref();
            self.blocking(|team| collective_at::<T, O>(team, kind, operator, places, len));
        }
    }

    /// Waits until all PEs have arrived, and fails if they pass other strides or lengths.
    fn agree(&self, own: [isize; 3]) {
        let all = self.make(|team| team.all_gather(own), |team| team.start(vec![own]).all_gather());
        let other = self.members.ranks().zip(&all).find(|(_, theirs)| **theirs != own);
        if let Some((pe, [dst, sst, nelems])) = other {
            let theirs = format_args!("on PE {pe} {dst}, {sst} and {nelems}");
            let [dst, sst, nelems] = own;
            fail(
                self.routine,
                format_args!(
                    "arguments dst, sst and nelems are {dst}, {sst} and {nelems}, but {theirs}"
                ),
            );
        }
    }

    fn root(&self, pe_root: c_int) -> Rank {
        let size = self.members.size();
        let root = u32::try_from(pe_root).ok().filter(|&root| root < size);
        let wrong = || -> ! {
            let expected = format_args!("expected 0 to {}", size - 1);
            fail(self.routine, format_args!("argument PE_root is {pe_root}, {expected}"))
        };
        Rank(root.unwrap_or_else(|| wrong()))
    }

    /// Broadcasts the root's `source` to the other members' `dest`. Both have been checked.
    fn broadcast<T: Element>(&self, (dest, source): (*mut T, *const T), nelems: usize, root: Rank) {
        if nelems > 0 && self.pes() > 1 {
            let places = (self.offset("source", source, nelems), self.offset("dest", dest, nelems));
            let kind = (Collective::Broadcast, Some(root));
            self.move_at::<u8, Sum>(kind, None, places, bytes_of::<T>(nelems));
        }
    }
}

/// Waits until all PEs have arrived, and everything that they have written is visible.
pub(crate) fn synchronize(routine: &'static str) {
    publish();
    if let Some(call) = TeamCall::new(routine, Team::WORLD) {
        call.barrier();
    }
}

/// `shmem_barrier_all`.
pub fn barrier_all() {
    synchronize("shmem_barrier_all");
}

/// `shmem_sync_all`.
pub fn sync_all() {
    if let Some(call) = TeamCall::new("shmem_sync_all", Team::WORLD) {
        call.barrier();
    }
}

/// `shmem_team_sync`. Returns 0, here and below, or -1 for `SHMEM_TEAM_INVALID`.
pub fn team_sync(team: Team) -> c_int {
    let Some(call) = TeamCall::new("shmem_team_sync", team) else { return -1 };
    call.barrier();
    0
}

/// `shmem_broadcast`: also writes the root's `dest`.
///
/// # Safety
/// Here and below: both buffers have as many elements as the call needs.
pub unsafe fn broadcast<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe_root: c_int,
) -> c_int {
    let Some(call) = TeamCall::new("shmem_broadcast", team) else { return -1 };
    let root = call.root(pe_root);
    call.check("dest", dest, nelems);
    call.check("source", source, nelems);
    if call.members.own() == root.0 {
        // SAFETY: both have been checked.
        unsafe { copy(call.routine, dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
    }
    call.broadcast((dest, dest), nelems, root);
    0
}

/// `shmem_broadcast32` and `64`: does not write the root's `dest`.
pub(crate) fn broadcast_to_others<T: Element>(
    team: Team,
    (dest, source): (*mut T, *const T),
    nelems: usize,
    pe_root: c_int,
) {
    let Some(call) = TeamCall::new("shmem_broadcast", team) else { return };
    let root = call.root(pe_root);
    call.check("dest", dest, nelems);
    call.check("source", source, nelems);
    call.broadcast((dest, source), nelems, root);
}

/// Performs a collective that moves a block of `nelems` elements.
unsafe fn move_all<T: Element>(
    (routine, collective): (&'static str, Collective),
    team: Team,
    (dest, received): (*mut T, usize),
    (source, contributed): (*const T, usize),
    nelems: usize,
) -> c_int {
    let Some(call) = TeamCall::new(routine, team) else { return -1 };
    let blocks = |count| if count == 0 { call.pes() } else { count };
    let [received, contributed] =
        [received, contributed].map(|count| nelems.saturating_mul(blocks(count)));
    call.check("dest", dest, received);
    call.check("source", source, contributed);
    if call.pes() == 1 {
        // SAFETY: both have been checked.
        unsafe { copy(call.routine, dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
    } else if nelems > 0 {
        let places =
            (call.offset("source", source, contributed), call.offset("dest", dest, received));
        call.move_at::<u8, Sum>((collective, None), None, places, bytes_of::<T>(nelems));
    }
    0
}

/// `shmem_fcollect`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn fcollect<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    let kind = ("shmem_fcollect", Collective::AllGather);
    // SAFETY: guaranteed by the caller.
    unsafe { move_all(kind, team, (dest, 0), (source, 1), nelems) }
}

/// `shmem_alltoall`.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn alltoall<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    let kind = ("shmem_alltoall", Collective::AllToAll);
    // SAFETY: guaranteed by the caller.
    unsafe { move_all(kind, team, (dest, 0), (source, 0), nelems) }
}

/// `shmem_collect`: PEs contribute different numbers of elements.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn collect<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    let Some(call) = TeamCall::new("shmem_collect", team) else { return -1 };
    let own_bytes = bytes_of::<T>(nelems);
    let counts = call
        .make(|team| team.all_gather(own_bytes), |team| team.start(vec![own_bytes]).all_gather());
    let blocks = match Displacements::new(&counts) {
        Ok(blocks) => blocks,
        Err(error) => fail(call.routine, error),
    };
    let all = blocks.extent() / size_of::<T>();
    call.check("dest", dest, all);
    call.check("source", source, nelems);
    if call.pes() == 1 {
        // SAFETY: both have been checked.
        unsafe { copy(call.routine, dest.cast(), source.cast(), own_bytes) };
    } else if all > 0 {
        let from = call.offset("source", source, nelems);
        let to = call.offset("dest", dest, all);
        let own = (from, own_bytes);
        call.make(
            |team| all_gather_blocks_at::<u8>(team, own, (to, &blocks)),
            |team| start_all_gather_blocks_at::<u8>(team, own, (to, &blocks)),
        );
    }
    0
}

/// `shmem_alltoalls`: elements of a block are `sst` and `dst` apart.
///
/// # Safety
/// As [`broadcast`].
pub unsafe fn alltoalls<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    dst: ptrdiff_t,
    sst: ptrdiff_t,
    nelems: usize,
) -> c_int {
    let Some(call) = TeamCall::new("shmem_alltoalls", team) else { return -1 };
    let step = |argument, stride: ptrdiff_t| match usize::try_from(stride) {
        Ok(step) if step > 0 || nelems == 0 => step,
        _ => {
            fail(call.routine, format_args!("argument {argument} is {stride}, expected at least 1"))
        }
    };
    let (to_step, from_step) = (step("dst", dst), step("sst", sst));
    let pes = call.pes();
    let extent = |step: usize| {
        let elements = pes.saturating_mul(nelems);
        if elements == 0 { 0 } else { (elements - 1).saturating_mul(step).saturating_add(1) }
    };
    call.check("dest", dest, extent(to_step));
    call.check("source", source, extent(from_step));
    if nelems == 0 {
        return 0;
    }
    // Every PE fetches its blocks while all PEs are in this call.
    call.agree([dst, sst, isize::try_from(nelems).unwrap_or(isize::MAX)]);
    let own = call.members.own() as usize;
    let (theirs, elements) =
        (source.wrapping_add(own * nelems * from_step), (nelems - 1) * from_step + 1);
    for (index, pe) in call.members.ranks().enumerate() {
        let (routine, world) = (call.routine, call.world);
        let place = world.locate(routine, ("source", theirs), bytes_of::<T>(elements), pe);
        let target = dest.wrapping_add(index * nelems * to_step);
        // SAFETY: both lie in memory that has been checked.
        unsafe { get_blocks((routine, world), target, (pe, place), (dst, sst), (1, nelems)) };
    }
    call.barrier();
    0
}
