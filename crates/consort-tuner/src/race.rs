//! Candidates that are measured together, launch by launch.
//!
//! A launch fixes the places of its threads and buffers, and the order of turns if PEs share cores.
//! This favours one candidate or another. The machine also changes during measurement. So a
//! confidence interval is computed from the values of the launches. Two candidates are compared by
//! the ratios of their blocks. The two blocks of a ratio follow each other, and have the same class
//! of the transfer.

use std::time::Duration;

use consort_fabric::{
    Candidate, Query,
    statistics::{Gain, Verdict, launches, median},
};

use crate::{Block, Sample, TransferClass, Workbench};

/// A class has been seen on a machine if it has this share of the blocks.
const SEEN: f64 = 0.1;

/// The blocks of some candidates in each launch so far.
#[derive(Clone, Debug)]
pub struct Race {
    field: Vec<Candidate>,
    /// By candidate, then by launch; empty if the candidate could not be measured.
    blocks: Vec<Vec<Vec<Block>>>,
    /// Whether the workbench has refused each candidate.
    refused: Vec<bool>,
}

impl Race {
    /// Creates a race without launches.
    #[must_use]
    pub fn new(field: Vec<Candidate>) -> Self {
        let (blocks, refused) = (vec![Vec::new(); field.len()], vec![false; field.len()]);
        Self { field, blocks, refused }
    }

    /// Returns the candidates.
    #[must_use]
    pub fn field(&self) -> &[Candidate] {
        &self.field
    }

    /// Returns the number of launches.
    #[must_use]
    pub fn launches(&self) -> usize {
        self.blocks.first().map_or(0, Vec::len)
    }

    /// Adds a launch: the blocks of each candidate, in order. A candidate's disturbed blocks give its
    /// time only if it has no others, and never decide between candidates.
    ///
    /// # Panics
    /// If the number of blocks differs from that of the candidates.
    pub fn add(&mut self, launch: Vec<Option<Vec<Block>>>) {
        assert_eq!(launch.len(), self.field.len(), "a workbench returns blocks for each candidate");
        for ((all, refused), new) in self.blocks.iter_mut().zip(&mut self.refused).zip(launch) {
            *refused = new.is_none();
            all.push(new.unwrap_or_default());
        }
    }

    /// Returns whether all blocks of the last launch were disturbed.
    pub(crate) fn was_disturbed(&self) -> bool {
        let mut last = self.blocks.iter().filter_map(|launches| launches.last()).flatten();
        last.next().is_some_and(|first| first.is_disturbed && last.all(|block| block.is_disturbed))
    }

    /// Returns the share of the blocks that were not disturbed, in hundredths; 1 without blocks.
    pub(crate) fn undisturbed_share(&self) -> f64 {
        let all = || self.blocks.iter().flatten().flatten();
        let disturbed = all().filter(|block| block.is_disturbed).count();
        (100.0 * (1.0 - disturbed as f64 / all().count().max(1) as f64)).round() / 100.0
    }

    /// Removes all candidates except these.
    pub(crate) fn keep(&mut self, survivors: &[Candidate]) {
        let stays: Vec<bool> = self.field.iter().map(|one| survivors.contains(one)).collect();
        retain(&mut self.blocks, &stays);
        retain(&mut self.refused, &stays);
        retain(&mut self.field, &stays);
    }

    /// Returns the candidates whose blocks have all been disturbed so far.
    pub(crate) fn spoilt(&self) -> impl Iterator<Item = &Candidate> {
        let is_spoilt = |index: usize| {
            let mut blocks = self.blocks[index].iter().flatten();
            !self.refused[index] && blocks.all(|block| block.is_disturbed)
        };
        self.field
            .iter()
            .enumerate()
            .filter_map(move |(index, one)| is_spoilt(index).then_some(one))
    }

