//! The gain by tuning: measures the choices again, next to a thread library and simpler algorithms,
//! each point in separate launches.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use consort::{
    launch::Fabric,
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Candidate, Collective, Query},
};
use consort_fabric::{CallSpec, OperatorClass, statistics::Gain};
use consort_tuner::{Catalog, Entry, Grid, Measurements, Sample, Selector, Wisdom};
use serde::Serialize;

use super::{launch::SessionError, work::Work, workbench::NativeWorkbench};
use crate::{
    gain,
    peers::threads,
    query_json::{self, QueryJson},
};

/// Sizes of interest to a reader; the nearest ones in the grid are used.
const SIZES_BYTES: [u64; 4] = [8, 4 << 10, 64 << 10, 1 << 20];
/// The thread libraries that are on every machine.
const LIBRARIES: [&str; 2] = ["pthread", "std"];
/// The longest time for one point, whatever the budget.
const LONGEST: Duration = Duration::from_secs(2);
/// The shortest time for one point.
const SHORTEST: Duration = Duration::from_millis(10);

/// One point: times of a call in nanoseconds; `None` for times that do not apply.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The query.
    #[serde(flatten, with = "QueryJson")]
    pub query: Query,
    /// The faster of the thread libraries.
    pub library: Option<&'static str>,
    /// Its time.
    pub library_ns: Option<f64>,
    /// The confidence interval of this time.
    pub library_ci95_ns: Option<(f64, f64)>,
    /// The time of the flat tree.
    pub flat_ns: Option<f64>,
    /// The confidence interval of this time.
    pub flat_ci95_ns: Option<(f64, f64)>,
    /// The radix of the fastest k-nomial tree.
    pub tree_radix: Option<u64>,
    /// Its time.
    pub tree_ns: Option<f64>,
    /// The confidence interval of this time.
    pub tree_ci95_ns: Option<(f64, f64)>,
    /// The candidate that tuning has chosen, or the simpler one that was faster here.
    #[serde(serialize_with = "query_json::shown")]
    pub chosen: Candidate,
    /// Its time.
    pub chosen_ns: Option<f64>,
    /// The confidence interval of this time.
    pub chosen_ci95_ns: Option<(f64, f64)>,
    /// The time in symmetric memory with Loose modes, using the choice for these.
    pub loose_ns: Option<f64>,
    /// The time with Strict modes, likewise.
    pub strict_ns: Option<f64>,
    /// The query's new entry, if a simpler algorithm was faster than the choice in wisdom. Then
    /// `chosen` is the simpler algorithm.
    #[serde(skip)]
    pub corrected: Option<Entry>,
}

impl Point {
    /// Returns how many times as fast the choice is as the thread library.
    pub fn gain(&self) -> Option<Gain> {
        let library = (self.library_ns?, self.library_ci95_ns);
        Some(gain::between(library, (self.chosen_ns?, self.chosen_ci95_ns)))
    }

    /// Returns the time of a Strict call as a multiple of a Loose one's.
    pub fn strictness(&self) -> Option<f64> {
        Some(self.strict_ns? / self.loose_ns?)
    }
}

/// Returns the queries of a grid whose points are of interest to a reader.
pub fn queries(grid: &Grid) -> Vec<Query> {
    let distance = |one: u64, other: u64| one.max(other) / one.min(other).max(1);
    let mut sizes: Vec<u64> = SIZES_BYTES
        .iter()
        .filter_map(|&size| grid.bytes.iter().copied().min_by_key(|&own| distance(own, size)))
        .collect();
    sizes.dedup();
    let leaves_early = |sync: &SyncModes| sync.exit == SyncMode::None;
    let sync = if grid.syncs.contains(&SyncModes::MINE) { SyncModes::MINE } else { grid.syncs[0] };
    let symmetric = leaves_early(&sync) || !grid.symmetric.contains(&false);
    let mut queries = Vec::new();
    for &collective in &grid.collectives {
        for &pes in &grid.pes {
            let operator = OperatorClass::Commutative;
            let query = |sync, bytes| Query { collective, sync, pes, bytes, operator, symmetric };
            if collective == Collective::Barrier {
                queries.push(query(SyncModes::STRICT, 0));
            } else {
                queries.extend(sizes.iter().map(|&bytes| query(sync, bytes)));
            }
        }
    }
    queries
}

