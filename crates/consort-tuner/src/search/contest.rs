//! The contest of a query: finds the fastest of its candidates, a launch at a time.
//!
//! Successive halving: in a heat of a few launches the candidates that are left are measured in
//! turn. Those that are much slower than the best leave, and so does the slower half of the rest,
//! until two are left for the final. All launches in which both were measured count.

use std::time::Duration;

use consort_fabric::{Candidate, Query};

use crate::{
    Confidence, Entry, Race, Rigour, RunnerUp, Workbench,
    estimate::{distinct, ranked},
    times::rounded_ns,
};

/// The most candidates that the model lets through to be measured at [`Rigour::Measure`].
const HANDFUL: usize = 6;
/// The model's estimate for them is at most this many times that of its favourite.
const PRUNE_RATIO: f64 = 4.0;
/// The most time that a query asks for; at [`Rigour::Exhaustive`] for each of its candidates.
const MEASURE_CAP: Duration = Duration::from_millis(250);
const PATIENT_CAP: Duration = Duration::from_secs(1);
const EXHAUSTIVE_CAP: Duration = Duration::from_millis(100);
/// The least time for a candidate that gives a useful measurement.
const FLOOR: Duration = Duration::from_millis(2);
/// The least time for a query with as many candidates as the model lets through.
pub(super) const LEAST_SLICE: Duration = Duration::from_millis(2 * HANDFUL as u64);

/// What takes so many times as long as the best leaves a heat.
const MUCH_SLOWER: f64 = 1.5;
/// With fewer launches there is no entry.
const LEAST_LAUNCHES: u32 = 4;

/// The launches of a heat and of a final.
#[derive(Clone, Copy, Debug)]
struct Launches {
    heat: u32,
    last: u32,
}

/// A final has some more launches than make a difference clear, since the cores may be near in one
/// launch and far in another.
const USUAL: Launches = Launches { heat: 4, last: 10 };
/// Where so many would take longer than the slice, as a launch has costs besides its blocks.
const FEW: Launches = Launches { heat: 1, last: LEAST_LAUNCHES };
/// Where even these would take much longer.
const FEWEST: Launches = Launches { heat: 1, last: 1 };

/// The candidates that a search at `rigour` measures, each once.
pub(crate) fn field<W: Workbench>(bench: &W, query: &Query, rigour: Rigour) -> Vec<Candidate> {
    let ranked = ranked(bench, query, |_| true);
    if rigour != Rigour::Measure {
        let all = ranked.into_iter().map(|(candidate, _)| candidate);
        return distinct(bench, query, all).collect();
    }
    let limit_ns = ranked.first().map_or(0.0, |(_, best_ns)| best_ns * PRUNE_RATIO);
    let hopeful = ranked.into_iter().filter(|&(_, estimate_ns)| estimate_ns <= limit_ns);
    // The model errs more between algorithms than between parameters of one algorithm. So the best
    // candidate of each algorithm comes first.
    let (mut field, mut others): (Vec<Candidate>, Vec<Candidate>) = Default::default();
    for (candidate, _) in hopeful {
        let is_first = field.iter().all(|known| known.algorithm != candidate.algorithm);
        if is_first { field.push(candidate) } else { others.push(candidate) }
    }
    field.extend(others);
    distinct(bench, query, field).take(HANDFUL).collect()
}

/// The time for a query with `field_size` candidates, if its share of the time left is `share`:
/// at most `cap`, but enough to measure them.
pub(crate) fn slice(field_size: usize, share: Duration, cap: Duration) -> Duration {
    let field_count = u32::try_from(field_size.max(1)).unwrap_or(u32::MAX);
    let floor = FLOOR.saturating_mul(field_count);
    share.clamp(floor, cap.max(floor))
}

