//! The collectives of teams: this project's, on places in the symmetric memory.

use consort::{Collective, Displacements, Rank, Sum};
use libc::{c_int, ptrdiff_t};

use crate::{
    elements::Element,
    failure::fail,
    ordering,
    rma::{bytes_of, copy},
    strided::move_blocks,
    teams::{Members, Team},
    world::{Driver, World, not_symmetric, world},
};

/// What a call of a team needs.
pub(crate) struct Call {
    pub(crate) routine: &'static str,
    pub(crate) world: &'static World,
    pub(crate) team: Team,
    pub(crate) members: Members,
}

impl Call {
    /// A call of a team; `None` for `SHMEM_TEAM_INVALID`.
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
    pub(crate) fn check<T>(&self, argument: &str, at: *const T, elements: usize) {
        let bytes = bytes_of::<T>(elements);
        self.world.place(self.routine, (argument, at), bytes, self.world.rank);
    }

    /// The offset of symmetric memory.
    pub(crate) fn offset<T>(&self, argument: &str, at: *const T, elements: usize) -> usize {
        let (address, bytes) = (at.addr(), bytes_of::<T>(elements));
        let offset = self.world.offset_of(address, bytes);
        offset.unwrap_or_else(|| not_symmetric(self.routine, argument, address, bytes))
    }

    /// Locks the driver, and makes calls.
    pub(crate) fn make<R>(
        &self,
        calls: impl FnOnce(consort::Team<'static>) -> consort::Result<R>,
    ) -> R {
        let driver: &Driver = &self.world.driver();
        match calls(self.team.calls(self.routine, driver)) {
            Ok(result) => result,
            Err(error) => fail(self.routine, error),
        }
    }

    pub(crate) fn barrier(&self) {
        self.make(|team| team.barrier());
    }

    /// The memory of the `pe`th member that is symmetric to `at`, which has been checked.
    fn of_member<T>(&self, pe: Rank, argument: &str, at: *const T, elements: usize) -> *mut T {
        self.world.place(self.routine, (argument, at), bytes_of::<T>(elements), pe).cast()
    }
}

/// `shmem_barrier_all`.
pub fn barrier_all() {
    ordering::quiet_all();
    if let Some(call) = Call::new("shmem_barrier_all", Team::WORLD) {
        call.barrier();
    }
}

/// `shmem_sync_all`.
pub fn sync_all() {
    if let Some(call) = Call::new("shmem_sync_all", Team::WORLD) {
        call.barrier();
    }
}

/// `shmem_team_sync`. Returns 0, here and below; or -1 for `SHMEM_TEAM_INVALID`.
pub fn team_sync(team: Team) -> c_int {
    let Some(call) = Call::new("shmem_team_sync", team) else { return -1 };
    call.barrier();
    0
}

/// `shmem_broadcast`: the root's `dest` is written too.
///
/// # Safety
/// Here and below: both buffers are of as many elements as the call needs.
pub unsafe fn broadcast<T: Element>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe_root: c_int,
) -> c_int {
    let Some(call) = Call::new("shmem_broadcast", team) else { return -1 };
    let Some(root) = u32::try_from(pe_root).ok().filter(|&root| root < call.members.size()) else {
        let last = call.members.size() - 1;
        fail(call.routine, format_args!("argument PE_root is {pe_root}, expected 0 to {last}"))
    };
    call.check("dest", dest, nelems);
    call.check("source", source, nelems);
    if call.members.own() == root {
        // SAFETY: both have been checked.
        unsafe { copy(dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
    }
    if nelems > 0 && call.pes() > 1 {
        let at = call.offset("dest", dest, nelems);
        let kind = (Collective::Broadcast, Some(Rank(root)));
        let bytes = bytes_of::<T>(nelems);
        call.make(|team| team.collective_at::<u8, Sum>(kind, None, (at, at), bytes));
    }
    0
}

/// A collective that moves a block of `nelems` elements.
unsafe fn move_all<T: Element>(
    (routine, collective): (&'static str, Collective),
    team: Team,
    (dest, received): (*mut T, usize),
    (source, contributed): (*const T, usize),
    nelems: usize,
) -> c_int {
    let Some(call) = Call::new(routine, team) else { return -1 };
    let [received, contributed] =
        [received, contributed].map(|all| if all == 0 { call.pes() } else { all });
    let [received, contributed] = [received, contributed].map(|count| nelems.saturating_mul(count));
    call.check("dest", dest, received);
    call.check("source", source, contributed);
    if call.pes() == 1 {
        // SAFETY: both have been checked.
        unsafe { copy(dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
    } else if nelems > 0 {
        let places =
            (call.offset("source", source, contributed), call.offset("dest", dest, received));
        let bytes = bytes_of::<T>(nelems);
        call.make(|team| team.collective_at::<u8, Sum>((collective, None), None, places, bytes));
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
    // SAFETY: the caller's promise.
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
    // SAFETY: the caller's promise.
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
    let Some(call) = Call::new("shmem_collect", team) else { return -1 };
    let counts = call.make(|team| team.all_gather(bytes_of::<T>(nelems)));
    let blocks = match Displacements::new(&counts) {
        Ok(blocks) => blocks,
        Err(error) => fail(call.routine, error),
    };
    let all = blocks.extent() / size_of::<T>();
    call.check("dest", dest, all);
    call.check("source", source, nelems);
    if call.pes() == 1 {
        // SAFETY: both have been checked.
        unsafe { copy(dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
    } else if all > 0 {
        // Who contributes nothing may pass any address.
        let from = if nelems > 0 { call.offset("source", source, nelems) } else { 0 };
        let to = call.offset("dest", dest, all);
        let own = (from, bytes_of::<T>(nelems));
        call.make(|team| team.all_gather_blocks_at::<u8>(own, (to, &blocks)));
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
    let Some(call) = Call::new("shmem_alltoalls", team) else { return -1 };
    let step = |argument, stride: ptrdiff_t| match usize::try_from(stride) {
        Ok(step) if step > 0 => step,
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
    // Every PE fetches its blocks while all are here.
    call.barrier();
    let own = call.members.own() as usize;
    for (index, pe) in call.members.ranks().enumerate() {
        let theirs = call.of_member(pe, "source", source, extent(from_step));
        let theirs = theirs.cast_const().wrapping_add(own * nelems * from_step);
        let target = dest.wrapping_add(index * nelems * to_step);
        // SAFETY: both lie in what has been checked.
        unsafe { move_blocks(target, theirs, (dst, sst), (1, nelems)) };
    }
    call.barrier();
    0
}
