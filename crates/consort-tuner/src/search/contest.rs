//! The contest of a query: finds the fastest of its candidates.
//!
//! Successive halving: each heat measures the remaining candidates in turn. Candidates that are
//! much slower than the best are dropped, and so is the slower half of the rest, until two remain.
//! In the final, these two meet the incumbent, the candidate that has served the query's calls so
//! far. Only the final decides. The blocks of the final were not used to choose the finalists. So
//! they do not favour the candidate that was only lucky in the heats. The search also spreads the
//! launches of a final over time.
//!
//! The incumbent stays the choice unless another finalist is clearly faster in the blocks of the
//! final. So tuning replaces no choice by chance, even on a noisy machine.

use std::time::Duration;

use consort_fabric::{Candidate, Query, statistics::Gain};

use crate::{
    Confidence, Entry, Race, Rigour, RunnerUp, Sample, TransferClass, Workbench,
    best_parts::best_of_each,
    estimate::{distinct, ranked, same},
    online::NEAR,
    times::rounded_ns,
    wisdom::MOST_CONTENDERS,
};

/// The largest number of candidates that the model lets through to be measured at
/// [`Rigour::Measure`].
const HANDFUL: usize = 6;
/// The model's estimate for them is at most this many times that of its favourite.
const PRUNE_RATIO: f64 = 4.0;
/// The longest time for one query; at [`Rigour::Exhaustive`] for each of its candidates.
const MEASURE_CAP: Duration = Duration::from_millis(250);
const PATIENT_CAP: Duration = Duration::from_secs(1);
const EXHAUSTIVE_CAP: Duration = Duration::from_millis(100);
/// The shortest time in which a candidate can be measured usefully.
const FLOOR: Duration = Duration::from_millis(2);

/// A candidate leaves a heat if it takes this many times as long as the best.
const MUCH_SLOWER: f64 = 1.5;
/// A time from fewer launches makes no entry, because its interval says nothing.
const FEWEST_LAUNCHES: u32 = 2;
/// The number of launches of a heat.
const HEAT_LAUNCHES: u32 = 4;

/// Returns the candidates that a search at `rigour` measures, each once, and the incumbent first;
/// none if the workbench cannot measure the query.
pub(crate) fn field<W: Workbench>(
    bench: &W,
    query: &Query,
    incumbent: Option<&Candidate>,
    rigour: Rigour,
) -> Vec<Candidate> {
    let ranked = ranked(bench, query, |_| true);
    let incumbent = incumbent.filter(|_| !ranked.is_empty()).cloned();
    let with_incumbent = |mut others: Vec<Candidate>, count: usize| {
        others.retain(|one| Some(one) != incumbent.as_ref());
        let all: Vec<Candidate> = incumbent.into_iter().chain(others).collect();
        distinct(bench, query, all).take(count).collect()
    };
    if rigour != Rigour::Measure {
        return with_incumbent(ranked.into_iter().map(|(one, _)| one).collect(), usize::MAX);
    }
    let limit_ns = ranked.first().map_or(0.0, |(_, best_ns)| best_ns * PRUNE_RATIO);
    let hopeful = ranked.into_iter().filter(|&(_, estimate_ns)| estimate_ns <= limit_ns);
    // The model errs more between algorithms than between parameters of one algorithm, so the best
    // candidate of each algorithm comes first.
    let (mut field, mut others): (Vec<Candidate>, Vec<Candidate>) = Default::default();
    for (candidate, _) in hopeful {
        let is_first = field.iter().all(|known| known.algorithm != candidate.algorithm);
        if is_first { field.push(candidate) } else { others.push(candidate) }
    }
    field.extend(others);
    with_incumbent(field, HANDFUL)
}

/// Returns the time for a query with `field_size` candidates, if its share of the remaining time is
/// `share`: at most `cap`, but enough to measure them.
pub(crate) fn slice(field_size: usize, share: Duration, cap: Duration) -> Duration {
    let field_count = u32::try_from(field_size.max(1)).unwrap_or(u32::MAX);
    let floor = FLOOR.saturating_mul(field_count);
    share.clamp(floor, cap.max(floor))
}

/// Returns the longest time that a query with `field_size` candidates may take in a grid.
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

/// The results of a query's heats.
pub(crate) struct Heats {
    /// The final, with the launches of the last heat if these count in it.
    pub(crate) last: Race,
    /// The last heat, if its launches do not count in the final.
    pub(crate) heat: Option<Race>,
    /// The candidates that came near the best of a heat, the latest heat's first.
    pub(crate) near: Vec<Candidate>,
    /// The number of launches of all heats.
    pub(crate) launches: usize,
}

