//! The inputs of the PEs, and their results.

use std::{
    fmt,
    ops::Index,
    slice,
    sync::{Mutex, MutexGuard, PoisonError},
    vec,
};

use consort_fabric::Rank;
use consort_machine::discard;

use crate::{Error, Pe, Result, error::LaunchError};

/// The results of a program, one for each PE that ran in this process, in the order of the ranks.
///
/// It is indexed by rank. Iteration yields the results, and [`Results::ranked`] the ranks, too. If
/// the PEs are threads, all results are here. In a job of processes, each process holds the results
/// of its PEs.
///
/// ```
/// use consort::{Job, Rank, ops::Sum};
///
/// let sums = Job::threads(3).run(|pe| pe.world().scan(10, Sum))?;
/// assert_eq!(sums, [10, 20, 30]);
/// assert_eq!((sums[2], sums[Rank(2)]), (30, 30));
/// for (rank, sum) in sums.ranked() {
///     println!("PE {rank} has {sum}");
/// }
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Results<R> {
    /// The PEs of this process, in order; `None` if they are the first ones.
    ranks: Option<Vec<Rank>>,
    /// The result of each of them.
    values: Vec<R>,
}

impl<R> Results<R> {
    /// Creates the results of a job whose PEs have all run in this process.
    pub(crate) fn of_all(values: Vec<R>) -> Self {
        Self { ranks: None, values }
    }

    /// Returns the result of a PE; `None` if it did not run in this process.
    #[must_use]
    pub fn get(&self, rank: Rank) -> Option<&R> {
        match &self.ranks {
            Some(ranks) => ranks.binary_search(&rank).ok().map(|at| &self.values[at]),
            None => self.values.get(rank.index()),
        }
    }

    /// Returns the PEs of this process, in order.
    fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + use<R> {
        let ranks = self.ranks.clone();
        (0..self.values.len())
            .map(move |at| ranks.as_ref().map_or(Rank::new(at), |ranks| ranks[at]))
    }

    /// Returns the results in the order of the ranks.
    pub fn iter(&self) -> slice::Iter<'_, R> {
        self.values.iter()
    }

    /// Returns the results in the order of the ranks, each with its PE's rank.
    pub fn ranked(&self) -> impl ExactSizeIterator<Item = (Rank, &R)> {
        self.ranks().zip(&self.values)
    }

    /// As [`Results::ranked`], for results that are moved out.
    pub fn into_ranked(self) -> impl ExactSizeIterator<Item = (Rank, R)> {
        self.ranks().zip(self.values)
    }

    /// Returns the results in the order of the ranks.
    #[must_use]
    pub fn into_vec(self) -> Vec<R> {
        self.values
    }

    /// Returns the number of results: the number of PEs in this process.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no results; a process that runs no PE has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// # Panics
/// When the PE did not run in this process.
impl<R> Index<Rank> for Results<R> {
    type Output = R;

    #[track_caller]
    fn index(&self, rank: Rank) -> &R {
        self.get(rank).unwrap_or_else(|| panic!("no result of PE {rank}: it did not run here"))
    }
}

/// # Panics
/// When the PE of this rank did not run in this process.
impl<R> Index<usize> for Results<R> {
    type Output = R;

    #[track_caller]
    fn index(&self, rank: usize) -> &R {
        &self[Rank::new(rank)]
    }
}

impl<R> IntoIterator for Results<R> {
    type Item = R;
    type IntoIter = vec::IntoIter<R>;

    fn into_iter(self) -> vec::IntoIter<R> {
        self.values.into_iter()
    }
}

impl<'r, R> IntoIterator for &'r Results<R> {
    type Item = &'r R;
    type IntoIter = slice::Iter<'r, R>;

    fn into_iter(self) -> slice::Iter<'r, R> {
        self.iter()
    }
}

/// Compares the results, without their ranks.
impl<R: PartialEq<S>, S, const N: usize> PartialEq<[S; N]> for Results<R> {
    fn eq(&self, others: &[S; N]) -> bool {
        self.values == *others
    }
}

/// Compares the results, without their ranks.
impl<R: PartialEq<S>, S> PartialEq<Vec<S>> for Results<R> {
    fn eq(&self, others: &Vec<S>) -> bool {
        self.values == *others
    }
}

