//! Runs a program on new threads, one for each PE; and the memory that PEs share, by the
//! environment.

use std::{env, thread};

use consort_native::{Failure, Origin};

use crate::{
    Error,
    pe::Ending,
    ranks::{Ranks, failed_by},
    results::{Failed, Program},
};

/// Starts one thread for each PE, and waits for all.
pub(crate) fn launch(ranks: &Ranks, program: &Program<'_>) -> Result<(), Failed> {
    let job = &ranks.job;
    thread::scope(|scope| {
        let (mut handles, mut errors) = (Vec::new(), Vec::new());
        for rank in ranks.all() {
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
