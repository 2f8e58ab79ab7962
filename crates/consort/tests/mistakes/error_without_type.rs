//! A program on an existing thread, whose error could have any type.
//~ error[E0283]: type annotations needed
//~ at: Ok
//~ error[E0283]: type annotations needed
//~ at: Ok

use consort::{Job, Result};

pub fn meet(job: &Job) -> Result<()> {
    #[cfg(not(right))]
    job.run(|pe| {
        pe.world().barrier()?;
        Ok(())
    })?;
    #[cfg(right)]
    job.run(|pe| {
        pe.world().barrier()?;
        Ok::<_, consort::Error>(())
    })?;
    Ok(())
}
