//! What libraries for other languages and this project's tests need, but Rust programs do not.
//!
//! Only the feature `bindings` compiles this module. It promises no stability: any release may
//! change it.

pub mod named;
pub mod places;

use std::{any::Any, panic::Location, rc::Rc, sync::Arc};

use consort_fabric::{CallSpec, Collective, Pod, Rank, SyncModes};
use consort_native::Failure;

pub use consort_mpi::MpiProcess;
pub use consort_native::Origin;

pub use crate::builder::bindings::JobBuilderExt;
#[cfg(doc)]
use crate::error::TeamError;
use crate::{
    Job, JoinedPe, Pe, Result, Symmetric, Team,
    collectives::{combine::Nothing, verb::blank},
    nonblocking::{Request, buffers::Pair, shape::Shape},
    symmetric::element::Element,
};

/// Returns the launch, for one-sided operations.
#[must_use]
pub fn native(job: &Job) -> &Arc<consort_native::Job> {
    &job.0.job
}

/// Binds the PE to this process, whichever of its threads make calls: the job does not fail when
/// the calling thread ends. Moves that thread to the PE's core, if it has one. For languages in
/// which PEs are processes, whose launcher learns how they end.
///
/// # Safety
/// One thread at a time uses the PE and its handles, or drops them, and what it has done happens
/// before what the next one does.
#[expect(unsafe_code, reason = "declares requirements on threads")]
pub unsafe fn bind_to_process(joined: &JoinedPe) {
    joined.states().changes_threads.set(true);
    joined.leave_thread();
    joined.ranks.settle(joined.world().rank());
}

/// Returns a function that fails the job for a reason, from any thread, even while this PE waits in
/// a call. It does nothing once the job has ended. For languages in which another thread asks the
/// PE's thread to make calls, and may be interrupted.
pub fn failing(pe: &Pe) -> impl Fn(&str) + Send + Sync + use<> {
    let endpoint = &pe.state().endpoint;
    let (job, rank) = (Arc::downgrade(endpoint.job()), endpoint.rank_in_world());
    move |reason| {
        if let Some(job) = job.upgrade() {
            job.poison(&Failure::Pe { rank, reason: reason.to_owned() });
        }
    }
}

/// Calls `callback` now and then while this PE waits in a call, until the callback is dropped. The
/// callback must not make calls. For languages whose interpreters check for signals.
pub fn while_waiting(pe: &Pe, callback: &Rc<dyn Fn()>) {
    pe.state().endpoint.add_progress_callback(callback);
}

/// Returns an object that keeps the memory, also after the job has ended. Any thread may drop it.
/// It is for addresses ([`Symmetric::address`]).
#[must_use]
pub fn keep<T: Element>(memory: &Symmetric<T>) -> Arc<dyn Any + Send + Sync> {
    memory.block().clone()
}

/// Returns the team of these PEs with this colour, which all PEs form without further agreement;
/// `None` on a PE that is not among them.
///
/// # Errors
/// [`TeamError::Memory`].
pub fn form(team: &Team, color: u32, members: &[Rank]) -> Result<Option<Team>> {
    team.join(color, members)
}

/// Returns the team of `size` PEs of the job, `first`, `first + stride` and so on. They form it
/// without the other PEs, each once, and it lasts as long as the job; `None` on other PEs.
///
/// # Errors
/// [`TeamError::Memory`].
///
/// # Panics
/// When a member is not in the job, or this PE has formed the team before.
pub fn form_strided(team: &Team, first: Rank, stride: u32, size: u32) -> Result<Option<Team>> {
    let stride = i32::try_from(stride).expect("a team is of PEs of the job");
    let joined = team.state.endpoint.join_strided(first, stride, size);
    let part = joined.map_err(|reason| team.group_error(size as usize, &reason))?;
    Ok(part.map(|part| team.team_of(part)))
}

/// Frees a team, as [`Team::free`], if its PEs have agreed on that by other means.
///
/// # Errors
/// As [`Team::free`].
pub fn free_by_agreement(team: &Team) -> Result<()> {
    team.state.free()
}

/// Returns whether the next call ends a quarter of the window: the one after it may wait.
#[must_use]
pub fn is_before_turn(team: &Team) -> bool {
    let after = team.state.endpoint.calls() + 1;
    team.state.quarter_from(after, 0) == after
}

/// All-gathers `value`, in the order of the ranks, in a call of this name. Exit mode Mine: a PE
/// returns when it has all values.
///
/// # Errors
/// See [`Team`].
#[track_caller]
pub fn all_gather_named<T: Pod>(team: &Team, name: &str, value: T) -> Result<Vec<T>> {
    team.all_gather_named(name, value)
}

/// Starts the call of [`all_gather_named`].
///
/// # Errors
/// See [`Team`].
#[track_caller]
pub fn start_all_gather_named<T: Pod + Send>(
    team: &Team,
    name: &str,
    value: T,
) -> Result<Request<Vec<T>>> {
    let call = team.state.spec::<T, T>(Collective::AllGather, SyncModes::MINE, 1, None);
    let call = CallSpec { nonblocking: true, ..call };
    let ready = team.state.prepare_named(&call, name)?;
    let buffers = Pair::new(vec![value], blank(team.size()), Nothing);
    let shape = Shape::using([true; 2]);
    team.start_owned(ready, shape, buffers, |pair, _| pair.target, Location::caller())
}
