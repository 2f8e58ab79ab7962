//! Reductions and scans of teams.

use bytemuck::Pod;
use consort::{Rank, ops::Operator, tune::Collective};
use libc::c_int;

use crate::{
    collectives::TeamCall,
    elements::{Reduction, SumOp},
    rma::{bytes_of, copy},
    teams::Team,
};

/// `shmem_and_reduce` and the others. Returns 0, or -1 for `SHMEM_TEAM_INVALID`.
///
/// # Safety
/// Here and below: both buffers have this many elements, and are the same or disjoint.
pub unsafe fn reduce<T: Pod + Send, O: Reduction<T>>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nreduce: usize,
) -> c_int {
    let routine = "shmem_reduce";
    // SAFETY: guaranteed by the caller.
    unsafe { combine::<T, O>((routine, Collective::AllReduce), team, dest, source, nreduce) }
}

/// `shmem_sum_inscan`.
///
/// # Safety
/// As [`reduce`].
pub unsafe fn sum_inscan<T: Pod + Send>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int
where
    SumOp: Operator<T>,
{
    let kind = ("shmem_sum_inscan", Collective::Scan);
    // SAFETY: guaranteed by the caller.
    unsafe { combine::<T, SumOp>(kind, team, dest, source, nelems) }
}

/// `shmem_sum_exscan`: the result is zero on the first PE.
///
/// # Safety
/// As [`reduce`].
pub unsafe fn sum_exscan<T: Pod + Send>(
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int
where
    SumOp: Operator<T>,
{
    let kind = ("shmem_sum_exscan", Collective::ExclusiveScan);
    // SAFETY: guaranteed by the caller.
    unsafe { combine::<T, SumOp>(kind, team, dest, source, nelems) }
}

/// Combines the contributions of all PEs.
///
/// # Safety
/// As [`reduce`].
pub(crate) unsafe fn combine<T: Pod + Send, O: Reduction<T>>(
    (routine, collective): (&'static str, Collective),
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    let Some(call) = TeamCall::new(routine, team) else { return -1 };
    if nelems == 0 {
        return 0;
    }
    let (operator, kind) = (O::default(), (collective, None));
    let is_exclusive = collective == Collective::ExclusiveScan;
    if call.pes() == 1 {
        call.check("dest", dest, nelems);
        call.check("source", source, nelems);
        if !is_exclusive {
            // SAFETY: both have been checked.
            unsafe { copy(routine, dest.cast(), source.cast(), bytes_of::<T>(nelems)) };
        }
    } else if std::ptr::addr_eq(dest, source) {
        call.check("dest", dest, nelems);
        // Peers may still read a contribution when the first results are written, so they read a
        // copy.
        let mut own = vec![T::zeroed(); nelems];
        // SAFETY: symmetric memory that has been checked, and a copy of its size.
        unsafe { copy(routine, own.as_mut_ptr().cast(), source.cast(), bytes_of::<T>(nelems)) };
        let combined = if !call.takes_turns() {
            let (mut combined, root) = (own.clone(), Rank(0));
            let target = &mut combined;
            call.blocking(|team| team.slices(&own, target).any(collective, operator, root));
            Some(combined)
        } else {
            match collective {
                Collective::Scan => Some(call.by_turns(|team| team.start(own).scan(operator))),
                Collective::ExclusiveScan => {
                    call.by_turns(|team| team.start(own).exclusive_scan(operator))
                }
                _ => Some(call.by_turns(|team| team.start(own).all_reduce(operator))),
            }
        };
        if let Some(combined) = combined {
            let bytes = bytes_of::<T>(nelems);
            // SAFETY: as above.
            unsafe { copy(routine, dest.cast(), combined.as_ptr().cast(), bytes) };
        }
    } else {
        let places = (call.offset("source", source, nelems), call.offset("dest", dest, nelems));
        call.move_at::<T, O>(kind, Some(operator), places, nelems);
    }
    if is_exclusive && call.members.own() == 0 {
        // SAFETY: this PE's memory, which the call does not write here; zeros are a valid value.
        unsafe { dest.cast::<u8>().write_bytes(0, bytes_of::<T>(nelems)) };
    }
    0
}