/// The most time that a query with `field_size` candidates asks for in a grid.
pub(crate) fn cap(rigour: Rigour, field_size: usize) -> Duration {
    match rigour {
        Rigour::Estimate => Duration::ZERO,
        Rigour::Measure => MEASURE_CAP,
        Rigour::Patient => PATIENT_CAP,
        Rigour::Exhaustive => {
            EXHAUSTIVE_CAP.saturating_mul(u32::try_from(field_size).unwrap_or(u32::MAX))
        }
    }
}

/// The candidates of a query, and how far their contest has come.
pub(super) struct Contest {
    pub(super) query: Query,
    race: Race,
    rigour: Rigour,
    /// The number of candidates at first.
    size: u32,
    heat_count: u32,
    launches: Launches,
    /// The time that it asks for.
    slice: Duration,
    /// The least time that a launch takes, if the first took more than it should; zero otherwise.
    least: Duration,
    /// Whether no time is left for another launch.
    pub(super) is_over: bool,
    /// How many launches its entry is of; 0 without one.
    judged: u32,
}

impl Contest {
    pub(super) fn new(
        query: Query,
        field: Vec<Candidate>,
        rigour: Rigour,
        slice: Duration,
    ) -> Self {
        let heat_count = match (rigour, field.len()) {
            (Rigour::Exhaustive, _) | (_, 0..=2) => 0,
            (_, count) => count.next_power_of_two().ilog2() - 1,
        };
        Self {
            query,
            size: u32::try_from(field.len()).unwrap_or(u32::MAX).max(1),
            race: Race::new(field),
            rigour,
            heat_count,
            launches: USUAL,
            slice,
            least: Duration::ZERO,
            is_over: false,
            judged: 0,
        }
    }

    /// The candidates that are left.
    pub(super) fn field(&self) -> &[Candidate] {
        self.race.field()
    }

    const fn heat_launches(&self) -> u32 {
        self.heat_count * self.launches.heat
    }

    /// The launches of all heats and of the final.
    pub(super) const fn launch_count(&self) -> u32 {
        self.heat_launches() + self.launches.last
    }

    fn launched(&self) -> u32 {
        u32::try_from(self.race.launches()).unwrap_or(u32::MAX)
    }

    /// The share of its launches that are done.
    pub(super) fn progress(&self) -> f64 {
        f64::from(self.launched()) / f64::from(self.launch_count())
    }

    /// [`Contest::progress`] in thousandths.
    pub(super) fn per_mille(&self) -> usize {
        self.race.launches() * 1000 / self.launch_count() as usize
    }

    /// Whether heats lie ahead.
    pub(super) fn is_open(&self) -> bool {
        self.launched() < self.heat_launches()
    }

    /// The time that the next launch asks for: heats and final have half of all each.
    pub(super) fn next_slice(&self) -> Duration {
        match self.heat_launches() {
            0 => self.slice / self.launches.last,
            heats if self.launched() < heats => self.slice / 2 / heats,
            _ => self.slice / 2 / self.launches.last,
        }
    }

    /// The time that all launches ahead ask for.
    pub(super) fn time_ahead(&self) -> Duration {
        let (done, heats, all) = (self.launched(), self.heat_launches(), self.launch_count());
        if heats == 0 {
            return self.slice / self.launches.last * (all - done);
        }
        let of_heats = self.slice / 2 / heats * heats.saturating_sub(done);
        of_heats + self.slice / 2 / self.launches.last * (all - done.max(heats))
    }

    /// The time that all launches take, if the first tells what a launch costs besides its blocks,
    /// in proportion to the candidates. These halve in each heat.
    pub(super) fn time_needed(&self) -> Duration {
        let (Launches { heat, last }, size) = (self.launches, self.size);
        let of_heats: u32 = (0..self.heat_count).map(|count| heat * (size >> count).max(2)).sum();
        let finalists = if self.rigour == Rigour::Exhaustive { size } else { size.min(2) };
        self.slice.max(self.least * (of_heats + last * finalists) / size)
    }

