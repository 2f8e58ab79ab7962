//! G6 (Nishtala et al. 2011, sections 3.2, 3.4 and 5.3): trees for rooted operations, and
//! dissemination of radix 2, 4 and 8 for the others, compared with flat algorithms.
//!
//! Messages are counted on a simulated machine whose number of PEs is a power of each radix:
//! dissemination takes `N (k - 1) log_k N` messages. An all-gather takes some more here: it puts
//! blocks into their final places, so a message that wraps around the end of the buffer is sent as
//! two. The best radix depends on the machine.

use anyhow::Result;
use consort::{
    sync_modes::SyncModes,
    tune::{Candidate, Collective, Query},
};
use consort_collectives::{names, serves};
use consort_sim::{Simulation, machines::Machine};

use super::{
    experiment::{Experiment, Outcome},
    networks::{self, BLUE_GENE, CRAY, RANGER},
    quantity::Quantity,
};
use crate::simulation::Program;
use consort_bench::{
    harness::{Mode, Work},
    page::Page,
    query_json::sums,
    units::{size, time},
};

figures! { pub FIGURES of "G6", "sections 3.4 and 5.3, figures 6 to 8": "ratio":
    // "can be approximated by"; of every operation and radix.
    MESSAGES("messages over N(k-1)log_k N", COUNTED_ON == 1.0)
    // On the first two machines dissemination is best at small sizes and flat at large ones. On the
    // third, flat is always best.
    OVER_FLAT["exchange of ", " B, dissemination over flat";
        8 => (CRAY <= 1.0, RANGER <= 1.0, BLUE_GENE >= 1.0),
        64 | 512 => (BLUE_GENE >= 1.0),
        8192 => (CRAY >= 1.0, RANGER >= 1.0, BLUE_GENE >= 1.0),
    ]
}

const RADICES: [u64; 3] = [2, 4, 8];
/// The number of PEs for counting messages: a power of each radix.
const PES: u32 = 64;
/// The number of PEs on machines with few cores: between those of the paper's machines.
const PES_HERE: u32 = 16;
/// The simulated machines: a network, message buffers, coherent caches.
const MACHINES: [&str; 3] = ["cluster", "scc", "niagara2-x4"];
/// The machine on which messages are counted.
const COUNTED_ON: &str = MACHINES[0];

/// An operation with an algorithm of several radices (dissemination or trees), or flat.
#[derive(Clone, Copy, Debug)]
struct Kind {
    collective: Collective,
    /// The algorithm, which has a parameter `radix`.
    algorithm: &'static str,
    bytes: usize,
}

const fn kind(collective: Collective, algorithm: &'static str, bytes: usize) -> Kind {
    Kind { collective, algorithm, bytes }
}

const KINDS: [Kind; 8] = [
    kind(Collective::Barrier, "dissemination", 0),
    kind(Collective::AllGather, "bruck", 8),
    kind(Collective::AllGather, "bruck", 1 << 10),
    kind(Collective::AllToAll, "bruck", 8),
    kind(Collective::AllToAll, "bruck", 1 << 10),
    kind(Collective::Broadcast, "knomial", 8),
    kind(Collective::Scatter, "knomial", 8),
    kind(Collective::Gather, "knomial", 8),
];

/// Returns the operations whose algorithm is in the registry.
fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(|kind| names(kind.collective).contains(&kind.algorithm))
}

impl Kind {
    fn candidate(self, radix: u64) -> Candidate {
        Candidate::new(self.algorithm).with("radix", radix)
    }

    /// Returns the name and the candidate of each radix, and of flat.
    fn candidates(self) -> Vec<(String, Candidate)> {
        let radix = |radix| (format!("radix {radix}"), self.candidate(radix));
        let flat = ("flat".to_owned(), Candidate::new("flat"));
        RADICES.into_iter().map(radix).chain([flat]).collect()
    }

    fn name(self) -> String {
        let Self { collective, bytes, .. } = self;
        if bytes == 0 {
            return collective.to_string();
        }
        format!("{collective} of {}", size(bytes as u64))
    }

    /// Returns the call of a team.
    fn query(self, pes: u32) -> Query {
        let is_barrier = self.collective == Collective::Barrier;
        let sync = if is_barrier { SyncModes::STRICT } else { SyncModes::MINE };
        sums(self.collective, sync, pes, self.bytes, false)
    }

