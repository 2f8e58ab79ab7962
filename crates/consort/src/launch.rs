//! Runs a program on new threads, one for each PE.

use std::thread;

use consort_native::Failure;

use crate::{
    Error,
    ranks::{Ending, Ranks, failed_by},
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
            match thread::Builder::new().name(format!("PE {rank}")).spawn_scoped(scope, body) {
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
        if errors.is_empty() { Ok(()) } else { Err(ranks.first_cause(errors)) }
    })
}
