//! Measures kinds of work in turn: first all of them for a short time, then the best of each group
//! for longer.

use std::time::Duration;

use anyhow::Result;
use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Candidate, Collective, Query},
};
use consort_tuner::Catalog;

use super::experiment::Experiment;
use consort_bench::{
    harness::{Conditions, Mode, Rounds, Session, Work, samples},
    query_json::sums,
};

/// The number of candidates of each group that are measured again.
const FINALISTS: usize = 3;
/// A choice within this ratio of the best counts as equally good: medians on shared machines vary
/// by more.
pub(super) const EQUAL_WITHIN: f64 = 1.02;

/// The strictest modes of calls in a row: one barrier separates two calls, as in the papers.
pub(super) const ONE_BARRIER: SyncModes = SyncModes { entry: SyncMode::None, exit: SyncMode::All };

/// Returns the paper's name of the modes of calls in a row.
pub(super) fn mode_name(sync: SyncModes) -> &'static str {
    assert!([ONE_BARRIER, SyncModes::LOOSE].contains(&sync), "the papers have no mode {sync}");
    if sync == ONE_BARRIER { "strict" } else { "loose" }
}

/// The best of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub(super) work: Work,
    pub(super) ns: f64,
}

impl Best {
    /// Returns the algorithm.
    pub(super) fn name(&self) -> String {
        self.work.candidate().map(|(_, candidate)| candidate.to_string()).unwrap_or_default()
    }
}

/// Two ways of making a call of the same size, each with its best candidate.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) one: Best,
    pub(super) other: Best,
}

impl Pair {
    /// Returns the time of `one` as a multiple of the time of `other`.
    pub(super) fn ratio(&self) -> f64 {
        self.one.ns / self.other.ns
    }

    /// Returns the number of bytes in a block.
    pub(super) fn bytes(&self) -> u64 {
        self.one.work.bytes() as u64
    }
}

/// Returns the size from which the ratio always `wins`, or `None` if it does not at the largest
/// size.
pub(super) fn crossover(pairs: &[Pair], wins: impl Fn(f64) -> bool) -> Option<u64> {
    let won = pairs.iter().rev().take_while(|pair| wins(pair.ratio()));
    won.last().map(Pair::bytes)
}

/// Returns a reduction of doubles in symmetric memory, so that the modes may be Loose.
pub(super) fn reduce(sync: SyncModes, pes: u32, bytes: usize) -> Query {
    sums(Collective::Reduce, sync, pes, bytes, true)
}

/// Returns a broadcast to private slices.
pub(super) fn broadcast(pes: u32, bytes: usize) -> Query {
    sums(Collective::Broadcast, SyncModes::MINE, pes, bytes, false)
}

/// Returns a barrier.
pub(super) fn barrier(pes: u32) -> Query {
    sums(Collective::Barrier, SyncModes::STRICT, pes, 0, false)
}

/// Returns the model's finalists among the algorithms whose names `fit`, each with its best
/// parameters. With few PEs, many values of a radix give the same tree.
pub(super) fn likely(query: &Query, fit: impl Fn(&str) -> bool) -> Vec<Work> {
    let form = |candidate: &Candidate| vec![candidate.algorithm.clone()];
    let fit = |candidate: &Candidate| fit(&candidate.algorithm);
    likely_of(Algorithms::here(), query, fit, form)
}

/// Returns the model's finalists among the algorithms' candidates that `fit`, the best of each
/// form.
pub(super) fn likely_of(
    algorithms: &Algorithms,
    query: &Query,
    fit: impl Fn(&Candidate) -> bool,
    form: impl Fn(&Candidate) -> Vec<String>,
) -> Vec<Work> {
    let finalists = finalists(algorithms, query, fit, form);
    finalists.iter().map(|candidate| Work::of(query, candidate)).collect()
}

/// Returns the same for any machine, as candidates.
pub(super) fn finalists(
    algorithms: &impl Catalog,
    query: &Query,
    fit: impl Fn(&Candidate) -> bool,
    form: impl Fn(&Candidate) -> Vec<String>,
) -> Vec<Candidate> {
    let cost = |candidate: &Candidate| algorithms.estimate_ns(query, candidate);
    let mut candidates = algorithms.candidates(query);
    candidates.retain(fit);
    candidates.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
    let mut likely: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if likely.iter().all(|other| form(other) != form(&candidate)) {
            likely.push(candidate);
        }
    }
    likely.truncate(FINALISTS);
    likely
}

/// The radices of the paper's trees (Nishtala and Yelick 2009, table 2).
pub(super) const RADICES: [u64; 5] = [1, 2, 4, 8, 16];

/// Returns the radices of the trees for this many PEs that differ from each other and from the flat
/// tree.
pub(super) fn radices(pes: u32) -> impl Iterator<Item = u64> {
    RADICES.into_iter().filter(move |&radix| radix < u64::from(pes) || radix == 1)
}

/// Returns the flat tree.
pub(super) fn flat() -> Candidate {
    Candidate::new("flat")
}

/// How data moves from a PE to the PE that combines it, in trees and in the flat reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The combining PE reads the data in place, as in the paper (section 4): a child signals,
    /// "allowing the parent to accumulate the data from all its children".
    Read,
    /// The data is sent as messages.
    Sent,
}

impl Way {
    /// Both ways, the paper's first.
    pub(super) const EVERY: [Self; 2] = [Self::Read, Self::Sent];

