//! Runs a program on new threads, one for each PE, or on the PE that this process is; and what the
//! environment says of PEs and of the memory that they share.

use std::{env, thread};

use consort_fabric::Rank;
use consort_native::{Failure, Origin};

use crate::{
    Error,
    pe::Ending,
    ranks::{Ranks, failed_by},
    results::{Failed, Program},
};

/// Runs a program on all PEs, and waits until it has ended on all.
pub(crate) fn launch(ranks: &Ranks, program: &Program<'_>) -> Result<(), Failed> {
    match ranks.job.own() {
        Some(rank) => run_own(ranks, rank, program),
        None => run_threads(ranks, program),
    }
}

/// Runs it on the PE that this process is.
fn run_own(ranks: &Ranks, rank: Rank, program: &Program<'_>) -> Result<(), Failed> {
    ranks.settle(rank);
    match ranks.run(rank, program, Ending::Checks) {
        Err(error) => Err(ranks.first_cause(vec![(rank, error)])),
        Ok(_) if ranks.job.is_poisoned() => Err(ranks.first_cause(Vec::new())),
        Ok(_) => {
            ranks.job.end();
            ranks.job.await_end();
            if ranks.job.is_poisoned() { Err(ranks.first_cause(Vec::new())) } else { Ok(()) }
        }
    }
}

/// Starts one thread for each PE.
fn run_threads(ranks: &Ranks, program: &Program<'_>) -> Result<(), Failed> {
    let job = &ranks.job;
    thread::scope(|scope| {
        let (mut handles, mut errors) = (Vec::new(), Vec::new());
        for rank in ranks.here() {
            let body = move || {
                ranks.settle(rank);
                ranks.run(rank, program, Ending::Checks)
            };
            let name = job.config().thread_name(rank);
            match thread::Builder::new().name(name).spawn_scoped(scope, body) {
                Ok(handle) => handles.push((rank, handle)),
                Err(error) => {
                    let reason = error.to_string();
                    let failure = format!("did not start: {reason}");
                    job.poison(&Failure::Pe { rank, reason: failure });
                    errors.push((rank, Error::Thread { rank, reason }));
                    break;
                }
            }
        }
        for (rank, handle) in handles {
            let ended = handle.join().unwrap_or_else(|panic| Err(failed_by(job, rank, panic)));
            errors.extend(ended.err().map(|error| (rank, error)));
        }
        // A program may have ignored the error of its last call.
        let is_sound = errors.is_empty() && !job.is_poisoned();
        if is_sound { Ok(()) } else { Err(ranks.first_cause(errors)) }
    })
}

/// The environment variable that selects the origin of the memory that PEs share.
const SEGMENT: &str = "CONSORT_SEGMENT";

/// The origin that `CONSORT_SEGMENT` gives; memory of this process if it is not set.
pub(crate) fn memory_of_environment() -> Result<Origin, Error> {
    match env::var(SEGMENT) {
        Ok(text) => text.parse().map_err(Error::Segment),
        Err(_) => Ok(Origin::Private),
    }
}

/// The environment variable that gives the number of PEs.
const PES: &str = "CONSORT_PES";

/// The number of PEs that `CONSORT_PES` gives, if it is set.
pub(crate) fn pes_of_environment() -> Result<Option<u32>, Error> {
    let Ok(text) = env::var(PES) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| Error::Pes(text))
}
