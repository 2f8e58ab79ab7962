//! `consort reproduce`: a paper's figure or table, beside what this machine shows.
//!
//! The claims H are those of Nishtala and Yelick, "Optimizing collective communication on
//! multicores" (HotPar 2009), whose machines had 8, 32 and 256 threads. The same experiment runs
//! here, natively, with the same kinds of trees. Where it needs more PEs than this machine has
//! cores, they share them: its figures then tell of scheduling first, and the output says so.
//! Beside that it runs on the paper's machines, simulated. The claims G and P are about networks;
//! their experiments run here, where PEs share memory.
//!
//! 1. `paper`: what the paper says;
//! 2. `quantity`: one figure, as a line of JSON;
//! 3. `measure`: kinds of work in turn, all of them briefly, then the best of each group longer;
//! 4. `chart`: bars;
//! 5. `simulated`: the experiments on the paper's machines;
//! 6. `barrier`, `modes`, `crossover`, `flat`, `radix`: H1, H3, H4, H5, H6;
//! 7. `scc`: T2 to T5 and T7, the claims of Petrović's thesis (2015) on the Intel SCC, simulated;
//! 8. `gasnet`, `dissemination`: G1, G4, G5, G6, of Nishtala et al. on GASNet's collectives (2011);
//! 9. `counting`: P3, P4 and P5, of Dinan et al. on counting puts (2014).

mod barrier;
mod chart;
mod counting;
mod crossover;
mod dissemination;
mod flat;
mod gasnet;
mod measure;
mod modes;
mod paper;
mod quantity;
mod radix;
mod scc;
mod simulated;

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::ValueEnum;
use consort::{MOST_PES, Waiting};
use consort_native::topology::Topology;

use crate::{bench::progress::Progress, output};
use quantity::Quantity;

/// For all claims together, unless said otherwise.
const QUICK: Duration = Duration::from_secs(7);
/// For one claim, unless said otherwise.
const THOROUGH: Duration = Duration::from_secs(15);

const EXAMPLES: &str = "\
Examples:
  consort reproduce                 all claims in brief, and how each stands here
  consort reproduce H6              one of them as a table
  consort reproduce P3 P4 P5        several, one after the other
  consort reproduce G5 --pes 4      among so many PEs
  consort reproduce P4 --json -     for programs, one figure a line";

/// Run papers' experiments here, beside the papers' figures; without a claim, all in brief.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reproduce {
    /// The claims; without one, how each stands here
    #[arg(value_enum, ignore_case = true, value_name = "CLAIM")]
    claims: Vec<Claim>,
    /// Number of PEs instead of those that suit a claim
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// Seconds to measure for, about [default: 15 a claim, or 7 for all in brief]
    #[arg(long, value_name = "SECONDS", value_parser = crate::topo::seconds)]
    budget: Option<Duration>,
    /// Write one JSON object a figure, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
}

/// What the paper claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub(crate) enum Claim {
    /// Barriers by flags, flat and as trees, are far below the thread library's
    H1,
    /// Loose reductions in a row are about three times as fast as Strict ones
    H3,
    /// From which size on trees beat the flat reduction depends on the mode
    H4,
    /// With 8 threads the flat reduction is best at every size
    H5,
    /// A chain wins the Loose reductions of 8 kB, a tree of a higher radix the Strict ones
    H6,
    /// OC-BCAST has a lower latency than the two-sided binomial broadcast
    T2,
    /// OC-BCAST has almost three times the throughput of the two-sided scatter-allgather
    T3,
    /// Interrupts make OC-BCAST asynchronous at no cost in latency, and let many broadcast at once
    T4,
    /// The throughput of each broadcast follows from the costs of a line
    T5,
    /// Up to 24 cores at one message buffer do not disturb each other, 48 do
    T7,
    /// The loosest modes are sometimes nearly ten times as fast as the strictest
    G1,
    /// Where all addresses are known, collectives are faster at small and at large sizes
    G4,
    /// Data put with their notification are ahead of data that the receiver gets
    G5,
    /// Dissemination takes N(k-1)log_k N messages; which radix is best depends on the machine
    G6,
    /// A counted put takes half the latency of put, fence and flag
    P3,
    /// An all-to-all is fastest by counting puts and slowest with a barrier
    P4,
    /// A pipelined stencil scales by counting puts
    P5,
}

