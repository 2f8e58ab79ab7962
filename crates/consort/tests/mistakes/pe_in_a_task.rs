//! A PE in a task that may change threads.
//~ error[]: future cannot be sent between threads safely
//~ note: give PEs their own thread

use consort::{Job, Result, ops::Sum};

fn spawn(_: impl Future<Output = Result<u64>> + Send) {}

pub fn sum_in_a_task(job: Job, number: impl Future<Output = u64> + Send) {
    #[cfg(not(right))]
    spawn(async move {
        let pe = job.join()?;
        pe.world().all_reduce(number.await, Sum)
    });
    #[cfg(right)]
    spawn(async move {
        let number = number.await;
        job.run(|pe| pe.world().all_reduce(number, Sum)) // joins and leaves on one thread
    });
}
