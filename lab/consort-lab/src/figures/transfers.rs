//! G5 (Nishtala, Zheng, Hargrove and Yelick 2011, sections 3.3 and 5.2, figures 4 and 5): ways to
//! move the data of a broadcast from one PE to the next, each down its best tree.
//!
//! A signalling put writes to the data's final place in symmetric memory. In a rendezvous, a PE
//! exposes its data; the next PEs get it and report when they have it. Messages, which are copied
//! out of an inbox, are a third way here. As in the paper, a barrier separates the calls, and data
//! may move before all PEs have entered.

use anyhow::Result;
use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::{Candidate, Collective, Query},
};

use super::{
    experiment::{Experiment, Outcome},
    figure::Figure,
    measure::{self, EQUAL_WITHIN, Way, radices},
    networks::{CRAY, Machine, RANGER},
    quantity::Quantity,
};
use consort_bench::{
    harness::Work,
    page::Page,
    query_json::sums,
    units::{ratio, size, time},
};

figures! { pub FIGURES of "G5", "section 5.2, figures 4 and 5": "ratio":
    // "The Put mechanism consistently outperforms the Rendez-Vous mechanism".
    RENDEZVOUS["broadcast of ", " B, rendezvous over put";
        8 | 64 | 512 | 4096 | 32768 | 262144 => (CRAY >= 1.0, RANGER >= 1.0)]
}

figures! { pub ADDRESS_FIGURES of "G4", "section 5.1, figures 2 and 3": "ratio":
    // "can consistently realize better performance".
    ADDRESSES["broadcast of ", " B, Local over Single";
        8 | 8192 | 131072 => (CRAY >= 1.0, RANGER >= 1.0)]
    // "a lot higher on the CrayXT4 than the Sun Constellation".
    OVERHEAD["broadcast of ", " B, time that Local adds, over the Sun's";
        8 | 8192 | 131072 => (CRAY >= 1.0)]
}

/// The number of cores in both figures.
const PES: u32 = 1024;

/// A way to move data from one PE to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    Put,
    Rendezvous,
    Messages,
}

impl Transfer {
    const EVERY: [Self; 3] = [Self::Put, Self::Rendezvous, Self::Messages];

    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Rendezvous => "rendezvous",
            Self::Messages => "messages",
        }
    }

    /// Returns the trees that use this way, including those of one level.
    fn candidates(self, pes: u32) -> Vec<Candidate> {
        let tree = |name| move |radix| Candidate::new(name).with("radix", radix);
        // A tree of radix 1 is a chain, which needs chunks.
        let radices = || radices(pes).filter(|&radix| radix > 1);
        let flat = u64::from(pes).clamp(2, 1 << 16);
        match self {
            Self::Put => radices().chain([flat]).map(tree("knomial_put")).collect(),
            Self::Rendezvous => {
                let flat = Candidate::new("direct");
                radices().map(tree("knomial_rendezvous")).chain([flat]).collect()
            }
            Self::Messages => {
                let trees = radices().map(|radix| Way::Sent.tree(radix));
                trees.chain([measure::flat()]).collect()
            }
        }
    }
}

/// Returns a broadcast in symmetric memory that ends with a barrier.
fn query(pes: u32, bytes: usize, entry: SyncMode) -> Query {
    let sync = SyncModes { entry, exit: SyncMode::All };
    sums(Collective::Broadcast, sync, pes, bytes, true)
}

/// The best candidate of each way for a size: its name and its time in nanoseconds.
struct Row {
    figure: &'static Figure,
    bests: [(String, f64); Transfer::EVERY.len()],
}

impl Row {
    /// Returns the best trees of a simulated machine.
    fn simulated(machine: &Machine, figure: &'static Figure) -> Result<Self> {
        let query = query(machine.pes, figure.at as usize, SyncMode::None);
        let best = |transfer: Transfer| -> Result<_> {
            let (by, ns) = machine.best(&query, transfer.candidates(machine.pes))?;
            Ok((by.map_or_else(String::new, |by| by.to_string()), ns))
        };
        let [put, rendezvous, messages] = Transfer::EVERY.map(best);
        Ok(Self { figure, bests: [put?, rendezvous?, messages?] })
    }

    /// Returns the time of a way as a multiple of the put's.
    fn over_put(&self, transfer: Transfer) -> f64 {
        self.bests[transfer as usize].1 / self.bests[Transfer::Put as usize].1
    }