    /// Returns the messages and the nanoseconds of a single call, or `None` if the algorithm cannot
    /// serve it.
    fn simulated(self, machine: &Machine, candidate: &Candidate) -> Result<Option<(f64, f64)>> {
        let pes = PES.min(machine.pes());
        let program = Program::once(self.query(pes), candidate);
        let simulation = Simulation::on(machine.clone(), pes);
        if !serves(&program.setting(simulation.capabilities()?), candidate) {
            return Ok(None);
        }
        let simulated = program.simulate_on(&simulation)?;
        let messages: u64 = simulated.outcome.totals.iter().map(|total| total.messages).sum();
        Ok(Some((messages as f64, simulated.call_ns(Mode::Latency)?)))
    }
}

/// Returns `N (k - 1) log_k N`.
fn expected_messages(pes: u32, radix: u64) -> f64 {
    let rounds = f64::from(pes).ln() / (radix as f64).ln();
    f64::from(pes) * (radix - 1) as f64 * rounds.round()
}

/// Returns the messages of each operation with dissemination, by radix.
fn messages() -> Result<Vec<(Kind, u64, f64)>> {
    let machine = Machine::find(COUNTED_ON)?;
    let mut counted = Vec::new();
    for kind in kinds().filter(|kind| !kind.collective.is_rooted() && kind.bytes <= 8) {
        for radix in RADICES {
            if let Some((messages, _)) = kind.simulated(&machine, &kind.candidate(radix))? {
                counted.push((kind, radix, messages));
            }
        }
    }
    Ok(counted)
}

/// Returns the name and the time of the fastest candidate.
fn winner(times: &[(String, f64)]) -> String {
    let best = times.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map_or("-".to_owned(), |(name, ns)| format!("{name} {}", time(*ns)))
}

/// Times by the names of candidates.
type Times = Vec<(String, f64)>;

/// G6. Runs the experiment and judges the claim.
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let (mut page, mut quantities) = (Page::default(), Vec::new());
    let counts = count(&mut page, &mut quantities)?;
    page.lines("\n");
    let pes = experiment.pes.unwrap_or(PES_HERE.max(experiment.cores));
    let here = here(experiment, pes)?;
    let winners = race(pes, &here, &mut page, &mut quantities)?;
    page.paragraph(format!(
        "Machines are simulated with {PES} PEs, the SCC with its 48, each call alone. {}",
        experiment.placement(pes)
    ));
    page.lines(
        "The paper: dissemination is best for small exchanges on two machines of three, flat for \
         large\nones, and on the third flat throughout.\n",
    );
    let verdict = format!(
        "{} of {} counts of messages are N(k-1)log_k N (simulated; an all-gather's that wrap \
         around are two); the best of radix 2, 4, 8 and flat among {pes} PEs: {}",
        counts.0,
        counts.1,
        winners.join(", ")
    );
    Ok(Outcome { verdict, page, quantities })
}

/// The exchanges of figures 6 to 8: the machine and the number of PEs. The paper has 2048 for the
/// last one.
const EXCHANGES: [(&str, u32); 3] = [(CRAY, 512), (RANGER, 256), (BLUE_GENE, 512)];
/// Longer exchanges use a quarter of the PEs, because the buffers would take too much memory.
const LONG_BYTES: usize = 1 << 10;

/// A Sun with a virtual node of the paper for each processor, which has a quarter of the node's
/// interface. The paper does not say how large its virtual nodes are.
const BY_PROCESSOR: [(&str, &str); 3] =
    [("pes_per_node", "4"), ("gap_ns", "2000"), ("gap_per_byte_ns", "4")];

/// Returns an exchange in which a representative of each node exchanges the packed blocks of its
/// PEs (section 3.1).
fn by_node(across: &Candidate) -> Result<Candidate> {
    Ok(format!("two_level(flat,{across},flat)").parse()?)
}

/// The times of an exchange on a machine, in nanoseconds.
struct Exchange {
    flat_ns: f64,
    dissemination_ns: f64,
}