    /// Measures the candidates in at most `count` launches, at least one, within `budget`.
    ///
    /// # Errors
    /// If measuring fails as a whole.
    pub fn run<W: Workbench>(
        &mut self,
        bench: &mut W,
        query: &Query,
        count: u32,
        budget: Duration,
    ) -> Result<(), W::Error> {
        let started = bench.now();
        for launch in 0..count {
            let left = budget.saturating_sub(bench.now().saturating_sub(started));
            if launch > 0 && left.is_zero() {
                break;
            }
            self.add(bench.launch(query, &self.field, left / (count - launch))?);
        }
        Ok(())
    }

    /// Returns the sample of each candidate, by blocks of one class; `None` without such blocks.
    #[must_use]
    pub fn samples(&self) -> Vec<Option<Sample>> {
        let class = self.class();
        self.blocks.iter().map(|all| sample(&times(all, class), class)).collect()
    }

    /// Returns the sample of a candidate by all of its blocks of one class, disturbed ones too;
    /// `None` without blocks.
    pub(crate) fn sample_of_all(&self, candidate: &Candidate) -> Option<Sample> {
        let index = self.field.iter().position(|own| own == candidate)?;
        let class = self.class();
        sample(&all_times(&self.blocks[index], class), class)
    }

    /// Returns the candidates that could be measured, the fastest first.
    #[must_use]
    pub fn ranking(&self) -> Vec<(Candidate, Sample)> {
        let measured = self.field.iter().cloned().zip(self.samples());
        let mut ranking: Vec<_> =
            measured.filter_map(|(candidate, sample)| Some((candidate, sample?))).collect();
        ranking.sort_by(|(a, a_sample), (b, b_sample)| {
            a_sample.median_ns.total_cmp(&b_sample.median_ns).then_with(|| a.cmp(b))
        });
        ranking
    }

    /// Returns the gain of `new` over `old` in all classes of the transfer, each by its share of the
    /// time. The other candidates count as rivals of `new`. `None` if too few launches have blocks
    /// of both.
    #[must_use]
    pub fn gain(&self, old: &Candidate, new: &Candidate) -> Option<Gain> {
        Gain::paired(&self.pairs(old, new, |_| true), self.field.len() - 1)
    }

    /// Returns whether `faster` is clearly faster than `slower`, and slower in none of the classes
    /// `seen` on this machine, in each of which it must have been measured.
    pub(crate) fn is_clear(
        &self,
        faster: &Candidate,
        slower: &Candidate,
        seen: &[TransferClass],
    ) -> bool {
        // No bootstrap is drawn for a candidate that is not faster anyway.
        let loses = |class: Option<TransferClass>| {
            let counts = |of| class.is_none() || of == class;
            let ratios = |launch: &Vec<(f64, f64)>| {
                let mut ratios: Vec<f64> = launch.iter().map(|(slow, fast)| slow / fast).collect();
                (!ratios.is_empty()).then(|| median(&mut ratios))
            };
            let pairs = self.pairs(slower, faster, counts);
            let mut medians: Vec<f64> = pairs.iter().filter_map(ratios).collect();
            medians.is_empty() || median(&mut medians) < 1.0
        };
        !seen.iter().copied().map(Some).chain([None]).any(loses)
            && self.gain(slower, faster).is_some_and(|gain| gain.verdict(0.0) == Verdict::Faster)
    }

    /// Returns the times of neighbouring blocks of two candidates, by launch, if both blocks are of
    /// the same class and `counts` holds for it.
    fn pairs(
        &self,
        one: &Candidate,
        other: &Candidate,
        counts: impl Fn(Option<TransferClass>) -> bool,
    ) -> Vec<Vec<(f64, f64)>> {
        let of = |candidate| {
            let index = self.field.iter().position(|own| own == candidate);
            index.map_or(&[][..], |index| &self.blocks[index])
        };
        let pair = |block: &Block, others: &[Block]| {
            let next = others.binary_search_by_key(&block.turn, |other| other.turn).ok()?;
            let next = &others[next];
            let is_alike = next.class == block.class && counts(block.class);
            let is_quiet = !block.is_disturbed && !next.is_disturbed;
            (is_alike && is_quiet).then_some((block.ns, next.ns))
        };
        let of_launch = |(ones, others): (&Vec<Block>, &Vec<Block>)| {
            ones.iter().filter_map(|block| pair(block, others)).collect()
        };
        of(one).iter().zip(of(other)).map(of_launch).collect()
    }

