//! `consort model scc`: broadcasts on the Intel SCC by the formulas of Petrović's thesis (2015).
//!
//! Each figure has three values: the model's; that of the formulas exactly as printed, in which
//! reading a flag is reading a line and not a get; and the model's with contention at the buffers.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::Result;
use clap::{ValueEnum, value_parser};
use consort_bench::claims::CLAIMS;
use consort_sim::analytic::scc::{SERVE_NS, Scc as Formulas};
use serde::Serialize;

use crate::{
    args,
    output::{self, finish, table, time, wrapped},
};

const EXAMPLES: &str = "\
Examples:
  consort model scc                         from a line to 1 MB, k = 2, 7, 47
  consort model scc --lines 1,96 --k 4,5,6  other sizes and degrees
  consort model scc --table 4.1             the parameters
  consort model scc --table 4.2 --json      the throughputs, for programs";

const AS_PRINTED: &str = "\
As printed: reading a flag is reading a line. Elsewhere it is a get in OC-BCAST, as Table 4.2 \
needs it, and a line in the others, as the thesis says: for few lines the others look better \
than they were measured.";

/// Cores of the SCC but the root: no tree has a larger degree.
const MOST_CHILDREN: i64 = Formulas::table_4_1().pes as i64 - 1;

/// Latency and throughput of broadcasts on the Intel SCC, 48 cores on a mesh
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scc {
    /// Show a table of the thesis (Petrović 2015) instead
    #[arg(long, value_enum, value_name = "TABLE", conflicts_with_all = ["lines", "k"])]
    table: Option<Table>,
    /// Sizes of the message in lines of 32 bytes
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = value_parser!(u32).range(1..),
        default_value = "1,32,96,97,192,1024,32768"
    )]
    lines: Vec<u32>,
    /// Degrees of the tree of OC-BCAST; the best degree for a size is shown too
    #[arg(
        long,
        value_name = "K,...",
        value_delimiter = ',',
        value_parser = value_parser!(u32).range(1..=MOST_CHILDREN),
        default_value = "2,7,47"
    )]
    k: Vec<u32>,
    /// Write one JSON object per figure, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "-", value_parser = args::writable())]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Table {
    /// The parameters
    #[value(name = "4.1")]
    Parameters,
    /// Throughputs of long messages, in the thesis and by its formulas
    #[value(name = "4.2")]
    Throughputs,
}

/// A broadcast on the SCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broadcast {
    OcBcast { k: u32 },
    Binomial,
    ScatterAllgather,
}

impl Broadcast {
    /// The name as in the thesis.
    fn name(self) -> &'static str {
        match self {
            Self::OcBcast { .. } => "OC-BCAST",
            Self::Binomial => "binomial",
            Self::ScatterAllgather => "scatter-allgather",
        }
    }

    fn k(self) -> Option<u32> {
        match self {
            Self::OcBcast { k } => Some(k),
            Self::Binomial | Self::ScatterAllgather => None,
        }
    }

    fn latency_ns(self, scc: &Formulas, lines: u32) -> f64 {
        let lines = lines.into();
        match self {
            Self::OcBcast { k } => scc.latency_ns(lines, k),
            Self::Binomial => scc.binomial_ns(lines),
            Self::ScatterAllgather => scc.scatter_allgather_ns(lines),
        }
    }
}

fn label(broadcast: &str, k: Option<u32>) -> String {
    k.map_or(broadcast.to_owned(), |k| format!("{broadcast} k={k}"))
}

/// A line of Table 4.1.
#[derive(Debug, Serialize)]
struct Parameter {
    parameter: &'static str,
    is: &'static str,
    value_ns: f64,
}

/// A column of Table 4.2.
#[derive(Debug, Serialize)]
struct Throughput {
    broadcast: &'static str,
    k: Option<u32>,
    paper_mbps: f64,
    model_mbps: f64,
    error_percent: f64,
    as_printed_mbps: f64,
    contended_mbps: f64,
}

/// A broadcast of one size.
#[derive(Debug, Serialize)]
struct Figure {
    lines: u32,
    broadcast: &'static str,
    k: Option<u32>,
    /// Whether no other degree has a lower latency, with contention.
    best: bool,
    latency_ns: f64,
    as_printed_latency_ns: f64,
    contended_latency_ns: f64,
    /// The bytes of the message divided by its latency, in 10^6 B/s.
    throughput_mbps: f64,
    contended_throughput_mbps: f64,
}

impl Scc {
    /// Prints the tables that were asked for.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        match self.table {
            Some(Table::Parameters) => self.print(&parameters(), parameters_text),
            Some(Table::Throughputs) => self.print(&throughputs(), throughputs_text),
            None => self.print(&figures(&self.lines, &self.k), figures_text),
        }
    }

    fn print<T: Serialize>(&self, rows: &[T], text: fn(&[T]) -> String) -> Result<()> {
        output::tell(self.json.as_ref(), rows, || text(rows))
    }
}

/// The three variants: the model, the formulas as printed, and the model with contention.
fn readings() -> [Formulas; 3] {
    let scc = Formulas::table_4_1();
    let as_printed = Formulas { flag_read_ns: 0.0, ..scc.clone() };
    let contended = Formulas { serve_ns: SERVE_NS, ..scc.clone() };
    [scc, as_printed, contended]
}

fn parameters() -> Vec<Parameter> {
    let scc = Formulas::table_4_1();
    [
        ("L_hop", "a packet through a router", scc.hop_ns),
        ("o^mpb", "reading or writing a line of a buffer, at the core", scc.mpb_ns),
        ("o_w^mem", "writing a line of memory", scc.memory_write_ns),
        ("o_r^mem", "reading a line of memory", scc.memory_read_ns),
        ("o_put^mpb", "a put from a buffer, without its lines", scc.put_ns),
        ("o_get^mpb", "a get to a buffer, without its lines", scc.get_ns),
        ("o_put^mem", "a put from memory, without its lines", scc.put_memory_ns),
        ("o_get^mem", "a get to memory, without its lines", scc.get_memory_ns),
    ]
    .map(|(parameter, is, value_ns)| Parameter { parameter, is, value_ns })
    .into()
}

