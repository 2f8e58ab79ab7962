//! What callers get wrong: always a clear error, on every PE, soon; never silence or a hang.

mod arguments;
mod forcing;
mod mismatches;
mod places;
mod reentrance;

use std::{fmt::Debug, time::Instant};

use consort::{Pes, Team};
use consort_conformance::turns::alone;

use crate::jobs::SOON;

/// Runs a program and returns what each PE got; it may take a second.
fn on<R: Debug + Send + 'static>(
    pes: Pes,
    program: impl Fn(Team<'_>) -> R + Send + Sync + 'static,
) -> Vec<R> {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let all = pes.run(|pe| Ok(program(pe.world()))).expect("errors are results here");
        assert!(since.elapsed() < SOON, "took {:?}", since.elapsed());
        all.into_iter().map(|(_, result)| result).collect()
    })
}