impl Exchange {
    /// Simulates an exchange: flat, and the best dissemination. Each PE exchanges its blocks, or a
    /// representative those of its node. Returns `None` if these exceed a PE's scratch memory.
    fn of(machine: &networks::Machine, bytes: usize, packs: bool) -> Result<Option<Self>> {
        let kind = kind(Collective::AllToAll, "bruck", bytes);
        let query = kind.query(machine.pes);
        let packed = |candidate| if packs { by_node(&candidate) } else { Ok(candidate) };
        let flat = packed(Candidate::new("flat"))?;
        if !machine.serves(&query, &flat)? {
            return Ok(None);
        }
        let radices: Result<Vec<_>> =
            RADICES.into_iter().map(|radix| packed(kind.candidate(radix))).collect();
        let (_, flat_ns) = machine.best(&query, [flat])?;
        let (_, dissemination_ns) = machine.best(&query, radices?)?;
        Ok(Some(Self { flat_ns, dissemination_ns }))
    }

    fn over_flat(&self) -> f64 {
        self.dissemination_ns / self.flat_ns
    }
}

/// Simulates exchanges on the paper's machines: the best dissemination, and flat. As in the paper,
/// a representative of each node packs its data, if this fits into a PE's memory.
///
/// # Errors
/// When a simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for (name, pes) in EXCHANGES {
        for over_flat in &OVER_FLAT {
            let bytes = over_flat.at as usize;
            let pes = if bytes > LONG_BYTES { pes / 4 } else { pes };
            let machine = networks::Machine::new(name, pes)?;
            let of = |what: &str, unit| {
                Quantity::new(name, format!("exchange of {bytes} B, {what}"), unit).with_pes(pes)
            };
            let mut add = |exchange: &Exchange, levels: &str| {
                let Exchange { flat_ns, dissemination_ns } = exchange;
                let times = [("flat", flat_ns), ("dissemination", dissemination_ns)];
                all.extend(
                    times.map(|(by, ns)| of(&format!("{by}, {levels}"), "us").simulated(ns / 1e3)),
                );
            };
            let [alike, packed] = [false, true].map(|packs| Exchange::of(&machine, bytes, packs));
            let (alike, packed) = (alike?, packed?);
            alike.iter().for_each(|one| add(one, "one level"));
            packed.iter().for_each(|one| add(one, "two levels"));
            if let (Some(alike), Some(_)) = (&alike, &packed) {
                let ratio = alike.over_flat();
                all.push(of("dissemination over flat, one level", "ratio").simulated(ratio));
            }
            if let Some(counted) = packed.or(alike) {
                all.push(over_flat.on(name).with_pes(pes).simulated(counted.over_flat()));
            }
        }
    }
    all.extend(by_processor()?);
    Ok(all)
}

/// Simulates the shortest exchange on the Sun with a virtual node for each processor.
fn by_processor() -> Result<Option<Quantity>> {
    let (bytes, pes) = (8, 256);
    let machine = Machine::changed(RANGER, &BY_PROCESSOR)?;
    let exchange = Exchange::of(&networks::Machine::of(machine, pes), bytes, true)?;
    let what = format!("exchange of {bytes} B, dissemination over flat, a node per processor");
    let figure = Quantity::new(RANGER, what, "ratio").with_pes(pes);
    Ok(exchange.map(|one| figure.simulated(one.over_flat())))
}

/// Counts messages. Returns in how many cases the number is the paper's, and the number of cases.
fn count(page: &mut Page, quantities: &mut Vec<Quantity>) -> Result<(usize, usize)> {
    let (mut rows, mut met) = (Vec::new(), 0);
    for (kind, radix, messages) in messages()? {
        let paper = expected_messages(PES, radix);
        met += usize::from(messages == paper);
        let name = format!("{}, {}", kind.name(), kind.algorithm);
        let what = format!("{name}, radix {radix}, messages of {PES} PEs");
        quantities.push(Quantity::new(COUNTED_ON, what, "messages").simulated(messages));
        let figure = MESSAGES.on(COUNTED_ON).named(&format!(", {name}, radix {radix}"));
        quantities.push(figure.with_pes(PES).simulated(messages / paper));
        rows.push(vec![name, radix.to_string(), messages.to_string(), paper.to_string()]);
    }
    let count = rows.len();
    page.table(["messages of 64 PEs", "radix", "counted", "N(k-1)log_k N"], rows, 1..=3);
    Ok((met, count))
}

