//! Measures kinds of work in turn: all of them for a short time, then the best of each group for
//! longer.

use std::time::Duration;

use anyhow::Result;
use consort::{Algorithms, Candidate, Collective, Query, SyncModes};
use consort_fabric::statistics::median;
use consort_tuner::{Catalog, TransferClass};

use super::experiment::Experiment;
use crate::{
    asked::sums,
    harness::{Conditions, Mode, Rounds, Session, Timing, Work, of_class},
};

/// The time of a block of calls.
const BLOCK: Duration = Duration::from_micros(400);
/// The same where PEs share cores: a block begins and ends with turns of the scheduler.
const SHARED_BLOCK: Duration = Duration::from_millis(1);
/// The number of candidates of each group that are measured again.
const FINALISTS: usize = 3;
/// A choice within this ratio of the best counts as equally good: medians on shared machines vary
/// by more.
pub(super) const AS_GOOD: f64 = 1.02;

/// The best of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub(super) work: Work,
    pub(super) ns: f64,
}

impl Best {
    /// The algorithm.
    pub(super) fn name(&self) -> String {
        match &self.work {
            Work::Consort { candidate: Some(candidate), .. } => candidate.to_string(),
            _ => String::new(),
        }
    }
}

/// A reduction of doubles in symmetric memory, so that the modes may be Loose.
pub(super) fn reduce(sync: SyncModes, bytes: usize, candidate: Candidate) -> Work {
    let collective = Collective::Reduce;
    Work::Consort { collective, sync, bytes, symmetric: true, candidate: Some(candidate) }
}

/// A broadcast to private slices.
pub(super) fn broadcast(bytes: usize, candidate: Candidate) -> Work {
    let (collective, sync) = (Collective::Broadcast, SyncModes::MINE);
    Work::Consort { collective, sync, bytes, symmetric: false, candidate: Some(candidate) }
}

/// A barrier.
pub(super) fn barrier(candidate: Candidate) -> Work {
    let (collective, sync) = (Collective::Barrier, SyncModes::STRICT);
    Work::Consort { collective, sync, bytes: 0, symmetric: false, candidate: Some(candidate) }
}

/// All candidates that can serve such a reduction.
pub(super) fn all_reductions(sync: SyncModes, pes: u32, bytes: usize) -> Vec<Work> {
    let candidates =
        Algorithms::here().candidates(&sums(Collective::Reduce, sync, pes, bytes, true));
    candidates.into_iter().map(|candidate| reduce(sync, bytes, candidate)).collect()
}

/// The finalists by the model among the algorithms whose names `fit`, each with its best
/// parameters: with few PEs many values of a radix give the same tree.
pub(super) fn likely(query: &Query, fit: impl Fn(&str) -> bool) -> Vec<Work> {
    let here = Algorithms::here();
    let cost = |candidate: &Candidate| here.estimate_ns(query, candidate);
    let mut candidates = here.candidates(query);
    candidates.retain(|candidate| fit(&candidate.algorithm));
    candidates.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
    let mut likely: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        if likely.iter().all(|other| other.algorithm != candidate.algorithm) {
            likely.push(candidate);
        }
    }
    likely.iter().take(FINALISTS).map(|candidate| Work::of(query, candidate)).collect()
}

/// The radices of the paper's trees (Nishtala and Yelick 2009, table 2).
pub(super) const RADICES: [u64; 5] = [1, 2, 4, 8, 16];

/// The k-nomial trees for this many PEs that differ from each other and from the flat tree.
pub(super) fn trees(pes: u32) -> Vec<Candidate> {
    let radices = RADICES.iter().filter(|&&radix| radix < u64::from(pes) || radix == 1);
    radices.map(|&radix| Candidate::new("knomial").with("radix", radix)).collect()
}

/// The flat tree.
pub(super) fn flat() -> Candidate {
    Candidate::new("flat")
}

impl Experiment<'_> {
    /// The medians in nanoseconds of calls in a row; `None` for work that cannot be done here. All
    /// medians are of one class of the transfer.
    pub(super) fn medians(
        &self,
        pes: u32,
        work: &[Work],
        budget: Duration,
    ) -> Result<Vec<Option<f64>>> {
        let rounds = Rounds {
            session: Session {
                pes,
                waiting: None,
                work: work.to_vec(),
                mode: Mode::Throughput,
                budget,
                block: if pes <= self.cores { BLOCK } else { SHARED_BLOCK },
            },
            conditions: Conditions::default(),
            limits: &[],
            sizes_bytes: &[],
        };
        let collected = rounds.run(|share| (self.show)(share))?;
        let class = common_class(&collected.timings);
        Ok(collected.timings.iter().map(|timing| median_ns(timing, class)).collect())
    }

    /// The best of each group; `None` where no work of a group can be done here.
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

/// The class in which the work with the fewest blocks has the most.
fn common_class(timings: &[Timing]) -> Option<TransferClass> {
    let classes = [None, Some(TransferClass::Near), Some(TransferClass::Far)];
    let able = || timings.iter().filter(|timing| timing.error.is_none());
    let fewest = |class| able().map(|timing| of_class(timing, class).len()).min().unwrap_or(0);
    let total = |class| able().map(|timing| of_class(timing, class).len()).sum::<usize>();
    classes.into_iter().max_by_key(|&class| (fewest(class), total(class))).flatten()
}

fn median_ns(timing: &Timing, class: Option<TransferClass>) -> Option<f64> {
    let mut ns: Vec<f64> = of_class(timing, class).iter().map(|block| block.ns).collect();
    (!ns.is_empty()).then(|| median(&mut ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Block;

    fn timing(near: usize, far: usize) -> Timing {
        let block =
            |transfer_ns| Block { ns: transfer_ns, p99_ns: 0.0, transfer_ns: Some(transfer_ns) };
        let mut blocks = vec![block(20.0); near];
        blocks.extend(vec![block(150.0); far]);
        Timing { blocks, ..Timing::default() }
    }

    #[test]
    fn all_are_judged_by_one_class() {
        let timings = [timing(5, 1), timing(2, 40)];
        let class = common_class(&timings);
        assert_eq!(class, Some(TransferClass::Near));
        assert_eq!(median_ns(&timings[1], class), Some(20.0));
        assert_eq!(median_ns(&timings[0], None), None);
    }

    #[test]
    fn trees_differ_from_each_other_and_from_flat() {
        let radices =
            |pes| trees(pes).iter().map(|tree| tree.parameter("radix")).collect::<Vec<_>>();
        assert_eq!(radices(2), [Some(1)]);
        assert_eq!(radices(8), [Some(1), Some(2), Some(4)]);
        assert_eq!(radices(32).len(), 5);
    }
}
