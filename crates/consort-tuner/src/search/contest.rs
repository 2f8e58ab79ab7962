//! The contest of a query: finds the fastest of its candidates.
//!
//! Successive halving: each round measures the remaining candidates interleaved, for an equal part
//! of the time. Those whose interval lies above the best one's leave, and so does the slower half
//! of the rest. The last round is a duel. Only the last round decides, so that choice and runner-up
//! come from one run.
//!
//! A launch fixes the places of its threads and buffers, and where PEs share cores also the order
//! of their turns. That favours one candidate or another. So each round is measured in several
//! launches, and intervals are over launches.

use std::time::Duration;

use consort_fabric::{Candidate, Query};

use crate::{
    Confidence, Entry, Rigour, RunnerUp, Sample, Workbench, estimate::ranked, times::rounded_ns,
};

/// The most candidates that the model lets through to be measured at [`Rigour::Measure`].
const HANDFUL: usize = 6;
/// The model's estimate for them is at most this many times that of its favourite.
const PRUNE_RATIO: f64 = 4.0;
/// The most time for one query; at [`Rigour::Exhaustive`] for each of its candidates.
const MEASURE_CAP: Duration = Duration::from_millis(250);
const PATIENT_CAP: Duration = Duration::from_secs(1);
const EXHAUSTIVE_CAP: Duration = Duration::from_millis(100);
/// The least time for a candidate that gives a useful measurement.
const FLOOR: Duration = Duration::from_millis(2);

/// With fewer launches no difference is clear.
pub(crate) const SURE_LAUNCHES: u32 = 8;

/// The candidates that a search at `rigour` measures.
pub(crate) fn field<W: Workbench>(bench: &W, query: &Query, rigour: Rigour) -> Vec<Candidate> {
    let ranked = ranked(bench, query, |_| true);
    if rigour != Rigour::Measure {
        return ranked.into_iter().map(|(candidate, _)| candidate).collect();
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
    field.truncate(HANDFUL);
    field
}

/// The time for a query with `field_size` candidates, if an equal share of the time left is
/// `share`.
pub(crate) fn slice(rigour: Rigour, field_size: usize, share: Duration) -> Duration {
    let field_count = u32::try_from(field_size.max(1)).unwrap_or(u32::MAX);
    let cap = match rigour {
        Rigour::Estimate => Duration::ZERO,
        Rigour::Measure => MEASURE_CAP,
        Rigour::Patient => PATIENT_CAP,
        Rigour::Exhaustive => EXHAUSTIVE_CAP.saturating_mul(field_count),
    };
    let floor = FLOOR.saturating_mul(field_count);
    share.clamp(floor, cap.max(floor))
}

/// Holds the contest for `query` among `field` within `slice`; `None` if no candidate could be
/// measured. Passes the candidates of each round to `announce` before they are measured.
pub(crate) fn hold<W: Workbench>(
    bench: &mut W,
    query: &Query,
    mut field: Vec<Candidate>,
    rigour: Rigour,
    slice: Duration,
    mut announce: impl FnMut(&[Candidate]),
) -> Result<Option<Entry>, W::Error> {
    let round_count = match rigour {
        Rigour::Exhaustive => 1,
        _ => field.len().next_power_of_two().ilog2().max(1),
    };
    loop {
        announce(&field);
        let ranking = ranking(bench, query, &field, slice / round_count)?;
        if round_count == 1 || field.len() <= 2 || ranking.len() <= 1 {
            return Ok(won(query, ranking, rigour));
        }
        let survivors = survivor_count(&ranking);
        field = ranking.into_iter().take(survivors).map(|(candidate, _)| candidate).collect();
    }
}

/// Measures each of `field` once, and returns those that could be measured, the fastest first.
pub(crate) fn ranking<W: Workbench>(
    bench: &mut W,
    query: &Query,
    field: &[Candidate],
    budget: Duration,
) -> Result<Vec<(Candidate, Sample)>, W::Error> {
    let samples = bench.measure(query, field, budget)?;
    assert_eq!(samples.len(), field.len(), "a workbench answers for each candidate");
    let measured = field.iter().cloned().zip(samples);
    let mut ranking: Vec<_> = measured
        .filter_map(|(candidate, sample)| Some((candidate, sample.filter(Sample::is_sound)?)))
        .collect();
    ranking.sort_by(|(a, a_sample), (b, b_sample)| {
        a_sample.median_ns.total_cmp(&b_sample.median_ns).then_with(|| a.cmp(b))
    });
    Ok(ranking)
}

/// How many candidates, of at least two, remain: the faster half without those clearly slower than
/// the best, but at least two.
fn survivor_count(ranking: &[(Candidate, Sample)]) -> usize {
    let best_high_ns = ranking[0].1.ci95_ns.1;
    let open = ranking.iter().filter(|(_, sample)| sample.ci95_ns.0 <= best_high_ns).count();
    open.min(ranking.len().div_ceil(2)).max(2)
}

/// Whether `faster` is clearly faster: both were measured in enough launches for an interval of
/// 95 %, and the intervals do not overlap.
fn are_apart(faster: &Sample, slower: &Sample) -> bool {
    let is_sure = faster.launches.min(slower.launches) >= SURE_LAUNCHES;
    is_sure && faster.ci95_ns.1 < slower.ci95_ns.0
}

/// The entry for a ranking.
fn won(query: &Query, ranking: Vec<(Candidate, Sample)>, rigour: Rigour) -> Option<Entry> {
    let mut ranking = ranking.into_iter();
    let (choice, sample) = ranking.next()?;
    let second = ranking.next();
    let confidence = match &second {
        None => Confidence::Alone,
        Some((_, second)) if are_apart(&sample, second) => Confidence::Clear,
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
        rigour,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::{Collective, OperatorClass, SyncModes};

    const QUERY: Query = Query {
        collective: Collective::Broadcast,
        sync: SyncModes::MINE,
        pes: 2,
        bytes: 8,
        operator: OperatorClass::Commutative,
        symmetric: true,
    };

    fn ranking_of(times: &[(f64, f64, f64)]) -> Vec<(Candidate, Sample)> {
        let one = |(index, &(low, median_ns, high)): (usize, &(f64, f64, f64))| {
            let candidate = Candidate::new("tree").with("radix", index as u64);
            let ci95_ns = (low, high);
            (candidate, Sample { median_ns, ci95_ns, p99_ns: high, launches: 9, class: None })
        };
        times.iter().enumerate().map(one).collect()
    }

    #[test]
    fn half_goes_on_and_the_clearly_slower_do_not() {
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

    #[test]
    fn a_few_launches_leave_it_open() {
        let entry = |launches| {
            let mut ranking = ranking_of(&[(9.0, 10.0, 11.0), (19.0, 20.0, 21.0)]);
            ranking.iter_mut().for_each(|(_, sample)| sample.launches = launches);
            won(&QUERY, ranking, Rigour::Measure).unwrap().confidence
        };
        assert_eq!(entry(7), Confidence::Tie);
        assert_eq!(entry(8), Confidence::Clear);
    }

    #[test]
    fn slices_stay_between_floor_and_cap() {
        let share = Duration::from_secs(10);
        assert_eq!(slice(Rigour::Measure, 4, share), MEASURE_CAP);
        assert_eq!(slice(Rigour::Exhaustive, 4, share), EXHAUSTIVE_CAP * 4);
        assert_eq!(slice(Rigour::Patient, 4, Duration::ZERO), FLOOR * 4);
    }
}
