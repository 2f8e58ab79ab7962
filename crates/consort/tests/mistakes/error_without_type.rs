//! A program with its own error type, which the compiler cannot infer.
//~ error[E0283]: type annotations needed
//~ at: Ok

use consort::{Job, Result};

pub fn meet(job: &Job) -> Result<()> {
    #[cfg(not(right))]
    job.try_run(|pe| {
        pe.world().barrier()?;
        Ok(())
    })?;
    #[cfg(right)]
    job.try_run(|pe| {
        pe.world().barrier()?;
        Ok::<_, consort::Error>(())
    })?;
    Ok(())
}