/// As a list of the results, or as a map from ranks to results if some PEs did not run here.
impl<R: fmt::Debug> fmt::Debug for Results<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ranks.is_none() {
            return self.values.fmt(f);
        }
        f.debug_map().entries(self.ranked()).finish()
    }
}

/// A program as the PEs run it, compiled once for all programs. It stores results and errors, and
/// returns the text of an error.
pub(crate) type Program<'p> = dyn Fn(&Pe) -> Result<(), String> + Sync + 'p;

/// The reason why a run of a program failed.
pub(crate) struct Failed {
    /// The PE that failed first, if one did.
    pub(crate) culprit: Option<Rank>,
    /// The error, for a culprit whose program has returned no error.
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
        return Err(LaunchError::InputCount { given: given.len(), pes }.into());
    }
    match inputs.next() {
        None => Ok(given),
        Some(_) => Err(LaunchError::InputCount { given: pes + 1, pes }.into()),
    }
}

/// The input and the result of one PE, on separate lines.
#[repr(align(128))]
struct Place<T, R, E> {
    input: Option<T>,
    result: Option<Result<R, E>>,
}

/// Runs `program` on a PE for each input by `run`, and collects the results by rank.
pub(crate) fn collect<T, R, E>(
    inputs: Vec<T>,
    program: impl Fn(&Pe, T) -> Result<R, E> + Sync,
    run: impl FnOnce(&Program<'_>) -> Result<(), Failed>,
) -> Result<Results<R>, E>
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
) -> Result<Results<R>, E>
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
    let results = places.into_iter().map(|place| {
        let place = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        discard(place.input);
        place.result.map(|result| result.map_err(Box::new))
    });
    results_of(ended, results)
}

/// Returns the results of a run that has `ended`, from those of each PE.
pub(crate) fn results_of<R, E: From<Error>>(
    ended: Result<(), Failed>,
    mut results: impl Iterator<Item = Option<Result<R, Box<E>>>>,
) -> Result<Results<R>, E> {
    match ended {
        Ok(()) => {
            // PEs in other processes have no result here.
            let (mut ranks, mut values) = (None, Vec::with_capacity(results.size_hint().0));
            for (rank, result) in (0..).map(Rank).zip(results) {
                let Some(result) = result else {
                    ranks.get_or_insert_with(|| (0..rank.0).map(Rank).collect::<Vec<_>>());
                    continue;
                };
                if let Some(ranks) = &mut ranks {
                    ranks.push(rank);
                }
                values.push(result.map_err(|error| *error)?);
            }
            let are_first =
                |ranks: &Vec<Rank>| ranks.last().is_none_or(|last| last.index() < ranks.len());
            Ok(Results { ranks: ranks.filter(|ranks| !are_first(ranks)), values })
        }
        Err(Failed { culprit, error }) => {
            // Each is dropped separately: if one panics, the others are dropped all the same.
            let mut own = None;
            for rank in 0.. {
                match results.next() {
                    None => break,
                    Some(Some(Err(error))) if culprit == Some(Rank(rank)) => own = Some(*error),
                    Some(other) => discard(other),
                }
            }
            Err(own.unwrap_or_else(|| error.into()))
        }
    }
}

#[test]
fn results_of_some_pes_are_found_by_rank() {
    let of = |ranks: [u32; 2]| {
        let of_rank =
            |rank| ranks.contains(&rank).then_some(if rank == ranks[0] { 'b' } else { 'd' });
        results_of::<_, Error>(Ok(()), (0..5).map(|rank| of_rank(rank).map(Ok))).unwrap()
    };
    let results = of([1, 3]);
    assert_eq!((results[1], results[Rank(3)], results.len()), ('b', 'd', 2));
    assert_eq!([0, 2, 4].map(|rank| results.get(Rank(rank))), [None; 3]);
    assert_eq!(format!("{results:?}"), "{Rank(1): 'b', Rank(3): 'd'}");
    assert_eq!(format!("{:?}", of([0, 1])), "['b', 'd']");
    assert_eq!(results, ['b', 'd']);
    assert_ne!(results, of([0, 1]));
    assert!(results.into_ranked().eq([(Rank(1), 'b'), (Rank(3), 'd')]));
}