    /// Returns the number of launches in which a candidate of the field has undisturbed blocks.
    pub(crate) fn quiet_launches(&self, candidate: &Candidate) -> usize {
        let index = self.field.iter().position(|own| own == candidate);
        let all = index.into_iter().flat_map(|index| &self.blocks[index]);
        all.filter(|launch| launch.iter().any(|block| !block.is_disturbed)).count()
    }

    /// Returns whether the workbench has refused to measure a candidate of the field.
    pub(crate) fn is_refused(&self, candidate: &Candidate) -> bool {
        self.field.iter().zip(&self.refused).any(|(own, refused)| own == candidate && *refused)
    }

    /// Returns the class whose blocks count. A class is judged by the candidate with the fewest
    /// launches in it: the class where this number is larger counts, and if they are equal, the
    /// class with more blocks. `None` means blocks of any class, if no class has blocks of every
    /// candidate.
    fn class(&self) -> Option<TransferClass> {
        let able =
            || self.blocks.iter().filter(|launches| launches.iter().any(|one| !one.is_empty()));
        let rank = |class| {
            let of_class = || able().map(|launches| times(launches, Some(class)));
            let with_blocks = |launches: Vec<Vec<f64>>| {
                launches.iter().filter(|blocks| !blocks.is_empty()).count()
            };
            let fewest = of_class().map(with_blocks).min().unwrap_or(0);
            (fewest, of_class().flatten().map(|blocks| blocks.len()).sum::<usize>())
        };
        [TransferClass::Near, TransferClass::Far]
            .into_iter()
            .map(|class| (rank(class), class))
            .filter(|((fewest, _), _)| *fewest > 0)
            .max_by_key(|&(rank, _)| rank)
            .map(|(_, class)| class)
    }
}

/// Returns the classes of the transfer that these races have seen.
pub(crate) fn seen_classes<'r>(
    races: impl Iterator<Item = &'r Race> + Clone,
) -> Vec<TransferClass> {
    let all = || races.clone().flat_map(|race| race.blocks.iter().flatten().flatten());
    let count = all().count() as f64;
    let is_seen = |&class: &TransferClass| {
        let of_class = all().filter(|block| block.class == Some(class)).count();
        of_class as f64 > SEEN * count
    };
    TransferClass::EVERY.into_iter().filter(is_seen).collect()
}

/// Removes the items that do not stay.
fn retain<T>(items: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    items.retain(|_| stays.next() == Some(&true));
}

/// Returns the times of a candidate's blocks of a class, or of any class, by launch: of undisturbed
/// blocks if it has any.
fn times(launches: &[Vec<Block>], class: Option<TransferClass>) -> Vec<Vec<f64>> {
    let is_quiet = |block: &Block| is_of(block, class) && !block.is_disturbed;
    if launches.iter().flatten().any(is_quiet) {
        times_of(launches, is_quiet)
    } else {
        all_times(launches, class)
    }
}

/// Returns the times of all blocks of a class, or of any class, by launch.
fn all_times(launches: &[Vec<Block>], class: Option<TransferClass>) -> Vec<Vec<f64>> {
    times_of(launches, |block| is_of(block, class))
}

fn times_of(launches: &[Vec<Block>], counts: impl Fn(&Block) -> bool) -> Vec<Vec<f64>> {
    let of_launch = |blocks: &Vec<Block>| {
        blocks.iter().filter(|&block| counts(block)).map(|block| block.ns).collect()
    };
    launches.iter().map(of_launch).collect()
}

fn is_of(block: &Block, class: Option<TransferClass>) -> bool {
    class.is_none() || block.class == class
}

/// Returns the sample of times by launch; `None` if there are none, or they are not sound.
fn sample(launches: &[Vec<f64>], class: Option<TransferClass>) -> Option<Sample> {
    let measured = launches.iter().filter(|launch| !launch.is_empty()).count();
    let summary = launches::summary(launches)?;
    Some(Sample::of(&summary, measured, class)).filter(is_sound)
}

