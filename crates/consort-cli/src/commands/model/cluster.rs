//! `consort model cluster`: collectives on clusters of any size by LogGP.
//!
//! The formulas take as long for two PEs as for a million. Each PE counts as alone on its node, and
//! all pairs have the longest distance in the description's network.

use std::path::PathBuf;

use anyhow::Result;
use clap::value_parser;
use consort::Collective;
use consort_bench::{asked::shown, units};
use consort_sim::{analytic::loggp::LogGp, machines::Kind};
use serde::Serialize;

use crate::{
    args,
    output::{self, finish, table, time, wrapped},
};

const EXAMPLES: &str = "\
Examples:
  consort model cluster                        a million PEs
  consort model cluster --pes 4096 --bytes 8,1M
  consort model cluster --machine ./mine.toml  of another description";

/// The numbers of chunks that are tried for a chain.
const CHUNKS: [u64; 9] = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536];

/// Barriers, broadcasts and reductions on clusters of any size, by LogGP
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cluster {
    /// A cluster's name, or the path of a description that ends in .toml
    #[arg(long, value_name = "NAME|FILE", default_value = "cluster")]
    machine: String,
    /// Number of PEs; more PEs than the description has are connected in the same way
    #[arg(long, value_name = "N", default_value = "1000000",
        value_parser = value_parser!(u64).range(1..))]
    pes: u64,
    /// Sizes in bytes of broadcasts and reductions
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::size,
        default_value = "8,8k,1M")]
    bytes: Vec<usize>,
    /// Radices of the trees and of dissemination
    #[arg(long, value_name = "N,...", value_delimiter = ',',
        value_parser = value_parser!(u64).range(2..), default_value = "2,4,8,16,32")]
    radix: Vec<u64>,
    /// Write one JSON object per figure, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

/// The time of a collective with an algorithm.
#[derive(Debug, Serialize)]
struct Figure {
    machine: String,
    pes: u64,
    #[serde(serialize_with = "shown")]
    collective: Collective,
    bytes: usize,
    algorithm: String,
    latency_ns: f64,
    /// Whether none of the algorithms that are shown for this call is faster.
    best: bool,
}

impl Cluster {
    /// Evaluates the formulas and prints.
    ///
    /// # Errors
    /// When there is no such cluster, or the output cannot be written.
    pub(super) fn run(&self) -> Result<()> {
        let machine = args::machine(&self.machine)?;
        let Kind::Cluster(cluster) = &machine.kind else {
            refuse!("{} is no cluster: `consort machines` shows the kinds", machine.name)
        };
        let farthest_ns = (0..cluster.nodes).map(|node| cluster.latency_between_ns(0, node));
        let loggp = LogGp {
            latency_ns: farthest_ns.fold(cluster.latency_ns, f64::max),
            overhead_ns: cluster.overhead_ns,
            gap_ns: cluster.gap_ns,
            gap_per_byte_ns: cluster.gap_per_byte_ns,
        };
        // A sum moves bytes at the rate of a copy.
        let combine_ns = |bytes: usize| bytes as f64 / cluster.inside.copy_gbps;
        let figure = |collective, bytes, algorithm, latency_ns| {
            let (machine, pes) = (machine.name.clone(), self.pes);
            Figure { machine, pes, collective, bytes, algorithm, latency_ns, best: false }
        };
        let barrier = |radix| {
            let algorithm = format!("dissemination(radix={radix})");
            figure(Collective::Barrier, 0, algorithm, loggp.barrier_ns(self.pes, radix))
        };
        let mut figures: Vec<Figure> = self.radices().map(barrier).collect();
        mark_best(&mut figures);
        for &bytes in &self.bytes {
            let size = bytes as u64;
            let chains = CHUNKS.into_iter().filter(|&chunks| chunks <= size.max(1));
            let chain = chains
                .map(|chunks| (loggp.chain_ns(self.pes, size, chunks), chunks))
                .min_by(|one, other| one.0.total_cmp(&other.0));
            for collective in [Collective::Broadcast, Collective::Reduce] {
                let tree = |radix| {
                    let latency_ns = if collective == Collective::Broadcast {
                        loggp.broadcast_ns(self.pes, radix, size)
                    } else {
                        loggp.reduce_ns(self.pes, radix, size, combine_ns(bytes))
                    };
                    figure(collective, bytes, format!("knomial(radix={radix})"), latency_ns)
                };
                let mut of_size: Vec<Figure> = self.radices().map(tree).collect();
                // In a reduction, a chain also combines while it forwards, which the formula leaves
                // out.
                if let (Collective::Broadcast, Some((latency_ns, chunks))) = (collective, chain) {
                    let algorithm = format!("chain in {chunks} chunks");
                    of_size.push(figure(collective, bytes, algorithm, latency_ns));
                }
                mark_best(&mut of_size);
                figures.extend(of_size);
            }
            let latency_ns = loggp.all_reduce_ns(self.pes, size, combine_ns(bytes));
            let algorithm = "recursive_doubling".to_owned();
            let mut alone = [figure(Collective::AllReduce, bytes, algorithm, latency_ns)];
            mark_best(&mut alone);
            figures.extend(alone);
        }
        output::tell(self.json.as_ref(), &figures, || self.text(&machine.name, &loggp, &figures))
    }

    /// The radices that are not larger than the number of PEs, or 2.
    fn radices(&self) -> impl Iterator<Item = u64> {
        self.radix.iter().copied().filter(|&radix| radix <= self.pes.max(2))
    }

    fn text(&self, machine: &str, loggp: &LogGp, figures: &[Figure]) -> String {
        let mut table = table(["call", "algorithm", "latency", ""]);
        let mut above = None;
        for figure in figures {
            let call = (figure.collective, figure.bytes);
            let first = above.replace(call) != Some(call);
            let size = if figure.collective == Collective::Barrier {
                String::new()
            } else {
                format!(" of {}", units::size(figure.bytes as u64))
            };
            table.add_row([
                if first { format!("{}{size}", figure.collective) } else { String::new() },
                figure.algorithm.clone(),
                time(figure.latency_ns),
                if figure.best { "best".to_owned() } else { String::new() },
            ]);
        }
        format!(
            "{}\n{}\n{}",
            wrapped(&format!(
                "{} PEs on {machine}, by LogGP: L = {}, o = {}, g = {}, G = {} ns a byte",
                self.pes,
                time(loggp.latency_ns),
                time(loggp.overhead_ns),
                time(loggp.gap_ns),
                loggp.gap_per_byte_ns,
            )),
            finish(table, &[2]),
            wrapped(
                "Each PE counts as alone on its node, and the network as never too slow. Trees \
                 that are not full count as if they were."
            ),
        )
    }
}

fn mark_best(figures: &mut [Figure]) {
    let best_ns = figures.iter().map(|figure| figure.latency_ns).fold(f64::INFINITY, f64::min);
    if let Some(best) = figures.iter_mut().find(|figure| figure.latency_ns <= best_ns) {
        best.best = true;
    }
}
