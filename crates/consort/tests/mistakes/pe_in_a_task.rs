//! A PE in a task that may change threads.
//~ error[]: future cannot be sent between threads safely
//~ note: give PEs their own thread

use consort::{Job, Result, ops::Sum};

fn spawn(_: impl Future<Output = Result<u64>> + Send) {}

pub fn join_in_a_task(job: Job, mine: u64) {
    #[cfg(not(right))]
    spawn(async move {
        let pe = job.join()?;
        let sum = pe.world().start(vec![mine]).all_reduce(Sum)?;
        Ok(sum.await?[0])
    });
    #[cfg(right)]
    spawn(async move { job.run(|pe| pe.world().all_reduce(mine, Sum)) }); // blocks the thread
}
