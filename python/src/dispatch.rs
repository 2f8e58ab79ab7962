//! Finds the PE for a call: that of the calling thread, or one that its thread lends.

use consort::Team;
use pyo3::prelude::*;

use crate::{
    errors::{Error, exception},
    lent,
    running::{Dropped, Running, own},
};

/// Calls `access` with the PE of this launch, if this thread may run it, with the interpreter's lock
/// released.
///
/// # Errors
/// If the thread may not run it, and those that end a call early ([`lent::with`]).
pub(crate) fn with<R: Send>(
    py: Python<'_>,
    launch: u64,
    access: impl FnOnce(&Running) -> R + Send,
) -> PyResult<R> {
    py.detach(|| match own(launch) {
        Some(running) => Ok(access(&running)),
        None => lent::with(launch, access).unwrap_or_else(|| {
            Err(Error::new_err(
                "only a PE's thread may use the PE's teams, requests and symmetric memory, and not \
                 after launch() or attach() has returned",
            ))
        }),
    })
}

/// Makes a call of a team, with the interpreter's lock released.
///
/// # Errors
/// Those of [`with`], and those of the call.
pub(crate) fn call<R: Send>(
    py: Python<'_>,
    launch: u64,
    team: usize,
    make: impl FnOnce(&Team, &Running) -> consort::Result<R> + Send,
) -> PyResult<R> {
    let made = with(py, launch, |running| {
        let team = running.teams.borrow()[team].clone();
        make(&team, running)
    });
    made?.map_err(|error| exception(&error))
}

/// Drops an entry of the PE of this launch, now or before its next call. A started call continues.
/// A thread that may not run the PE has nothing to drop.
pub(crate) fn forget(launch: u64, dropped: Dropped) {
    match own(launch) {
        Some(running) => dropped.drop_in(&running),
        None => lent::drop_later(launch, dropped),
    }
}
