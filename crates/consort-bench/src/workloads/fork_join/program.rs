//! The programs by name, and the check of their results.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    decode::{Decode, Model},
    empty::Empty,
    graph::Graph,
    nbody::Nbody,
    parts::RegionProgram,
    tick::Tick,
};
use crate::peers::fork_join::{ForkJoin, serial};

/// The iterations whose results are compared with those of one thread.
const CHECKED: u32 = 2;

consort_fabric::named_enum! {
    /// A program made of parallel regions, by name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
    pub enum ForkJoinProgram {
        /// Empty regions.
        Empty = "empty",
        /// Gravity between 128 bodies: two regions an iteration.
        Nbody = "nbody",
        /// Bursts of short jobs with serial work between them, and sleep.
        Tick = "tick",
        /// A token of a small language model: 150 matrix-vector products.
        Decode = "decode",
        /// The same with the layers of a large model.
        DecodeLarge = "decode-large",
        /// 300 tiny operations with barriers between them.
        Graph = "graph",
    }
}

impl ForkJoinProgram {
    /// Returns one iteration in words.
    pub(super) const fn iteration(self) -> &'static str {
        match self {
            Self::Empty => "an empty region; a sample is the mean of 16 in a row",
            Self::Nbody => "128 bodies, two regions",
            Self::Tick => "12 bursts of 16 jobs, serial work between them, without the sleep",
            Self::Decode => "a token of a small model, 150 regions",
            Self::DecodeLarge => "a token of a large model, 150 regions",
            Self::Graph => "300 tiny operations with barriers between them",
        }
    }

    /// Returns the number of iterations whose mean is a sample: a few, if reading the clock would
    /// take a good part of one.
    pub(super) const fn iterations_a_sample(self) -> u32 {
        if matches!(self, Self::Empty) { 16 } else { 1 }
    }

    /// Creates the program for at most this many threads.
    pub(super) fn create(self, threads: usize) -> Box<dyn RegionProgram> {
        match self {
            Self::Empty => Box::new(Empty::new(threads)),
            Self::Nbody => Box::new(Nbody::new()),
            Self::Tick => Box::new(Tick::new()),
            Self::Decode => Box::new(Decode::new(Model::SMALL)),
            Self::DecodeLarge => Box::new(Decode::new(Model::LARGE)),
            Self::Graph => Box::new(Graph::new()),
        }
    }
}

/// Compares the results of some iterations with those of one thread.
///
/// # Errors
/// If they differ, or the library reports an error.
pub(super) fn check(program: &mut dyn RegionProgram, threads: &mut dyn ForkJoin) -> Result<()> {
    let mut results = |threads: &mut dyn ForkJoin| {
        program.restart();
        (0..CHECKED).try_for_each(|_| program.iterate(threads))?;
        anyhow::Ok(program.results())
    };
    let expected = results(&mut *serial())?;
    ensure!(results(threads)? == expected, "the results differ from those of one thread");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::fork_join::{Part, with_each};

    /// Every program but the one that is large has the same results with each library.
    #[test]
    fn programs_have_the_results_of_one_thread() {
        with_each(2, |name, threads| {
            for program in ForkJoinProgram::EVERY {
                if program != ForkJoinProgram::DecodeLarge {
                    let checked = check(&mut *program.create(2), threads);
                    checked.unwrap_or_else(|why| panic!("{program:?} with {name}: {why}"));
                }
            }
        });
    }

    /// A library that forgets its last rank.
    struct Forgetful;

    #[expect(unsafe_code, reason = "a library that breaks its promise harmlessly")]
    // SAFETY: one thread makes all calls, and the ranks that it forgets only leave old values.
    unsafe impl ForkJoin for Forgetful {
        fn threads(&self) -> usize {
            3
        }

        fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
            (0..steps).for_each(|step| (0..2).for_each(|rank| part(step, rank)));
            Ok(())
        }
    }

    #[test]
    fn wrong_results_are_reported() {
        // The jobs of a tick go to whichever ranks there are.
        for program in [
            ForkJoinProgram::Empty,
            ForkJoinProgram::Nbody,
            ForkJoinProgram::Decode,
            ForkJoinProgram::Graph,
        ] {
            let why = check(&mut *program.create(3), &mut Forgetful).unwrap_err().to_string();
            assert_eq!(why, "the results differ from those of one thread", "{program:?}");
        }
    }
}
