//! When a PE fails, all others get an error within a second, wherever they wait.

mod afterwards;
mod finishing;
mod in_calls;
mod operators;

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use consort::{
    Error, JobBuilder, Pe, Rank, Result, Team,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_collectives::{Setting, serves};
use consort_fabric::{OperatorClass, Query};

use crate::{
    data::{count, source_blocks, target_blocks},
    jobs::SOON,
    typed,
};

/// The limit on the calls of a PE before it must get the error: several windows.
const CALLS: usize = 200;

/// The error that a PE got, and the time.
type Errors = Mutex<Vec<(Rank, Error, Instant)>>;

/// The time when the victim failed.
#[derive(Default)]
struct Moment(Mutex<Option<Instant>>);

impl Moment {
    fn is_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Runs a program that fails on `victim`, which records the time, and checks the errors that all
/// others must get. Returns the job's error.
fn fails<R: Send>(
    pes: JobBuilder,
    count: usize,
    victim: Rank,
    program: impl Fn(&Pe, &Moment) -> Result<R> + Sync,
) -> Error {
    let (errors, moment) = (Errors::default(), Moment::default());
    let error = pes
        .run(|pe| {
            let result = program(pe, &moment);
            if let Err(error) = &result {
                let entry = (pe.world().rank(), error.clone(), Instant::now());
                errors.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
            }
            result
        })
        .err()
        .expect("a job whose PE fails, fails");
    let failed = moment.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = failed.expect("the victim notes when it fails");
    let mut errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    errors.retain(|(rank, ..)| *rank != victim);
    assert_eq!(errors.len(), count - 1, "some PE got no error");
    for (rank, error, when) in errors {
        let named = matches!(&error, Error::PeFailed { rank, .. } if *rank == victim);
        assert!(named, "PE {rank} got {error}, not that PE {victim} failed");
        let after = when.saturating_duration_since(failed);
        assert!(after < SOON, "PE {rank} got its error after {after:?}");
    }
    error
}

/// Makes calls until one returns an error.
fn call_on<R>(mut call: impl FnMut() -> Result<R>) -> Result<()> {
    for _ in 0..CALLS {
        call()?;
    }
    panic!("{CALLS} calls without the PE that failed");
}

/// Makes one call of `collective`, on symmetric buffers if the modes let PEs leave early.
fn call(world: &Team, collective: Collective, words: usize, sync: SyncModes) -> Result<()> {
    let root = Rank(1);
    let team = world.with_sync(sync);
    let is_root = world.rank() == root;
    let source = vec![1_u64; source_blocks(collective, world.size(), is_root) * words];
    let mut target = vec![0; target_blocks(collective, world.size(), is_root) * words];
    typed::slices(&team, collective, &source, &mut target, Sum, root)
}

/// Returns the fewest and the most words that an algorithm serves: the most take several steps.
fn few_and_many_words(collective: Collective, candidate: &Candidate, pes: usize) -> [usize; 2] {
    let pes = count(pes);
    let is_served = |words: &usize| {
        let query = Query {
            collective,
            sync: SyncModes::MINE,
            pes,
            bytes: 8 * *words as u64,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        serves(&Setting::of(&query, consort_native::Job::capabilities_of(pes)), candidate)
    };
    let served: Vec<usize> = [1, 12, 100, 2500].into_iter().filter(is_served).collect();
    [*served.first().expect("one of them"), *served.last().expect("one of them")]
}
