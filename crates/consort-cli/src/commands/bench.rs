//! `consort bench`: times calls of this library, the machine's limits, and other libraries.
//!
//! 1. Each file not named below contains a subcommand, or several with the same options. It parses
//!    and checks the arguments, and calls `consort-bench`, which measures.
//! 2. `presenter`: the options of all subcommands, and the output of results; `compare`: the
//!    results of an earlier run next to them; `text`: the tables for people.
//! 3. `calls`: `barrier` and `collective`; `communication`: measures these and `point-to-point`;
//!    `peers`: the libraries to compare with.

mod calls;
mod communication;
mod compare;
mod counting;
mod critical_sections;
mod fork_join;
mod openshmem;
mod peers;
mod point_to_point;
mod presenter;
mod region;
mod text;

use std::{ffi::OsString, process::ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand};
use consort::tune::Collective;
use consort_bench::{
    harness::Pattern,
    workloads::{
        counting::Workload,
        critical_sections::{Subject, situations::Situation},
        fork_join::ForkJoinProgram,
    },
};
use consort_console::refuse;

use calls::{BarrierBench, CollectiveBench};
use counting::CountingBench;
use critical_sections::{ContainerBench, CounterBench, LockBench};
use fork_join::ForkJoinBench;
use openshmem::OpenShmemBench;
use point_to_point::PointToPointBench;
use region::RegionBench;

/// Time this library, next to hardware limits and other libraries
#[derive(Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: BenchSubject,
}

#[derive(Subcommand)]
enum BenchSubject {
    Barrier(BarrierBench),
    Collective(CollectiveBench),
    PointToPoint(PointToPointBench),
    Counting(CountingBench),
    Region(RegionBench),
    ForkJoin(ForkJoinBench),
    Lock(LockBench),
    /// Time a counter under each scheme of delegation and combining
    Delegate(CounterBench),
    /// Time a counter under all locks and schemes, next to fetch_add
    Counter(CounterBench),
    Container(ContainerBench),
    #[command(name = "openshmem")]
    OpenShmem(OpenShmemBench),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl Bench {
    /// Checks the options, measures and prints, including measurements before an interrupt.
    ///
    /// # Errors
    /// When options contradict each other, nothing could be measured, or the output file cannot be
    /// written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match &self.subject {
            BenchSubject::Barrier(bench) => bench.run(),
            BenchSubject::Collective(bench) => bench.run(),
            BenchSubject::PointToPoint(bench) => bench.run(),
            BenchSubject::Counting(bench) => bench.run(),
            BenchSubject::Region(bench) => bench.run(),
            BenchSubject::ForkJoin(bench) => bench.run(),
            BenchSubject::Lock(bench) => bench.run(),
            BenchSubject::Delegate(bench) => bench.run(Subject::Delegate),
            BenchSubject::Counter(bench) => bench.run(Subject::Counter),
            BenchSubject::Container(bench) => bench.run(),
            BenchSubject::OpenShmem(bench) => bench.run(),
            BenchSubject::Other(words) => refuse_subject(words),
        }
    }
}

/// Rejects an unknown subcommand, and names the one that takes this word as its argument.
fn refuse_subject(words: &[OsString]) -> Result<ExitCode> {
    let word = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let takes: [(&str, bool); 6] = [
        ("collective", word.parse::<Collective>().is_ok()),
        ("point-to-point", Pattern::EVERY.iter().any(|one| one.name() == word)),
        ("counting", Workload::EVERY.iter().any(|one| one.name() == word)),
        ("fork-join", ForkJoinProgram::EVERY.iter().any(|one| one.name() == word)),
        ("container", critical_sections::CONTAINERS.iter().any(|kind| kind.name() == word)),
        ("lock", Situation::EVERY.iter().any(|one| one.name() == word)),
    ];
    match takes.into_iter().find(|(_, takes)| *takes) {
        Some((subject, _)) => {
            refuse!("unknown subcommand `{word}`: use `consort bench {subject} {word}`")
        }
        None => refuse!("unknown subcommand `{word}`: `consort bench --help` lists them"),
    }
}

#[cfg(test)]
mod tests;