    /// Returns the figures of a row, with their values.
    fn figures(&self, machine: &'static str, pes: u32) -> impl Iterator<Item = (Quantity, f64)> {
        let bytes = self.figure.at;
        let of = move |what: &str, unit| {
            Quantity::new(machine, format!("broadcast of {bytes} B, {what}"), unit)
        };
        let times = Transfer::EVERY.into_iter().zip(&self.bests);
        let times = times.map(move |(transfer, (_, ns))| (of(transfer.name(), "us"), ns / 1e3));
        let over_put = [
            (self.figure.on(machine), self.over_put(Transfer::Rendezvous)),
            (of("messages over put", "ratio"), self.over_put(Transfer::Messages)),
        ];
        times.chain(over_put).map(move |(figure, value)| (figure.with_pes(pes), value))
    }
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_size();
    let groups: Vec<Vec<Work>> = RENDEZVOUS
        .iter()
        .flat_map(|figure| {
            let query = query(pes, figure.at as usize, SyncMode::None);
            Transfer::EVERY.map(|transfer| {
                let candidates = transfer.candidates(pes);
                candidates.iter().map(|candidate| Work::of(&query, candidate)).collect()
            })
        })
        .collect();
    let bests = experiment.best(pes, &groups, experiment.budget)?;
    let mut rows = Vec::new();
    for (figure, bests) in RENDEZVOUS.iter().zip(bests.chunks(Transfer::EVERY.len())) {
        if let [Some(put), Some(rendezvous), Some(messages)] = bests {
            let bests = [put, rendezvous, messages].map(|best| (best.name(), best.ns));
            rows.push(Row { figure, bests });
        }
    }
    let mut page = Page::default();
    page.paragraph(experiment.placement(pes));
    table(&mut page, &rows);
    page.paragraph(
        "The paper: put is consistently ahead in broadcasts. Among threads, the signal and the \
         replies of a rendezvous are transfers of a line, not trips through a network.",
    );
    let ahead: Vec<&Row> = rows
        .iter()
        .filter(|row| row.over_put(Transfer::Rendezvous) * EQUAL_WITHIN >= 1.0)
        .collect();
    let verdict = if rows.is_empty() {
        "nothing could be measured".to_owned()
    } else {
        let ratios: Vec<String> =
            rows.iter().map(|row| ratio(row.over_put(Transfer::Rendezvous))).collect();
        format!(
            "{pes} PEs: put is ahead of rendezvous, or within 2 %, at {} of {} sizes: {} from {} \
             to {}",
            ahead.len(),
            rows.len(),
            ratios.join(", "),
            size(rows[0].figure.at.into()),
            size(rows[rows.len() - 1].figure.at.into()),
        )
    };
    let figures = rows.iter().flat_map(|row| row.figures(CRAY, pes));
    let quantities = figures.map(|(figure, value)| figure.native(value)).collect();
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machines, simulated.
///
/// # Errors
/// When a simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for name in [CRAY, RANGER] {
        let machine = Machine::new(name, PES)?;
        for figure in &RENDEZVOUS {
            let row = Row::simulated(&machine, figure)?;
            let figures = row.figures(name, PES);
            all.extend(figures.map(|(figure, value)| figure.simulated(value)));
        }
    }
    Ok(all)
}

/// G4 (sections 2.4 and 5.1, figures 2 and 3) on the paper's machines, simulated. If all addresses
/// are known, the data is put down the best tree. If not, the faster of two ways counts: each PE
/// first sends its address to its parent, a message without data like that of a PE that has
/// entered; or a rendezvous (section 3.3.2).
///
/// # Errors
/// When a simulation fails.
pub fn addresses() -> Result<Vec<Quantity>> {
    let machines = [Machine::new(CRAY, PES)?, Machine::new(RANGER, PES)?];
    let mut all = Vec::new();
    for (ratio, overhead) in ADDRESSES.iter().zip(&OVERHEAD) {
        let mut added_ns = Vec::new();
        for (name, machine) in [CRAY, RANGER].into_iter().zip(&machines) {
            let best = |entry, transfer: Transfer| -> Result<f64> {
                let query = query(PES, ratio.at as usize, entry);
                Ok(machine.best(&query, transfer.candidates(PES))?.1)
            };
            let single_ns = best(SyncMode::None, Transfer::Put)?;
            let told_ns = best(SyncMode::Mine, Transfer::Put)?;
            let local_ns = told_ns.min(best(SyncMode::None, Transfer::Rendezvous)?);
            all.push(ratio.on(name).with_pes(PES).simulated(local_ns / single_ns));
            added_ns.push(local_ns - single_ns);
        }
        all.push(overhead.on(CRAY).with_pes(PES).simulated(added_ns[0] / added_ns[1]));
    }
    Ok(all)
}

/// Adds a table with a row for each size and a column for each way.
fn table(page: &mut Page, rows: &[Row]) {
    let ways = Transfer::EVERY.map(Transfer::name);
    let header = ["size"].into_iter().chain(ways).chain(["rendezvous / put", "messages / put"]);
    let row = |row: &Row| {
        let times = row.bests.iter().map(|(_, ns)| time(*ns));
        let ratios = [Transfer::Rendezvous, Transfer::Messages];
        let ratios = ratios.map(|transfer| ratio(row.over_put(transfer)));
        std::iter::once(size(row.figure.at.into())).chain(times).chain(ratios).collect()
    };
    page.table(header, rows.iter().map(row).collect(), 0..=5);
    for row in rows {
        let names: Vec<&str> = row.bests.iter().map(|(name, _)| &**name).collect();
        page.lines(format!("  {}: {}\n", size(row.figure.at.into()), names.join(", ")));
    }
    page.lines("\n");
}

#[cfg(test)]
mod tests {
    use consort_collectives::names;
    use consort_sandbox::seeds;

    use super::*;

    #[test]
    fn transfers_have_distinct_existing_algorithms() {
        let mut all: Vec<String> = Vec::new();
        for transfer in Transfer::EVERY {
            for candidate in transfer.candidates(64) {
                let known = names(Collective::Broadcast);
                assert!(known.iter().any(|name| *name == candidate.algorithm), "{candidate}");
                assert!(!all.contains(&candidate.to_string()), "{candidate}");
                all.push(candidate.to_string());
            }
        }
    }

    /// Figures 4 and 5.
    #[test]
    fn put_is_ahead_of_rendezvous_on_the_papers_machines() {
        let figures = [0, 3, 5].map(|index| &RENDEZVOUS[index]);
        let all = [CRAY, RANGER].map(|name| figures.map(|figure| (name, figure))).concat();
        for (name, figure) in seeds::some_of(all) {
            let machine = Machine::new(name, PES).unwrap();
            let row = Row::simulated(&machine, figure).unwrap();
            assert!(row.over_put(Transfer::Rendezvous) > 1.0, "{name} {:?}", row.bests);
        }
    }
}
