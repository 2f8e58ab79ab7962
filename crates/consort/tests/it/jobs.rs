//! Jobs, as most tests launch them.

use std::time::{Duration, Instant};

use consort::{Error, Job, JobBuilder, Result, Team};
use consort_conformance::turns::{LIMIT, alone};

/// How long a failure may take to reach all PEs on a busy machine. A PE that is not reached waits
/// forever.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Returns PEs with enough symmetric memory for most tests.
pub(crate) fn pes_of(pes: usize) -> JobBuilder {
    Job::threads(pes).heap_bytes(1 << 20)
}

/// Runs a program that succeeds, and returns its results by PE.
pub(crate) fn on<R: Send + 'static>(
    pes: JobBuilder,
    program: impl Fn(&Team) -> Result<R> + Send + Sync + 'static,
) -> Vec<R> {
    let all = alone(LIMIT, move || pes.run(|pe| program(pe.world())));
    all.expect("a job that goes well").into_vec()
}

/// Runs a program that must fail soon, and returns its error.
pub(crate) fn fails(
    pes: usize,
    program: impl Fn(&Team) -> Result<()> + Send + Sync + 'static,
) -> Error {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let outcome = pes_of(pes).run(|pe| program(pe.world()));
        assert!(since.elapsed() < SOON, "failed after {:?}", since.elapsed());
        outcome.expect_err("a job that must fail")
    })
}