/// Holds the heats for `query` among `field` within `budget`. A field of two challengers, and any
/// field at [`Rigour::Exhaustive`], has one heat, whose launches count in the final. After the
/// first heat, the combination of the best of each part joins the field if it is new. Passes the
/// candidates of each heat to `announce` before they are measured.
pub(crate) fn heats<W: Workbench>(
    bench: &mut W,
    query: &Query,
    incumbent: Option<&Candidate>,
    mut field: Vec<Candidate>,
    rigour: Rigour,
    budget: Duration,
    mut announce: impl FnMut(&[Candidate]),
) -> Result<Heats, W::Error> {
    let challengers =
        |field: &[Candidate]| field.iter().filter(|&one| Some(one) != incumbent).count();
    let is_final = |field: &[Candidate]| challengers(field) <= 2 || rigour == Rigour::Exhaustive;
    let heat_count = match rigour {
        Rigour::Exhaustive => 1,
        _ => challengers(&field).next_power_of_two().ilog2().saturating_sub(1).max(1),
    };
    let (mut round, mut near, mut launches) = (1, Vec::new(), 0);
    loop {
        announce(&field);
        let mut heat = Race::new(field);
        heat.run(bench, query, HEAT_LAUNCHES, budget / heat_count)?;
        launches += heat.launches();
        let mut ranking = heat.ranking();
        near.splice(0..0, near_the_best(&ranking));
        let order: Vec<&Candidate> = ranking.iter().map(|(candidate, _)| candidate).collect();
        let is_new = |one: &Candidate| !order.iter().any(|other| same(bench, query, one, other));
        let joins = if round == 1 { best_of_each(&order).filter(is_new) } else { None };
        if is_final(heat.field()) {
            let Some(joins) = joins else {
                return Ok(Heats { last: heat, heat: None, near, launches });
            };
            let field = heat.field().iter().cloned().chain([joins]).collect();
            return Ok(Heats { last: Race::new(field), heat: Some(heat), near, launches });
        }
        ranking.retain(|(candidate, _)| Some(candidate) != incumbent);
        // It replaces the slowest survivor, so that the number of heats does not change.
        let count = if ranking.len() > 2 { survivor_count(&ranking) } else { ranking.len() };
        ranking.truncate(count - usize::from(joins.is_some()));
        let survivors = ranking.into_iter().map(|(candidate, _)| candidate);
        let defends = incumbent.filter(|one| !heat.is_refused(one)).cloned();
        let mut survivors: Vec<Candidate> = survivors.chain(defends).collect();
        if round < heat_count {
            survivors.extend(heat.spoilt().cloned());
        }
        heat.keep(&survivors);
        field = heat.field().iter().cloned().chain(joins).collect();
        if is_final(&field) || round == heat_count {
            return Ok(Heats { last: Race::new(field), heat: Some(heat), near, launches });
        }
        round += 1;
    }
}

fn near_the_best(ranking: &[(Candidate, Sample)]) -> Vec<Candidate> {
    let limit_ns = ranking.first().map_or(0.0, |(_, best)| NEAR * best.median_ns);
    let near = ranking.iter().filter(|(_, sample)| sample.median_ns <= limit_ns);
    near.map(|(candidate, _)| candidate.clone()).collect()
}

/// Returns how many candidates, at least two, remain of two or more: the faster half without those
/// that are much slower than the best.
fn survivor_count(ranking: &[(Candidate, Sample)]) -> usize {
    let limit_ns = MUCH_SLOWER * ranking[0].1.median_ns;
    let open = ranking.iter().filter(|(_, sample)| sample.median_ns <= limit_ns).count();
    open.min(ranking.len().div_ceil(2)).max(2)
}

