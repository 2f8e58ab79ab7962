//! Collectives on blocks of one length.

use std::ffi::{c_int, c_void};

use consort::{
    Team,
    bindings::named::{self, Number, works_in_place},
    tune::Collective,
};

use crate::{
    arguments::{Buffer, rank, slices},
    elements::{for_type, operator},
    status::{Fault, status_of},
    team::{TeamHandle, team_of},
};

/// The arguments of a call. The operator is ignored if nothing is combined, and the root if there
/// is none.
struct Call {
    team: *const TeamHandle,
    source: *const c_void,
    target: *mut c_void,
    /// The elements of a block.
    count: usize,
    datatype: c_int,
    operator: c_int,
    root: c_int,
}

/// [`Call::make_on`] for a type.
type MakesOn = unsafe fn(&Call, &Team, Collective) -> Result<(), Fault>;

impl Call {
    /// Makes the call.
    ///
    /// # Safety
    /// The team is null or valid. The buffers have the blocks that this PE uses. While the call
    /// runs, no other thread writes the source or accesses the target.
    unsafe fn make(&self, function: &str, collective: Collective) -> c_int {
        status_of(function, || {
            // SAFETY: guaranteed by the caller.
            let team = unsafe { team_of(self.team) }?;
            let make = for_type!(self.datatype, T => Ok(Self::make_on::<T> as MakesOn))?;
            // SAFETY: guaranteed by the caller.
            unsafe { make(self, team, collective) }
        })
    }

    /// # Safety
    /// As [`Self::make`].
    unsafe fn make_on<T: Number>(&self, team: &Team, collective: Collective) -> Result<(), Fault> {
        let Self { source, target, count, operator: op, root, .. } = *self;
        let operator = collective.combines().then(|| operator::<T>(op)).transpose()?;
        let pes = team.size();
        let root = rank("root", if collective.is_rooted() { root } else { 0 }, pes)?;
        let blocks_of = |blocks: u32| count.saturating_mul(blocks as usize);
        let is_root = team.rank() == root;
        let width = u32::try_from(pes).unwrap_or(u32::MAX);
        let given = blocks_of(collective.source_blocks(width, is_root));
        let received = blocks_of(collective.target_blocks(width, is_root));
        let is_in_place = std::ptr::addr_eq(source, target) && works_in_place(collective);
        if is_in_place {
            let data = Buffer { name: "target", at: target, len: given.max(received) };
            // SAFETY: guaranteed by the caller.
            let data = unsafe { data.slice_mut::<T>() }?;
            return Ok(named::collective(team, collective, operator, root, None, data)?);
        }
        let from = Buffer::read("source", source, given);
        let to = Buffer { name: "target", at: target, len: received };
        // SAFETY: guaranteed by the caller.
        let (from, to) = unsafe { slices::<T>(from, to) }?;
        Ok(named::collective(team, collective, operator, root, Some(from), to)?)
    }
}

/// Exports a collective whose function has these parameters after the team.
macro_rules! collective {
    ($function:ident, $collective:ident, $doc:literal, $($parameter:ident: $type:ty),*) => {
        #[doc = $doc]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            team: *const TeamHandle,
            source: *const c_void,
            target: *mut c_void,
            count: usize,
            datatype: c_int,
            $($parameter: $type),*
        ) -> c_int {
            let call = Call { team, source, target, count, datatype, operator: 0, root: 0 };
            let call = Call { $($parameter,)* ..call };
            // SAFETY: guaranteed by the caller.
            unsafe { call.make(stringify!($function), Collective::$collective) }
        }
    };
}

collective!(consort_reduce, Reduce, "Reduces to the root.", operator: c_int, root: c_int);
collective!(consort_all_reduce, AllReduce, "Reduces to all PEs.", operator: c_int);
collective!(consort_reduce_scatter, ReduceScatter, "Reduces to a block a PE.", operator: c_int);
collective!(consort_scan, Scan, "Combines PEs 0 to this one.", operator: c_int);
collective!(consort_exclusive_scan, ExclusiveScan, "Combines PEs before this.", operator: c_int);
collective!(consort_gather, Gather, "Gathers blocks on the root.", root: c_int);
collective!(consort_scatter, Scatter, "Scatters the root's blocks.", root: c_int);
collective!(consort_all_gather, AllGather, "Gathers blocks on all PEs.",);
collective!(consort_all_to_all, AllToAll, "Exchanges blocks of all PEs.",);

/// Broadcasts the root's data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_broadcast(
    team: *const TeamHandle,
    data: *mut c_void,
    count: usize,
    datatype: c_int,
    root: c_int,
) -> c_int {
    let call = Call { team, source: data, target: data, count, datatype, operator: 0, root };
    // SAFETY: guaranteed by the caller.
    unsafe { call.make("consort_broadcast", Collective::Broadcast) }
}