fn parameters_text(parameters: &[Parameter]) -> String {
    let mut table = table(["parameter", "what it is", "ns"]);
    for Parameter { parameter, is, value_ns } in parameters {
        table.add_row([(*parameter).to_owned(), (*is).to_owned(), format!("{value_ns:.0}")]);
    }
    let scc = Formulas::table_4_1();
    format!(
        "Table 4.1: the parameters of the model\n\n{}\n{}",
        finish(table, &[2]),
        wrapped(&format!(
            "{} cores, lines of {} B, chunks of {} lines (OC-BCAST), payloads of {} lines (RCCE). \
             With contention a buffer serves a line in {SERVE_NS} ns.",
            scc.pes, scc.line_bytes, scc.chunk_lines, scc.payload_lines
        ))
    )
}

fn throughputs() -> Vec<Throughput> {
    let readings = readings();
    let trees = [2, 7, 47].map(|k| Broadcast::OcBcast { k }).into_iter();
    let claim = CLAIMS.iter().filter(|claim| claim.id == "T5");
    let paper = claim.flat_map(|claim| claim.bounds).map(|bound| bound.value);
    let throughput = |(broadcast, paper_mbps): (Broadcast, f64)| {
        let [model_mbps, as_printed_mbps, contended_mbps] = readings.each_ref().map(|scc| {
            broadcast.k().map_or(scc.scatter_allgather_mbps(), |k| scc.throughput_mbps(k))
        });
        Throughput {
            broadcast: broadcast.name(),
            k: broadcast.k(),
            paper_mbps,
            model_mbps,
            error_percent: (model_mbps / paper_mbps - 1.0) * 100.0,
            as_printed_mbps,
            contended_mbps,
        }
    };
    trees.chain([Broadcast::ScatterAllgather]).zip(paper).map(throughput).collect()
}

fn throughputs_text(throughputs: &[Throughput]) -> String {
    let mut table =
        table(["broadcast", "thesis", "model", "error", "as printed", "with contention"]);
    for throughput in throughputs {
        table.add_row([
            label(throughput.broadcast, throughput.k),
            format!("{:.2}", throughput.paper_mbps),
            format!("{:.2}", throughput.model_mbps),
            format!("{:+.2} %", throughput.error_percent),
            format!("{:.2}", throughput.as_printed_mbps),
            format!("{:.2}", throughput.contended_mbps),
        ]);
    }
    format!(
        "Table 4.2: throughput of long messages, 10^6 B/s\n\n{}\n{}{}",
        finish(table, &[1, 2, 3, 4, 5]),
        wrapped(AS_PRINTED),
        wrapped(&contention())
    )
}

fn figures(lines: &[u32], k: &[u32]) -> Vec<Figure> {
    let readings = readings();
    let [scc, _, contended] = &readings;
    let of_size = |&lines: &u32| {
        let (best_k, _) = contended.best_degree(lines.into());
        let degrees: BTreeSet<u32> = k.iter().copied().chain([best_k]).collect();
        let trees = degrees.into_iter().map(|k| Broadcast::OcBcast { k });
        let figure = |broadcast: Broadcast| {
            let [latency_ns, as_printed_latency_ns, contended_latency_ns] =
                readings.each_ref().map(|scc| broadcast.latency_ns(scc, lines));
            let bytes = f64::from(lines) * f64::from(scc.line_bytes);
            Figure {
                lines,
                broadcast: broadcast.name(),
                k: broadcast.k(),
                best: broadcast.k() == Some(best_k),
                latency_ns,
                as_printed_latency_ns,
                contended_latency_ns,
                throughput_mbps: bytes / latency_ns * 1e3,
                contended_throughput_mbps: bytes / contended_latency_ns * 1e3,
            }
        };
        let all = trees.chain([Broadcast::Binomial, Broadcast::ScatterAllgather]);
        all.map(figure).collect::<Vec<Figure>>()
    };
    lines.iter().flat_map(of_size).collect()
}

fn figures_text(figures: &[Figure]) -> String {
    let mut table = table([
        "lines",
        "broadcast",
        "latency",
        "as printed",
        "with contention",
        "MB/s",
        "with contention",
        "",
    ]);
    let mut above = None;
    for figure in figures {
        let first = above.replace(figure.lines) != Some(figure.lines);
        table.add_row([
            if first { figure.lines.to_string() } else { String::new() },
            label(figure.broadcast, figure.k),
            time(figure.latency_ns),
            time(figure.as_printed_latency_ns),
            time(figure.contended_latency_ns),
            format!("{:.2}", figure.throughput_mbps),
            format!("{:.2}", figure.contended_throughput_mbps),
            if figure.best { "best k".to_owned() } else { String::new() },
        ]);
    }
    format!(
        "Broadcasts on the Intel SCC, 48 cores, lines of 32 B, by formula\n\n{}\n{}{}{}",
        finish(table, &[0, 2, 3, 4, 5, 6]),
        wrapped(AS_PRINTED),
        wrapped(&contention()),
        wrapped(
            "The best k has the lowest latency of all from 1 to 47, with contention. `--table 4.2` \
             shows the throughput of a pipeline that never ends."
        )
    )
}

fn contention() -> String {
    format!(
        "With contention: a buffer serves a line in {SERVE_NS} ns, and the k children of a core \
         get from it at once."
    )
}