    /// Returns the algorithm of the trees.
    pub(super) fn tree_name(self) -> &'static str {
        match self {
            Self::Read => "knomial_get",
            Self::Sent => "knomial",
        }
    }

    /// Returns the algorithms of the flat reduction and of the trees, for the name of a figure.
    pub(super) fn names(self) -> &'static str {
        match self {
            Self::Read => "direct and knomial_get",
            Self::Sent => "flat and knomial",
        }
    }

    /// Returns the tree of a radix.
    pub(super) fn tree(self, radix: u64) -> Candidate {
        let tree = Candidate::new(self.tree_name()).with("radix", radix);
        match self {
            Self::Read => tree.with("largest_first", 1),
            Self::Sent => tree,
        }
    }

    /// Returns the trees for this many PEs that differ from each other and from the flat tree.
    pub(super) fn trees(self, pes: u32) -> Vec<Candidate> {
        radices(pes).map(|radix| self.tree(radix)).collect()
    }

    /// Returns the flat reduction.
    pub(super) fn flat(self) -> Candidate {
        match self {
            Self::Read => Candidate::new("direct").with("block_bytes", 16384),
            Self::Sent => flat(),
        }
    }
}

impl Experiment<'_> {
    /// Returns the medians of calls in a row, in nanoseconds, or `None` for work that cannot be
    /// done here. If all work has blocks of one transfer class, the medians are those of that
    /// class.
    pub(super) fn medians(
        &self,
        pes: u32,
        work: &[Work],
        budget: Duration,
    ) -> Result<Vec<Option<f64>>> {
        let rounds = Rounds {
            session: Session {
                fabric: self.fabric,
                pes,
                waiting: None,
                work: work.to_vec(),
                mode: Mode::Throughput,
                budget,
            },
            conditions: Conditions::default(),
            limits: &[],
            sizes_bytes: &[],
            stop: self.stop,
        };
        let collected = rounds.run(|share| {
            (self.show)(share);
            true
        })?;
        let samples = samples(&collected.timings).into_iter();
        Ok(samples.map(|sample| sample.map(|sample| sample.median_ns)).collect())
    }

    /// Returns the best of each group, or `None` if no work of a group can be done here.
    pub(super) fn best(
        &self,
        pes: u32,
        groups: &[Vec<Work>],
        budget: Duration,
    ) -> Result<Vec<Option<Best>>> {
        if groups.iter().all(|group| group.len() <= FINALISTS) {
            return self.best_finalists(pes, groups, budget);
        }
        let all: Vec<Work> = groups.iter().flatten().cloned().collect();
        let first = self.medians(pes, &all, budget / 3)?;
        let mut first = first.into_iter();
        let finalists: Vec<Vec<Work>> = groups
            .iter()
            .map(|group| {
                let mut ranked: Vec<(f64, &Work)> =
                    group.iter().filter_map(|work| Some((first.next().flatten()?, work))).collect();
                ranked.sort_by(|(one, _), (other, _)| one.total_cmp(other));
                ranked.iter().take(FINALISTS).map(|&(_, work)| work.clone()).collect()
            })
            .collect();
        self.best_finalists(pes, &finalists, budget / 3 * 2)
    }

    /// Returns the pairs of groups that both have a best candidate.
    pub(super) fn pairs(
        &self,
        pes: u32,
        groups: &[[Vec<Work>; 2]],
        budget: Duration,
    ) -> Result<Vec<Pair>> {
        let best = self.best(pes, groups.as_flattened(), budget)?;
        let pair =
            |pair: &[Option<Best>]| Some(Pair { one: pair[0].clone()?, other: pair[1].clone()? });
        Ok(best.chunks(2).filter_map(pair).collect())
    }

    fn best_finalists(
        &self,
        pes: u32,
        finalists: &[Vec<Work>],
        budget: Duration,
    ) -> Result<Vec<Option<Best>>> {
        let all: Vec<Work> = finalists.iter().flatten().cloned().collect();
        let mut last = self.medians(pes, &all, budget)?.into_iter();
        let best = |group: &Vec<Work>| {
            let timed = group
                .iter()
                .filter_map(|work| Some(Best { ns: last.next().flatten()?, work: work.clone() }));
            timed.min_by(|one, other| one.ns.total_cmp(&other.ns))
        };
        Ok(finalists.iter().map(best).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(bytes: usize, one_ns: f64, other_ns: f64) -> Pair {
        let best = |ns| Best { work: Work::of(&broadcast(2, bytes), &flat()), ns };
        Pair { one: best(one_ns), other: best(other_ns) }
    }

    #[test]
    fn crossover_is_where_one_side_wins_for_good() {
        let mut pairs = [pair(8, 2.0, 1.0), pair(64, 2.0, 3.0), pair(512, 2.0, 4.0)];
        let crossover = |pairs: &[Pair]| crossover(pairs, |ratio| ratio < 1.0);
        assert_eq!(crossover(&pairs), Some(64));
        assert_eq!(crossover(&pairs[..1]), None);
        pairs[2].one.ns = 9.0;
        assert_eq!(crossover(&pairs), None);
        pairs[0].one.ns = 0.5;
        assert_eq!(crossover(&pairs), None, "a single win below does not count");
    }

    #[test]
    fn trees_differ_from_each_other_and_from_flat() {
        let radices = |pes| {
            Way::Sent.trees(pes).iter().map(|tree| tree.parameter("radix")).collect::<Vec<_>>()
        };
        assert_eq!(radices(2), [Some(1)]);
        assert_eq!(radices(8), [Some(1), Some(2), Some(4)]);
        assert_eq!(radices(32).len(), 5);
    }
}
