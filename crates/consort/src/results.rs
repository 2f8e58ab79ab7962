//! The inputs of the PEs, and their results.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use consort_fabric::Rank;
use consort_machine::discard;

use crate::{Error, Pe, Result};

/// A program as the PEs run it, compiled once for all programs. It stores results and errors, and
/// returns the text of an error.
pub(crate) type Program<'p> = dyn Fn(&Pe) -> Result<(), String> + Sync + 'p;

/// The reason why a run of a program failed.
pub(crate) struct Failed {
    /// The PE that failed first, if one did.
    pub(crate) culprit: Option<Rank>,
    /// The error, if the culprit's program has returned none.
    pub(crate) error: Error,
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the inputs, if there is one for each of `pes` PEs.
pub(crate) fn one_for_each<T>(pes: usize, inputs: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut inputs = inputs.into_iter();
    let given: Vec<T> = inputs.by_ref().take(pes).collect();
    if given.len() < pes {
        return Err(Error::Inputs { given: given.len(), pes });
    }
    match inputs.next() {
        None => Ok(given),
        Some(_) => Err(Error::Inputs { given: pes + 1, pes }),
    }
}

/// The input and the result of one PE.
struct Place<T, R, E> {
    input: Option<T>,
    result: Option<Result<R, E>>,
}

/// Runs `program` on a PE for each input by `run`, and collects the results by rank.
pub(crate) fn collect<T, R, E>(
    inputs: Vec<T>,
    program: impl Fn(&Pe, T) -> Result<R, E> + Sync,
    run: impl FnOnce(&Program<'_>) -> Result<(), Failed>,
) -> Result<Vec<(Rank, R)>, E>
where
    T: Send,
    R: Send,
    E: From<Error> + fmt::Display + Send,
{
    let mut run = Some(run);
    let run = &mut |program: &Program<'_>| run.take().expect("it is called once")(program);
    collect_by(inputs, &program, run)
}

/// Implements [`collect`]; compiled once for all programs that return the same type.
fn collect_by<T, R, E>(
    inputs: Vec<T>,
    program: &(dyn Fn(&Pe, T) -> Result<R, E> + Sync),
    run: &mut dyn FnMut(&Program<'_>) -> Result<(), Failed>,
) -> Result<Vec<(Rank, R)>, E>
where
    T: Send,
    R: Send,
    E: From<Error> + fmt::Display + Send,
{
    let place = |input| Mutex::new(Place { input: Some(input), result: None });
    let places: Vec<_> = inputs.into_iter().map(place).collect();
    let ended = run(&|pe| {
        let place = &places[pe.world().rank().index()];
        let input = lock(place).input.take().expect("a PE runs a program once");
        let result = program(pe, input);
        let ended = result.as_ref().map(drop).map_err(E::to_string);
        lock(place).result = Some(result);
        ended
    });
    let places = places.into_iter();
    let mut results = places.map(|place| {
        let place = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        discard(place.input);
        place.result
    });
    match ended {
        Ok(()) => {
            // PEs in other processes have no result here.
            let results = (0..).map(Rank).zip(results);
            results
                .filter_map(|(rank, result)| Some(result?.map(|result| (rank, result))))
                .collect()
        }
        Err(Failed { culprit, error }) => {
            // Each is dropped separately: if one panics, the others are dropped all the same.
            let mut own = None;
            for rank in 0.. {
                match results.next() {
                    None => break,
                    Some(Some(Err(error))) if culprit == Some(Rank(rank)) => own = Some(error),
                    Some(other) => discard(other),
                }
            }
            Err(own.unwrap_or_else(|| error.into()))
        }
    }
}
