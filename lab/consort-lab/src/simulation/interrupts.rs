//! Lets one core interrupt many: the experiment of Petrović 2015, section 3.3.4.

use anyhow::{Result, ensure};
use consort::Rank;
use consort_fabric::{Notification, Notifications, Then};
use consort_sim::{Pe, Simulation};

/// Makes core 0 interrupt the first `cores` cores at once, including itself. Returns the time until
/// each of them has its interrupt, in nanoseconds.
///
/// # Errors
/// When the machine has fewer cores.
pub fn interrupts_ns(simulation: &Simulation, cores: u32) -> Result<Vec<f64>> {
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let (listener, from) = (pe.listener(), Rank(0));
        let began_ns = pe.now_ns();
        if pe.rank() == from {
            let then = Then::Nothing;
            let notification =
                Notification { from, number: 1, source: from, message: 0, at: 0, bytes: 0, then };
            let to: Vec<Rank> = (0..cores).map(Rank).collect();
            listener.notify(&to, notification).await.ok()?;
        }
        if pe.rank().0 >= cores {
            return None;
        }
        listener.wait(None).await.ok()?;
        Some(pe.now_ns() - began_ns)
    })?;
    let times: Vec<f64> = outcome.results.into_iter().flatten().collect();
    ensure!(times.len() == cores as usize, "the machine does not have {cores} cores to interrupt");
    Ok(times)
}