/// What reproducing a claim came to.
struct Outcome {
    /// How the claim stands here, in a few words.
    verdict: String,
    /// The figure or table.
    text: String,
    quantities: Vec<Quantity>,
}

/// Where and how long a claim's experiment runs.
struct Experiment<'e> {
    pes: Option<u32>,
    cores: u32,
    budget: Duration,
    progress: &'e Progress,
}

impl Claim {
    fn name(self) -> &'static str {
        match self {
            Self::H1 => "H1",
            Self::H3 => "H3",
            Self::H4 => "H4",
            Self::H5 => "H5",
            Self::H6 => "H6",
            Self::T2 => "T2",
            Self::T3 => "T3",
            Self::T4 => "T4",
            Self::T5 => "T5",
            Self::T7 => "T7",
            Self::G1 => "G1",
            Self::G4 => "G4",
            Self::G5 => "G5",
            Self::G6 => "G6",
            Self::P3 => "P3",
            Self::P4 => "P4",
            Self::P5 => "P5",
        }
    }

    /// What it says, in a line.
    fn says(self) -> &'static str {
        match self {
            Self::H1 => "barriers: flat 100x as fast as the thread library's, trees 10x as flat",
            Self::H3 => "reduce: Loose 3.1x as fast as Strict (median of 8 B to 64 kB), at most 4x",
            Self::H4 => "reduce: trees beat flat from 8 doubles on when Loose, from 32 when Strict",
            Self::H5 => "reduce: with 8 threads flat is best at every size",
            Self::H6 => "reduce of 8 kB: the chain wins when Loose, radix 2 or 4 when Strict",
            Self::T2 => "SCC, OC-BCAST: 1 line in 16.6 us, binomial 21.6; k=7 25 % under k=2",
            Self::T3 => "SCC, OC-BCAST: almost 3x the throughput of scatter-allgather",
            Self::T4 => "SCC, OC-BCAST by interrupts: as fast; 48 sources reach 68 % of 55 MB/s",
            Self::T5 => {
                "SCC: 35.22, 34.30, 35.88 (k=2, 7, 47) and 13.38 MB/s follow from line costs"
            }
            Self::T7 => "SCC: 24 cores at one buffer do not contend; at 48 the slowest is 2x to 4x",
            Self::G1 => "collectives: the loosest modes nearly 10x as fast as the strictest",
            Self::G4 => "collectives: all addresses known (Single) beats discovering them (Local)",
            Self::G5 => "collectives: a put that signals beats a get with rendezvous",
            Self::G6 => "dissemination: N(k-1)log_k N messages; its best radix is the machine's",
            Self::P3 => "counting puts: half the latency of put, fence and flag",
            Self::P4 => "all-to-all: counting puts best, then fence and flags, the barrier worst",
            Self::P5 => "Synch_p2p: counting puts scale, flags do not; less so for large problems",
        }
    }

    /// Whether its experiment runs on a simulated machine alone.
    const fn is_simulated(self) -> bool {
        matches!(self, Self::T2 | Self::T3 | Self::T4 | Self::T5 | Self::T7)
    }

    /// Whether its paper's machines are simulated beside.
    const fn has_machines(self) -> bool {
        matches!(self, Self::H1 | Self::H3 | Self::H4 | Self::H5 | Self::H6)
    }

    fn run(self, experiment: &Experiment<'_>) -> Result<Outcome> {
        match self {
            Self::H1 => barrier::run(experiment),
            Self::H3 => modes::run(experiment),
            Self::H4 => crossover::run(experiment),
            Self::H5 => flat::run(experiment),
            Self::H6 => radix::run(experiment),
            Self::T2 => scc::latency(experiment),
            Self::T3 => scc::throughput(experiment),
            Self::T4 => scc::asynchronous(experiment),
            Self::T5 => scc::model(experiment),
            Self::T7 => scc::pressure(),
            Self::G1 => gasnet::modes(experiment),
            Self::G4 => gasnet::addresses(experiment),
            Self::G5 => gasnet::transfers(experiment),
            Self::G6 => dissemination::run(experiment),
            Self::P3 => counting::ping_pong(experiment),
            Self::P4 => counting::all_to_all(experiment),
            Self::P5 => counting::stencil(experiment),
        }
    }
}