/// Measures the points of these queries within about `budget`, until `stop` is set. Passes the
/// number of completed points, their total, and a description of the next one to `show`.
///
/// # Errors
/// If a job cannot be launched or fails.
pub fn run(
    fabric: Fabric,
    queries: &[Query],
    wisdom: &Wisdom,
    budget: Duration,
    stop: &AtomicBool,
    mut show: impl FnMut(usize, usize, &str),
) -> Result<Vec<Point>> {
    let mut bench = NativeWorkbench::new(fabric, Some(wisdom));
    let started = Instant::now();
    let mut points = Vec::new();
    for (index, query) in queries.iter().enumerate() {
        let left_count = u32::try_from(queries.len() - index).unwrap_or(u32::MAX);
        let share = budget.saturating_sub(started.elapsed()) / left_count;
        // Relaxed: the flag publishes no other data.
        if stop.load(Ordering::Relaxed) || share < SHORTEST {
            break;
        }
        show(index, queries.len(), &format!("comparing: {query}"));
        let point = point(&mut bench, wisdom, query, share.min(LONGEST))
            .with_context(|| format!("comparing failed at {query}"))?;
        points.extend(point);
    }
    Ok(points)
}

/// Measures one point; `None` if no candidate can serve it.
fn point(
    bench: &mut NativeWorkbench,
    wisdom: &Wisdom,
    query: &Query,
    budget: Duration,
) -> Result<Option<Point>, SessionError> {
    let algorithms = bench.algorithms();
    let Some(mut chosen) = choice(algorithms, wisdom, query) else { return Ok(None) };
    let is_barrier = query.collective == Collective::Barrier;
    let (gain, modes) =
        if is_barrier { (budget, None) } else { (budget / 3 * 2, Some(budget / 3)) };

    let is_simple = |candidate: &Candidate| is_flat(candidate) || is_tree(candidate);
    let mut ours: Vec<Candidate> = bench.candidates(query);
    ours.retain(|candidate| is_simple(candidate) || *candidate == chosen);
    if !ours.contains(&chosen) {
        ours.push(chosen.clone());
    }
    let names = threads::names();
    // Processes have no thread libraries.
    let is_here = |name| algorithms.fabric() == Fabric::Threads && LIBRARIES.contains(name);
    let libraries: Vec<usize> = (0..names.len()).filter(|&index| is_here(&names[index])).collect();
    let peer = |&index: &usize| Work::of_peer(query, index);
    let all = libraries.iter().map(peer).chain(ours.iter().map(|ours| Work::of(query, ours)));
    let times = bench.time(query.pes, &all.collect::<Vec<Work>>(), gain)?;
    let (theirs, own) = times.split_at(libraries.len());
    let library = fastest(libraries.iter().zip(theirs.iter().copied()));
    let own: Vec<(&Candidate, Option<Sample>)> = ours.iter().zip(own.iter().copied()).collect();
    let fastest_of = |wanted: &dyn Fn(&Candidate) -> bool| {
        fastest(own.iter().copied().filter(|(candidate, _)| wanted(candidate)))
    };
    let (flat, tree) = (fastest_of(&is_flat), fastest_of(&is_tree));
    let mut of_chosen = fastest_of(&|candidate| *candidate == chosen);
    let simple = fastest_of(&is_simple);
    let corrected = wisdom.entry(query).filter(|entry| entry.choice == chosen).and_then(|entry| {
        let ((rival, faster), (_, own)) = (simple?, of_chosen?);
        entry.beaten_by(rival, &faster, &own)
    });
    if let Some(entry) = &corrected {
        (chosen, of_chosen) = (entry.choice.clone(), simple);
    }

    let (mut loose_ns, mut strict_ns) = (None, None);
    if let Some(budget) = modes {
        let modes = [SyncModes::LOOSE, SyncModes::STRICT].map(|sync| Query {
            sync,
            symmetric: true,
            ..*query
        });
        let work: Vec<Work> = modes
            .iter()
            .filter_map(|query| Some(Work::of(query, &choice(algorithms, wisdom, query)?)))
            .collect();
        if let [loose, strict] = &bench.time(query.pes, &work, budget)?[..] {
            let median = |sample: &Option<Sample>| sample.map(|sample| sample.median_ns);
            (loose_ns, strict_ns) = (median(loose), median(strict));
        }
    }
    Ok(Some(Point {
        query: *query,
        library: library.map(|(&index, _)| names[index]),
        library_ns: library.map(ns),
        library_ci95_ns: library.and_then(ci95_ns),
        flat_ns: flat.map(ns),
        flat_ci95_ns: flat.and_then(ci95_ns),
        tree_radix: tree.and_then(|(tree, _)| tree.parameter("radix")),
        tree_ns: tree.map(ns),
        tree_ci95_ns: tree.and_then(ci95_ns),
        chosen_ns: of_chosen.map(ns),
        chosen_ci95_ns: of_chosen.and_then(ci95_ns),
        chosen,
        loose_ns,
        strict_ns,
        corrected,
    }))
}

