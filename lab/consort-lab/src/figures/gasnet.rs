//! G1, G4, G7 (Nishtala, Zheng, Hargrove and Yelick, "Tuning collective communication for
//! Partitioned Global Address Space programming models", 2011): the effects of modes, addresses
//! and levels on each collective.
//!
//! Each experiment compares two ways of making the same call, at several sizes, with one PE for
//! each core and the best of a few candidates for each way:
//!
//! - G1 (sections 2.1 and 7): the loosest modes and the strictest;
//! - G4 (sections 2.4 and 5.1): symmetric memory, in which all addresses are known (Single), and
//!   private slices, whose addresses are exchanged or whose data is copied (Local);
//! - G7 (section 3.1): one level, in which all PEs are alike, and two levels, in which one PE of
//!   each process communicates for it. The processes are those of an MPI and share no memory. They
//!   run on the machines on which the MPI starts them.

use std::time::Duration;

use anyhow::{Result, ensure};
use consort::{
    launch::{Fabric, ProcessShape},
    sync_modes::SyncModes,
    tune::{Algorithms, Candidate, Collective, Query},
};
use consort_fabric::statistics::median;

use super::{
    experiment::{Experiment, Outcome},
    figure::Figure,
    measure::{self, EQUAL_WITHIN, Pair},
    networks::{CRAY, Machine, RANGER},
    quantity::Quantity,
    transfers::ADDRESSES,
};
use consort_bench::{
    harness::{Work, placement::PlacementSurvey},
    page::Page,
    query_json::sums,
    units::{counted, in_a_line, ratio, size},
};
use consort_console::usage::Usage;

figures! { pub FIGURES of "G1", "section 7": "ratio":
    STRICTEST_MEDIAN("strictest over loosest, median")
    // "sometimes nearly an order of magnitude", of any of the machines.
    STRICTEST_MOST("strictest over loosest, most", CRAY == 10.0, RANGER == 10.0)
}

/// The number of PEs of the simulated machines. It keeps all collectives short.
const SIMULATED_PES: u32 = 32;
const SIMULATED_BYTES: [usize; 2] = [8, 1 << 10];

/// The two ways of G1.
const STRICTEST: &str = "strictest over loosest";
const SMALL_BYTES: [usize; 3] = [8, 1 << 10, 8 << 10];

/// Two levels, and the MPI's own collectives, which may also have levels.
const TWO_LEVELS: &str = "two_level";
const OF_THE_MPI: &str = "vendor";
/// PEs in each process, for two levels.
const PES_EACH: u32 = 2;
const LEVELS: Fabric = Fabric::Mpi(ProcessShape { pes_each: PES_EACH as usize, in_turn: false });
const LEVEL_BYTES: [usize; 3] = [8, 1 << 10, 8 << 10];

/// A comparison of two ways over all collectives.
struct Comparison<'c> {
    /// The names of the two ways in the ratio.
    what: &'c str,
    /// The figures that the paper has for broadcasts, by their bytes.
    broadcasts: &'static [Figure],
    sizes_bytes: &'c [usize],
    pes: u32,
    pairs: Vec<Pair>,
}

impl<'c> Comparison<'c> {
    /// Measures every collective that both ways can serve.
    fn of(
        experiment: &Experiment<'_>,
        what: &'c str,
        sizes_bytes: &'c [usize],
        both: impl Fn(Collective, u32, usize) -> [Vec<Work>; 2],
    ) -> Result<Self> {
        let pes = experiment.team_size();
        let mut groups: Vec<[Vec<Work>; 2]> = moving()
            .flat_map(|collective| sizes_bytes.iter().map(move |&bytes| (collective, bytes)))
            .map(|(collective, bytes)| both(collective, pes, bytes))
            .collect();
        groups.retain(|group| group.iter().all(|one| !one.is_empty()));
        let pairs = experiment.pairs(pes, &groups, experiment.budget)?;
        Ok(Self { what, broadcasts: &[], sizes_bytes, pes, pairs })
    }

    /// Returns the pairs of each collective.
    fn by_collective(&self) -> impl Iterator<Item = &[Pair]> {
        self.pairs.chunk_by(|one, other| collective(one) == collective(other))
    }

    /// Returns a ratio for each call.
    fn quantities(&self) -> Vec<Quantity> {
        let quantity = |pair: &Pair| {
            let (collective, bytes) = (collective(pair), pair.bytes());
            let mut its = self.broadcasts.iter().filter(|_| collective == Collective::Broadcast);
            let figure = match its.find(|figure| u64::from(figure.at) == bytes) {
                Some(figure) => figure.on(CRAY),
                None => ratio_of(CRAY, collective, bytes, self.what),
            };
            figure.with_pes(self.pes).native(pair.ratio())
        };
        self.pairs.iter().map(quantity).collect()
    }

