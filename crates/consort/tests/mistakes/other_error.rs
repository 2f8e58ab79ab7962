//! A program with an error of another library.
//~ error[E0277]: couldn't convert the error to `consort::Error`
//~ at: ?

use std::{fs, io};

use consort::Job;

pub fn bytes() -> io::Result<()> {
    #[cfg(not(right))]
    Job::threads(2).run(|pe| {
        let bytes = fs::read("sums.txt")?.len();
        pe.world().all_gather(bytes)
    })?;
    #[cfg(right)]
    Job::threads(2).try_run(|pe| {
        let bytes = fs::read("sums.txt")?.len();
        Ok::<_, io::Error>(pe.world().all_gather(bytes)?)
    })?;
    Ok(())
}