    /// Whether it has fewer launches than usual, and one more takes no longer than `fair`.
    pub(super) fn goes_on(&self, fair: Duration) -> bool {
        self.has_few() && !self.is_over && self.least <= fair
    }

    pub(super) const fn has_few(&self) -> bool {
        self.launches.last < USUAL.last
    }

    /// Adds a launch to the final.
    pub(super) const fn extend(&mut self) {
        self.launches.last += 1;
    }

    /// Whether the next launch, for about `share`, is likely to fit into the time `left`. So it is
    /// while there is no entry yet, unless no time is left at all.
    pub(super) fn fits(&self, share: Duration, left: Duration) -> bool {
        let least = if self.launched() < LEAST_LAUNCHES { Duration::ZERO } else { self.least };
        share.max(least) <= left
    }

    /// Measures the candidates that are left in one launch, for about `budget` together. Returns
    /// whether a heat has ended, or as much of the final.
    pub(super) fn launch<W: Workbench>(
        &mut self,
        bench: &mut W,
        budget: Duration,
    ) -> Result<bool, W::Error> {
        let before = bench.now();
        self.race.add(bench.launch(&self.query, self.race.field(), budget)?);
        let taken = bench.now().saturating_sub(before);
        let done = self.launched();
        let is_known = done > 1 && taken > self.least;
        self.least = match taken > budget {
            true if is_known => self.least,
            true => taken,
            false => Duration::ZERO,
        };
        for fewer in [FEW, FEWEST].into_iter().filter(|_| done == 1) {
            if self.time_needed() > self.slice {
                self.launches = fewer;
            }
        }
        let ends_heat = done.is_multiple_of(self.launches.heat) && done <= self.heat_launches();
        let ranking = if ends_heat { self.race.medians() } else { Vec::new() };
        if ranking.len() > 2 {
            let is_last = done == self.heat_launches();
            let count = if is_last { 2 } else { survivor_count(&ranking) };
            let survivors = ranking.into_iter().take(count).map(|(candidate, _)| candidate);
            self.race.keep(&survivors.collect::<Vec<Candidate>>());
        }
        Ok(ends_heat || done == LEAST_LAUNCHES)
    }

    /// Whether it has an entry.
    pub(super) const fn is_measured(&self) -> bool {
        self.judged > 0
    }

    /// The entry that is won so far; `None` after too few launches, if it is known already, and if
    /// no candidate could be measured.
    pub(super) fn judge(&mut self) -> Option<Entry> {
        let launched = self.launched();
        let is_enough = launched >= LEAST_LAUNCHES.min(self.launch_count());
        if !is_enough || launched == self.judged {
            return None;
        }
        let won = self.won()?;
        self.judged = launched;
        Some(won)
    }

    fn won(&self) -> Option<Entry> {
        let Self { race, query, rigour, .. } = self;
        let mut ranking = race.ranking().into_iter();
        let (choice, sample) = ranking.next()?;
        let second = ranking.next();
        let confidence = match &second {
            None => Confidence::Alone,
            Some((second, _)) if race.is_clear(&choice, second) => Confidence::Clear,
            Some(_) => Confidence::Tie,
        };
        Some(Entry {
            query: *query,
            choice,
            median_ns: rounded_ns(sample.median_ns),
            ci95_ns: Some((rounded_ns(sample.ci95_ns.0), rounded_ns(sample.ci95_ns.1))),
            runner_up: second.map(|(candidate, sample)| RunnerUp {
                candidate,
                median_ns: rounded_ns(sample.median_ns),
            }),
            class: sample.class,
            confidence,
            rigour: *rigour,
            busy: None,
        })
    }
}

