//! Threads that share the team of one PE, instead of being PEs themselves.
//~ error[E0277]: a PE and its handles stay on their thread
//~ at: || team.barrier()
//~ label: on another thread
//~ note: join as PEs (`Job::join`)

use std::thread;

use consort::{Job, Result, Team};

pub fn barriers(job: &Job, team: &Team) {
    thread::scope(|scope| {
        #[cfg(not(right))]
        scope.spawn(|| team.barrier());
        #[cfg(right)]
        scope.spawn(|| job.run(|pe| pe.world().barrier()));
    });
}