    /// Returns a page with a line for each collective and a column for each size.
    fn page(&self, experiment: &Experiment<'_>) -> Page {
        let mut header = vec![self.what.to_owned()];
        header.extend(self.sizes_bytes.iter().map(|&bytes| size(bytes as u64)));
        let mut rows = Vec::new();
        for pairs in self.by_collective() {
            let cells = self.sizes_bytes.iter().map(|&bytes| {
                let pair = pairs.iter().find(|pair| pair.bytes() == bytes as u64);
                pair.map_or("-".to_owned(), |pair| ratio(pair.ratio()))
            });
            rows.push(std::iter::once(collective(&pairs[0]).to_string()).chain(cells).collect());
        }
        let mut page = Page::default();
        page.paragraph(experiment.placement(self.pes));
        page.table(header, rows, 1..=self.sizes_bytes.len());
        page.lines("\n");
        page
    }

    fn outcome(
        &self,
        experiment: &Experiment<'_>,
        verdict: String,
        paper: &str,
        more: &[(Quantity, f64)],
    ) -> Outcome {
        let verdict = if self.pairs.is_empty() {
            "nothing could be measured".to_owned()
        } else {
            format!("{} PEs: {verdict}", self.pes)
        };
        let mut page = self.page(experiment);
        page.paragraph(format!("The paper: {paper}"));
        let more = more.iter().cloned();
        let more = more.map(|(one, value)| one.with_pes(self.pes).native(value));
        let quantities = self.quantities().into_iter().chain(more).collect();
        Outcome { verdict, page, quantities }
    }
}

/// Returns the quantity that compares two ways of making a call.
fn ratio_of(machine: &'static str, collective: Collective, bytes: u64, ways: &str) -> Quantity {
    Quantity::new(machine, format!("{collective} of {bytes} B, {ways}"), "ratio")
}

/// Returns all collectives that move data in blocks of equal length.
fn moving() -> impl Iterator<Item = Collective> {
    Collective::regulars().filter(|&collective| collective != Collective::Barrier)
}

fn collective(pair: &Pair) -> Collective {
    pair.one.work.query().expect("a pair is of calls").collective
}

fn any(_: &str) -> bool {
    true
}

/// G1. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn modes(experiment: &Experiment<'_>) -> Result<Outcome> {
    let comparison =
        Comparison::of(experiment, STRICTEST, &SMALL_BYTES, |collective, pes, bytes| {
            let query = |sync| sums(collective, sync, pes, bytes, true);
            [measure::ONE_BARRIER, SyncModes::LOOSE].map(|sync| measure::likely(&query(sync), any))
        })?;
    let by = |one: &&Pair, other: &&Pair| one.ratio().total_cmp(&other.ratio());
    let mut ratios: Vec<f64> = comparison.pairs.iter().map(Pair::ratio).collect();
    let Some(most) = comparison.pairs.iter().max_by(by) else {
        return Ok(comparison.outcome(experiment, String::new(), "", &[]));
    };
    let middle = median(&mut ratios);
    let verdict = format!(
        "the strictest modes take {} as long as the loosest in the median, at most {} ({} of {})",
        ratio(middle),
        ratio(most.ratio()),
        collective(most),
        size(most.bytes())
    );
    let says = "sometimes nearly an order of magnitude between the loosest and the strictest.";
    let more = [(STRICTEST_MEDIAN.on(CRAY), middle), (STRICTEST_MOST.on(CRAY), most.ratio())];
    Ok(comparison.outcome(experiment, verdict, says, &more))
}

/// Simulates G1 on the paper's machines, with the algorithms that the model ranks first.
///
/// # Errors
/// When a simulation fails.
pub fn simulated_modes() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for name in [CRAY, RANGER] {
        let machine = Machine::new(name, SIMULATED_PES)?.with_credits();
        let described = machine.described()?;
        let form = |candidate: &Candidate| vec![candidate.algorithm.clone()];
        let mut ratios = Vec::new();
        let mut add = |figure: Quantity, value: f64| {
            all.push(figure.with_pes(SIMULATED_PES).simulated(value));
        };
        for (collective, bytes) in
            moving().flat_map(|collective| SIMULATED_BYTES.map(|bytes| (collective, bytes)))
        {
            let ns = |sync| -> Result<f64> {
                let query = sums(collective, sync, SIMULATED_PES, bytes, true);
                let finalists = measure::finalists(&described, &query, |_| true, form);
                Ok(machine.best(&query, finalists)?.1)
            };
            let ratio = ns(measure::ONE_BARRIER)? / ns(SyncModes::LOOSE)?;
            add(ratio_of(name, collective, bytes as u64, STRICTEST), ratio);
            ratios.push(ratio);
        }
        add(STRICTEST_MEDIAN.on(name), median(&mut ratios));
        add(STRICTEST_MOST.on(name), ratios[ratios.len() - 1]);
    }
    Ok(all)
}