/// How many candidates, of at least two, remain: the faster half without those that are much slower
/// than the best, but at least two.
fn survivor_count(ranking: &[(Candidate, f64)]) -> usize {
    let limit_ns = MUCH_SLOWER * ranking[0].1;
    let open = ranking.iter().filter(|(_, median_ns)| *median_ns <= limit_ns).count();
    open.min(ranking.len().div_ceil(2)).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Catalog};
    use consort_fabric::{Collective, OperatorClass, SyncModes};

    /// Measures nothing, and takes these times for it.
    struct Takes(Duration, Vec<Duration>);

    impl Catalog for Takes {
        fn candidates(&self, _: &Query) -> Vec<Candidate> {
            Vec::new()
        }

        fn estimate_ns(&self, _: &Query, _: &Candidate) -> f64 {
            1.0
        }
    }

    impl Workbench for Takes {
        type Error = std::convert::Infallible;

        fn launch(
            &mut self,
            _: &Query,
            field: &[Candidate],
            _: Duration,
        ) -> Result<Vec<Option<Vec<Block>>>, Self::Error> {
            self.0 += self.1.remove(0);
            Ok(vec![None; field.len()])
        }

        fn now(&self) -> Duration {
            self.0
        }
    }

    fn ranking_of(times: &[f64]) -> Vec<(Candidate, f64)> {
        times.iter().map(|&ns| (Candidate::new("tree"), ns)).collect()
    }

    #[test]
    fn half_goes_on_and_the_clearly_slower_do_not() {
        assert_eq!(survivor_count(&ranking_of(&[10.0; 5])), 3);
        let apart = ranking_of(&[10.0, 20.0, 30.0, 30.0, 40.0]);
        assert_eq!(survivor_count(&apart), 2, "a runner-up is kept");
    }

    const QUERY: Query = Query {
        collective: Collective::Reduce,
        sync: SyncModes::MINE,
        pes: 2,
        bytes: 8,
        operator: OperatorClass::Commutative,
        symmetric: true,
    };

    /// One interruption must not end it, and what really takes long has fewer launches.
    #[test]
    fn the_least_time_of_a_launch_is_that_of_the_first_and_falls() {
        let ms = Duration::from_millis;
        for (taken_ms, least_ms, launches) in
            [([9, 90, 30, 12], [0, 0, 0, 0], 10), ([25, 22, 30, 8], [25, 22, 22, 0], 4)]
        {
            let field = ["one", "other"].map(Candidate::new).to_vec();
            let mut contest = Contest::new(QUERY, field, Rigour::Measure, ms(100));
            let mut bench = Takes(ms(0), taken_ms.map(ms).to_vec());
            for (index, least_ms) in least_ms.into_iter().enumerate() {
                contest.launch(&mut bench, ms(10)).unwrap();
                assert_eq!((contest.least, contest.launch_count()), (ms(least_ms), launches));
                assert!(contest.fits(ms(5), ms(10)), "after {index}: there is no entry yet");
            }
            assert!(contest.fits(ms(5), ms(5)) && !contest.fits(ms(6), ms(5)));
        }
    }

    #[test]
    fn the_launches_ask_for_the_slice() {
        let query = QUERY;
        let slice = Duration::from_millis(160);
        for (candidates, rigour, launches) in [
            (6, Rigour::Measure, 18),
            (3, Rigour::Measure, 14),
            (2, Rigour::Patient, 10),
            (6, Rigour::Exhaustive, 10),
        ] {
            let field: Vec<Candidate> =
                (0..candidates).map(|radix| Candidate::new("tree").with("radix", radix)).collect();
            let mut contest = Contest::new(query, field, rigour, slice);
            assert_eq!((contest.launch_count(), contest.time_ahead()), (launches, slice));
            for _ in 0..launches {
                let (ahead, next) = (contest.time_ahead(), contest.next_slice());
                contest.race.add(vec![None; contest.field().len()]);
                assert_eq!(contest.time_ahead(), ahead - next);
            }
            assert_eq!((contest.time_ahead(), contest.progress()), (Duration::ZERO, 1.0));
        }
    }
}