/// Returns the entry for a race: the incumbent, unless another candidate is clearly faster. Of
/// several, the fastest is chosen. `seen` are the classes of the transfer in this search, and
/// `old_class` is that of the query's old entry, in which the incumbent is not beaten either. `None` if
/// the choice was measured in fewer than two launches.
pub(crate) fn won(
    query: &Query,
    race: &Race,
    incumbent: Option<&Candidate>,
    old_class: Option<TransferClass>,
    seen: &[TransferClass],
    rigour: Rigour,
) -> Option<Entry> {
    let ranking = race.ranking();
    // A candidate that cannot be measured here, or never could, defends nothing.
    let incumbent = incumbent.filter(|one| race.field().contains(one) && !race.is_refused(one));
    let place = match incumbent {
        Some(incumbent) => {
            let all: Vec<_> = seen.iter().copied().chain(old_class).collect();
            let is_better = |(one, _): &(Candidate, Sample)| race.is_clear(one, incumbent, &all);
            let better = ranking.iter().position(is_better);
            better.or_else(|| ranking.iter().position(|(one, _)| one == incumbent))?
        }
        None => 0,
    };
    let (choice, mut sample) = ranking.get(place)?.clone();
    if sample.launches < FEWEST_LAUNCHES {
        // On a busy machine, disturbed blocks of several launches say more than quiet ones of one.
        sample = race.sample_of_all(&choice)?;
    }
    if sample.launches < FEWEST_LAUNCHES {
        return None;
    }
    let median_ns = rounded_ns(sample.median_ns);
    let mut others = ranking.into_iter().filter(|(one, _)| *one != choice);
    let second = others.next();
    let confidence = match &second {
        _ if race.quiet_launches(&choice) < Gain::SURE_LAUNCHES => Confidence::Open,
        None => Confidence::Alone,
        Some((second, _)) if race.is_clear(&choice, second, seen) => Confidence::Clear,
        Some(_) => Confidence::Tie,
    };
    // The medians are of different moments, but the ratio is of neighbouring blocks.
    let runner_up = second.map(|(candidate, sample)| {
        let gain = race.gain(&candidate, &choice);
        let median_ns = rounded_ns(gain.map_or(sample.median_ns, |it| it.ratio * median_ns));
        RunnerUp { candidate, median_ns }
    });
    let near = others.filter(|(_, other)| other.median_ns <= NEAR * sample.median_ns);
    let contenders = near.map(|(candidate, _)| candidate).take(MOST_CONTENDERS).collect();
    Some(Entry {
        query: *query,
        choice,
        median_ns,
        ci95_ns: Some((rounded_ns(sample.ci95_ns.0), rounded_ns(sample.ci95_ns.1))),
        runner_up,
        contenders,
        class: sample.class,
        confidence,
        rigour,
        undisturbed: race.undisturbed_share(),
        busy: None,
    })
}

/// Returns an entry that also keeps candidates which came near in earlier races of the query.
pub(crate) fn after(near: impl IntoIterator<Item = Candidate>, entry: Entry) -> Entry {
    let mut contenders = entry.contenders.clone();
    for one in near {
        let is_new = one != entry.choice && !entry.alternatives().any(|other| *other == one);
        if is_new && !contenders.contains(&one) {
            contenders.push(one);
        }
    }
    contenders.truncate(if entry.runner_up.is_some() { MOST_CONTENDERS } else { 0 });
    Entry { contenders, ..entry }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn ranking_of(times: &[(f64, f64, f64)]) -> Vec<(Candidate, Sample)> {
        let one = |(index, &(low, median_ns, high)): (usize, &(f64, f64, f64))| {
            let candidate = Candidate::new("tree").with("radix", index as u64);
            let ci95_ns = (low, high);
            (candidate, Sample { median_ns, ci95_ns, p99_ns: high, launches: 9, class: None })
        };
        times.iter().enumerate().map(one).collect()
    }

    #[test]
    fn half_survives_without_the_clearly_slower() {
        let close = ranking_of(&[(9.0, 10.0, 12.0); 5]);
        assert_eq!(survivor_count(&close), 3);
        let apart = ranking_of(&[
            (9.0, 10.0, 11.0),
            (19.0, 20.0, 21.0),
            (29.0, 30.0, 31.0),
            (29.0, 30.0, 31.0),
            (39.0, 40.0, 41.0),
        ]);
        assert_eq!(survivor_count(&apart), 2, "a runner-up is kept");
    }

    /// So each query has an entry on a machine that is quiet in one launch only.
    #[test]
    fn disturbed_blocks_give_the_time_if_one_launch_is_quiet() {
        let one = Candidate::new("one");
        let query = consort_fabric::CallSpec::barrier(3).query();
        let entry = |disturbed: &[bool]| {
            let mut race = Race::new(vec![one.clone()]);
            for &is_disturbed in disturbed {
                let ns = if is_disturbed { 9.0 } else { 1.0 };
                let block = crate::Block { ns, class: None, turn: 0, is_disturbed };
                race.add(vec![Some(vec![block])]);
            }
            won(&query, &race, None, None, &[], Rigour::Measure)
        };
        let median_ns = |disturbed: &[bool]| entry(disturbed).map(|entry| entry.median_ns);
        assert_eq!(median_ns(&[true, false, true]), Some(9.0));
        assert_eq!(median_ns(&[false, true, false]), Some(1.0));
        assert_eq!(median_ns(&[false]), None);
        assert_eq!(entry(&[true, false, true]).unwrap().confidence, Confidence::Open);
    }

    #[test]
    fn slices_stay_between_floor_and_cap() {
        let share = Duration::from_secs(10);
        assert_eq!(slice(4, share, cap(Rigour::Measure, 4)), MEASURE_CAP);
        assert_eq!(slice(4, share, cap(Rigour::Exhaustive, 4)), EXHAUSTIVE_CAP * 4);
        assert_eq!(slice(4, Duration::ZERO, cap(Rigour::Patient, 4)), FLOOR * 4);
    }
}