/// Returns whether the times are finite, positive and ordered.
fn is_sound(sample: &Sample) -> bool {
    let (low, high) = sample.ci95_ns;
    low > 0.0 && low <= sample.median_ns && sample.median_ns <= high && high.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of one launch: times and classes.
    type Times<'t> = &'t [(f64, Option<TransferClass>)];

    fn race(launches: &[[Times<'_>; 2]]) -> Race {
        let mut race = Race::new(["one", "other"].map(Candidate::new).to_vec());
        for launch in launches {
            let blocks = |blocks: &Times<'_>| {
                let blocks = blocks.iter().zip(0..);
                Some(
                    blocks
                        .map(|(&(ns, class), turn)| Block { ns, class, turn, is_disturbed: false })
                        .collect(),
                )
            };
            race.add(launch.iter().map(blocks).collect());
        }
        race
    }

    #[test]
    fn candidates_are_judged_by_one_class() {
        let (near, far) = (Some(TransferClass::Near), Some(TransferClass::Far));
        let (n, f): (&[_], &[_]) = (&[(1.0, near)], &[(9.0, far)]);
        let mostly_far = race(&[[n, n], [f, f], [f, f]]);
        assert_eq!(mostly_far.class(), far);
        let sample = mostly_far.samples()[0].unwrap();
        assert_eq!((sample.launches, sample.median_ns), (2, 9.0));
        assert_eq!(race(&[[n, n], [f, &[]], [f, &[]]]).class(), near, "far, one has no block");
        assert_eq!(race(&[[n, &[]], [&[], f]]).class(), None);
        assert_eq!(race(&[[&[(1.0, None)], &[(2.0, None)]]]).class(), None);
        assert_eq!(
            race(&[[&[], n]]).class(),
            near,
            "a candidate that cannot be measured does not count"
        );
        assert!(race(&[[&[], n]]).samples()[0].is_none());
    }

    #[test]
    fn candidate_without_blocks_is_spoilt_unless_refused() {
        let names = ["fast", "slow", "spoilt", "refused"].map(Candidate::new);
        let mut race = Race::new(names.to_vec());
        let block = |ns| Some(vec![Block { ns, class: None, turn: 0, is_disturbed: false }]);
        race.add(vec![block(1.0), block(9.0), Some(Vec::new()), None]);
        assert!(race.spoilt().eq(&names[2..3]));
        assert!(race.is_refused(&names[3]));
        race.add(vec![block(1.0), block(9.0), Some(Vec::new()), block(2.0)]);
        assert!(!race.is_refused(&names[3]), "the last launch tells");
        race.keep(&[names[0].clone(), names[2].clone()]);
        race.add(vec![block(1.0), block(0.5)]);
        assert_eq!(race.spoilt().count(), 0);
        race.keep(&names[2..3]);
        assert_eq!(race.field(), [names[2].clone()]);
    }

    /// Within each launch the other takes longer, though the launches differ by more.
    #[test]
    fn slower_in_each_launch_is_clearly_slower() {
        let launches = |count: u32| {
            let times: Vec<[Vec<(f64, _)>; 2]> = (0..count)
                .map(|i| f64::from(100 + 20 * (i % 5)))
                .map(|ns| [vec![(ns, None); 3], vec![(ns * 1.05, None); 3]])
                .collect();
            race(&times.iter().map(|[a, b]| [&a[..], &b[..]]).collect::<Vec<_>>())
        };
        let [one, other] = ["one", "other"].map(Candidate::new);
        assert!(launches(8).is_clear(&one, &other, &[]));
        assert!(!launches(8).is_clear(&other, &one, &[]));
        assert!(!launches(7).is_clear(&one, &other, &[]), "few launches leave it open");
        let samples = launches(8).samples();
        let [one, other] = [samples[0].unwrap(), samples[1].unwrap()];
        assert!(one.ci95_ns.1 > other.ci95_ns.0, "the intervals alone do not decide");
    }
}