/// G4. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn addresses(experiment: &Experiment<'_>) -> Result<Outcome> {
    let what = "Local over Single";
    let sizes_bytes = ADDRESSES.each_ref().map(|figure| figure.at as usize);
    let comparison = Comparison::of(experiment, what, &sizes_bytes, |collective, pes, bytes| {
        let query = sums(collective, SyncModes::MINE, pes, bytes, true);
        let in_memory = |symmetric| measure::likely(&Query { symmetric, ..query }, any);
        [false, true].map(in_memory)
    })?;
    let comparison = Comparison { broadcasts: &ADDRESSES, ..comparison };
    let ahead = |bytes| {
        let of_size = || comparison.pairs.iter().filter(move |pair| pair.bytes() == bytes as u64);
        let ahead = of_size().filter(|pair| pair.ratio() * EQUAL_WITHIN >= 1.0).count();
        format!("{ahead} of {} at {}", of_size().count(), size(bytes as u64))
    };
    let verdict = format!(
        "collectives in which Single is ahead, or within 2 %: {}",
        sizes_bytes.map(ahead).join(", ")
    );
    let says = "Single is consistently ahead, at small sizes and at large ones.";
    Ok(comparison.outcome(experiment, verdict, says, &[]))
}

/// G7. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job fails, or PEs do not fill processes.
pub fn levels(experiment: &Experiment<'_>) -> Result<Outcome> {
    if !experiment.whole {
        let why = "an MPI takes seconds to start processes: run `consort-lab reproduce G7`";
        return Ok(Outcome::unmeasured(why));
    }
    let fabric = LEVELS;
    let pes = experiment.pes.unwrap_or(2 * PES_EACH);
    ensure!(pes.is_multiple_of(PES_EACH), Usage(format!("--pes: each process has {PES_EACH} PEs")));
    let survey = PlacementSurvey { fabric, pes, all: false, budget: Duration::ZERO };
    let places = match survey.run(experiment.stop) {
        Ok(found) => found.places,
        Err(error) => return Ok(Outcome::unmeasured(&in_a_line(&error))),
    };
    let machines = places.iter().map(|place| place.machine).max().map_or(0, |most| most + 1);
    let experiment = Experiment { fabric, pes: Some(pes), ..*experiment };
    let what = "one level over two";
    let comparison = Comparison::of(&experiment, what, &LEVEL_BYTES, |collective, pes, bytes| {
        let query = sums(collective, SyncModes::MINE, pes, bytes, false);
        [false, true].map(|two| of_levels(&query, two))
    })?;
    let mut ratios: Vec<f64> = comparison.pairs.iter().map(Pair::ratio).collect();
    if ratios.is_empty() {
        return Ok(comparison.outcome(&experiment, String::new(), "", &[]));
    }
    let middle = median(&mut ratios);
    let network = if machines == 1 {
        "; one machine is not a network: give mpirun others, for instance in its host file"
    } else {
        ""
    };
    let verdict = format!(
        "on {}, one level takes {} as long as two in the median, from {} to {}{network}",
        counted(machines, "machine"),
        ratio(middle),
        ratio(ratios[0]),
        ratio(ratios[ratios.len() - 1]),
    );
    let says = "to minimize the network traffic, a representative of each node sends through the \
                network; inside a node, data moves in shared memory (section 3.1).";
    let middle = (Quantity::new(CRAY, format!("{what}, median"), "ratio"), middle);
    Ok(comparison.outcome(&experiment, verdict, says, &[middle]))
}

/// Returns the finalists of one level, or of two.
fn of_levels(query: &Query, two: bool) -> Vec<Work> {
    let fit = |candidate: &Candidate| {
        !names(candidate).iter().any(|name| name == OF_THE_MPI)
            && (candidate.algorithm == TWO_LEVELS) == two
    };
    measure::likely_of(Algorithms::of(LEVELS), query, fit, names)
}

/// Returns the algorithms of a candidate and of its parts.
fn names(candidate: &Candidate) -> Vec<String> {
    let parts = candidate.parts.iter().map(|part| part.algorithm.clone());
    std::iter::once(candidate.algorithm.clone()).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model's finalists, which are measured, include one candidate of each form.
    #[test]
    fn one_and_two_levels_differ() {
        let query = sums(Collective::AllReduce, SyncModes::MINE, 4, 8, false);
        let work = |two| of_levels(&query, two).into_iter();
        let name = |work: Work| work.candidate().map(|(_, by)| names(by)).expect("an algorithm");
        let [one, two] = [false, true].map(|two| work(two).map(name).collect::<Vec<_>>());
        assert!(!one.is_empty() && one.iter().all(|names| names[0] != TWO_LEVELS), "{one:?}");
        assert!(two.len() == 3 && two.iter().all(|names| names[0] == TWO_LEVELS), "{two:?}");
        assert!(two[0] != two[1] && two[1] != two[2] && two[0] != two[2], "{two:?}");
        let mut all = one.iter().chain(&two).flatten();
        assert!(all.all(|name| name != OF_THE_MPI), "{one:?} {two:?}");
    }
}