/// Finds the best candidate of each operation, here and on each machine. Returns the names of the
/// best here.
fn race(
    pes: u32,
    here: &[Times],
    page: &mut Page,
    quantities: &mut Vec<Quantity>,
) -> Result<Vec<String>> {
    let machines = MACHINES.map(Machine::find).into_iter().collect::<Result<Vec<_>, _>>()?;
    let (mut rows, mut winners) = (Vec::new(), Vec::new());
    for (kind, here) in kinds().zip(here) {
        let name = kind.name();
        quantities.extend(here.iter().map(|(candidate, ns)| {
            let figure = Quantity::new(CRAY, format!("{name}, {candidate}"), "us");
            figure.with_pes(pes).native(ns / 1e3)
        }));
        let mut row = vec![name.clone(), winner(here)];
        winners.push(row.join(" "));
        for (machine, which) in machines.iter().zip(MACHINES) {
            let mut times = Times::new();
            for (called, candidate) in kind.candidates() {
                if let Some((_, ns)) = kind.simulated(machine, &candidate)? {
                    let figure = Quantity::new(which, format!("{name}, {called}"), "us");
                    let figure = figure.with_pes(PES.min(machine.pes()));
                    quantities.push(figure.simulated(ns / 1e3));
                    times.push((called, ns));
                }
            }
            row.push(winner(&times));
        }
        rows.push(row);
    }
    let mut header = vec!["the best".to_owned(), format!("here, {pes} PEs")];
    header.extend(MACHINES.map(str::to_owned));
    page.table(header, rows, []);
    Ok(winners)
}

/// Returns the times of each operation here, by the names of candidates.
fn here(experiment: &Experiment<'_>, pes: u32) -> Result<Vec<Times>> {
    let kinds: Vec<_> = kinds().map(|kind| (kind, kind.candidates())).collect();
    let all = kinds.iter().flat_map(|(kind, named)| {
        let query = kind.query(pes);
        named.iter().map(move |(_, candidate)| Work::of(&query, candidate))
    });
    let medians = experiment.medians(pes, &all.collect::<Vec<Work>>(), experiment.budget)?;
    let mut medians = medians.into_iter();
    let timed = |(_, named): &(Kind, Vec<(String, Candidate)>)| {
        let time = |(name, _): &(String, _)| Some((name.clone(), medians.next().flatten()?));
        named.iter().filter_map(time).collect()
    };
    Ok(kinds.iter().map(timed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formula_matches_the_paper() {
        assert_eq!(RADICES.map(|radix| expected_messages(64, radix)), [384.0, 576.0, 896.0]);
        assert_eq!(expected_messages(8, 8), 56.0, "all to all, where the radix is all");
    }

    #[test]
    fn dissemination_messages_match_the_formula() {
        let counted = messages().unwrap();
        assert!(counted.len() >= RADICES.len(), "{counted:?}");
        for (kind, radix, messages) in counted {
            let expected = expected_messages(PES, radix);
            // Of the n blocks that a PE sends, the blocks of n - 1 PEs wrap around.
            let each = expected / f64::from(PES);
            let wrap = if kind.collective == Collective::AllGather { 63.0 - each } else { 0.0 };
            assert_eq!(messages, expected + wrap, "{kind:?}, radix {radix}");
        }
    }

    /// Section 3.1: packing by node gives the order of figure 8. If all PEs are alike, they do not.
    #[test]
    fn flat_is_best_on_blue_gene_if_nodes_pack() {
        let machine = networks::Machine::new(BLUE_GENE, 64).unwrap();
        let over_flat = |packs| Exchange::of(&machine, 8, packs).unwrap().unwrap().over_flat();
        let (alike, packed) = (over_flat(false), over_flat(true));
        assert!(alike < 1.0 && packed > 1.0, "{alike} and {packed}");
        let long = Exchange::of(&machine, 8 << 10, true).unwrap();
        assert!(long.is_none(), "2 MiB of a node exceed the scratch memory");
    }

    #[test]
    fn shortest_time_wins() {
        let time = |name: &str, ns| (name.to_owned(), ns);
        assert_eq!(winner(&[time("radix 2", 20.0), time("flat", 10.0)]), "flat 10.0 ns");
        assert_eq!(winner(&[]), "-");
    }
}
