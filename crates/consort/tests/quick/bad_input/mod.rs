//! Mistakes of callers: every PE soon gets a clear error. No mistake is ignored, and no PE hangs.

mod arguments;
mod forcing;
mod mismatches;
mod places;
mod reentrance;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use consort::{JobBuilder, Team};
use consort_conformance::turns::alone;

use crate::jobs::SOON;

/// Runs a program and returns each PE's result, even if the job has failed; it may take a second.
fn on<R: Debug + Send + 'static>(
    pes: JobBuilder,
    program: impl Fn(&Team) -> R + Send + Sync + 'static,
) -> Vec<R> {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let (got, size) = (Mutex::new(BTreeMap::new()), AtomicUsize::new(usize::MAX));
        let ended = pes.run(|pe| {
            size.store(pe.world().size(), Relaxed);
            let result = program(pe.world());
            got.lock().expect("no panic").insert(pe.world().rank(), result);
            Ok(())
        });
        assert!(since.elapsed() < SOON, "took {:?}", since.elapsed());
        let got = got.into_inner().expect("no panic");
        assert_eq!(got.len(), size.into_inner(), "a PE has panicked: {ended:?}");
        got.into_values().collect()
    })
}