fn is_flat(candidate: &Candidate) -> bool {
    candidate.algorithm == "flat"
}

fn is_tree(candidate: &Candidate) -> bool {
    candidate.algorithm == "knomial"
}

fn choice(algorithms: &Algorithms, wisdom: &Wisdom, query: &Query) -> Option<Candidate> {
    let measured = Measurements::Wisdom(wisdom, algorithms.cores());
    let selected = Selector::new(algorithms, measured).select(&CallSpec::from(query))?;
    Some(selected.candidate.into_owned())
}

/// Returns the fastest way, with its sample.
fn fastest<T>(ways: impl Iterator<Item = (T, Option<Sample>)>) -> Option<(T, Sample)> {
    ways.filter_map(|(way, sample)| Some((way, sample?)))
        .min_by(|(_, one), (_, other)| one.median_ns.total_cmp(&other.median_ns))
}

fn ns<T>((_, sample): (T, Sample)) -> f64 {
    sample.median_ns
}

/// Returns the interval of a sample; `None` for one launch, which says little about the next.
fn ci95_ns<T>((_, sample): (T, Sample)) -> Option<(f64, f64)> {
    (sample.launches > 1).then_some(sample.ci95_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_samples_sizes_of_the_grid() {
        let grid = Grid::new(2, &[8]);
        let queries = queries(&grid);
        let moving = Grid::COLLECTIVES.len() - 1;
        assert_eq!(queries.len(), 2 * (1 + 4 * moving));
        let sizes: Vec<u64> = queries[2..6].iter().map(|query| query.bytes).collect();
        assert_eq!(sizes, [8, 4 << 10, 32 << 10, 1 << 20]);
        let one = Grid { bytes: vec![24], ..grid.clone() };
        assert_eq!(super::queries(&one).len(), 2 * (1 + moving));
        let loose = Grid { syncs: vec![SyncModes::LOOSE], ..grid };
        let of_loose = super::queries(&loose);
        assert!(of_loose.iter().all(|query| query.symmetric));
    }

    #[test]
    fn a_point_is_measured_as_a_whole() {
        let algorithms = Algorithms::here();
        let wisdom = Wisdom::new(algorithms.identity().clone());
        let query = queries(&Grid::new(2, &[]))[1];
        let point = point(
            &mut NativeWorkbench::new(Fabric::Threads, None),
            &wisdom,
            &query,
            Duration::from_millis(300),
        );
        let point = point.unwrap().unwrap();
        assert!(point.gain().is_some() && point.strictness().is_some(), "{point:?}");
        let is_within = |(low, high)| (low..=high).contains(&point.chosen_ns.unwrap());
        assert!(point.chosen_ci95_ns.is_none_or(is_within), "{point:?}");
        assert!(point.flat_ns.is_some() && point.tree_radix.is_some(), "{point:?}");
    }
}