impl Experiment<'_> {
    /// The numbers of PEs to run with: as asked for, or the claim's.
    fn team_sizes(&self, of_claim: &[u32]) -> Vec<u32> {
        self.pes.map_or(of_claim.to_vec(), |pes| vec![pes])
    }

    /// A line that says what so many PEs mean here.
    fn placement(&self, pes: u32) -> String {
        let cores = self.cores;
        let waiting = Waiting::suited(pes as usize, cores as usize);
        if pes <= cores {
            return format!("{pes} PEs, one a core, waiting by {waiting}, calls in a row");
        }
        let plural = if cores == 1 { "" } else { "s" };
        format!(
            "{pes} PEs share {cores} core{plural}, waiting by {waiting}, calls in a row: the \
             scheduler's times, more than the algorithm's"
        )
    }
}

impl Reproduce {
    /// Measures and prints.
    ///
    /// # Errors
    /// When options are out of range, a job fails, or the file to write cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        let few = |claim: &Claim| matches!(claim, Claim::H4 | Claim::H5 | Claim::H6 | Claim::G6);
        let least = if self.claims.iter().any(few) { 3 } else { 2 };
        ensure!(
            self.pes.is_none_or(|pes| (least..=MOST_PES).contains(&pes)),
            "--pes: this experiment takes {least} to {MOST_PES} PEs"
        );
        ensure!(
            self.pes.is_none() || !self.claims.iter().any(|claim| claim.is_simulated()),
            "--pes: the claims on the SCC are about its 48 cores"
        );
        ensure!(
            self.pes.is_none() || !self.claims.is_empty(),
            "--pes is for one claim or some: name it, as in `consort reproduce H6 --pes 8`"
        );
        if self.claims.is_empty() { self.all_in_brief() } else { self.each_in_full() }
    }

    /// Runs a claim's experiment for so long.
    fn outcome(&self, claim: Claim, budget: Duration) -> Result<Outcome> {
        let progress = Progress::new(claim.name());
        let cores = Topology::discover().usable_cores();
        let mut outcome = claim.run(&Experiment {
            pes: self.pes,
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            budget,
            progress: &progress,
        })?;
        if !self.claims.is_empty() || self.json.is_some() {
            let simulated = simulated::quantities(claim)?;
            simulated::merge(&mut outcome.quantities, simulated);
        }
        Ok(outcome)
    }

    fn each_in_full(&self) -> Result<()> {
        let whole = self.budget.unwrap_or(THOROUGH * u32::try_from(self.claims.len())?);
        let budget = whole / u32::try_from(self.claims.len())?;
        let mut quantities = Vec::new();
        for (index, &claim) in self.claims.iter().enumerate() {
            let outcome = self.outcome(claim, budget)?;
            if self.json.is_none() {
                let apart = if index > 0 { "\n" } else { "" };
                output::print(&format!("{apart}{}", in_full(claim, &outcome)))?;
            }
            quantities.extend(outcome.quantities);
        }
        match &self.json {
            Some(path) => output::write_json_lines(path, &quantities),
            None => Ok(()),
        }
    }

    fn all_in_brief(&self) -> Result<()> {
        let claims = Claim::value_variants();
        let budget = self.budget.unwrap_or(QUICK) / u32::try_from(claims.len())?;
        let (mut text, mut quantities) = (String::new(), Vec::new());
        for &claim in claims {
            let outcome = self.outcome(claim, budget)?;
            text += &format!("{}  {}\n", claim.name(), claim.says());
            let place = if claim.is_simulated() { "simulated" } else { "here" };
            text += &output::wrapped(&format!("    {place}: {}", outcome.verdict));
            quantities.extend(outcome.quantities);
        }
        if let Some(path) = &self.json {
            return output::write_json_lines(path, &quantities);
        }
        text += "\n`consort reproduce H6` shows one of them as figure or table.\n";
        output::print(&text)
    }
}

/// A claim's figure or table, and how it stands.
fn in_full(claim: Claim, outcome: &Outcome) -> String {
    let text = format!("{}: {}\n\n{}\n", claim.name(), claim.says(), outcome.text);
    // What is about the SCC alone has a table of its own, with all that is simulated.
    if claim.is_simulated() {
        return text + &output::wrapped(&format!("Simulated: {}", outcome.verdict));
    }
    let text = text + &output::wrapped(&format!("Here: {}", outcome.verdict));
    if claim.has_machines() {
        format!("{text}\n{}", simulated::text(&outcome.quantities))
    } else {
        text
    }
}
