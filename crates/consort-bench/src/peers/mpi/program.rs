//! MPI libraries as peers: a C program, which each named MPI compiles and launches.
//!
//! The program is part of this library. It is compiled with the `mpicc` next to the named `mpirun`,
//! and started with one process per PE, bound to cores if they fit. It prints the times of its
//! blocks of calls. The comment at its top defines a sample.
//!
//! The processes inherit the affinity mask of the calling thread, so do not call this from a pinned
//! thread.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use anyhow::{Result, ensure};
use consort_machine::topology::Topology;

use super::installation::Mpi;
use crate::peers::{commands::CompiledProgram, printed::PrintedOutput};

const PROGRAM: &str = include_str!("mpi_bench.c");
/// The kinds of work that the program times, by the names in its table.
const WORK: [&str; 17] = [
    "barrier",
    "broadcast",
    "reduce",
    "all_reduce",
    "all_gather",
    "all_to_all",
    "scatter",
    "gather",
    "reduce_scatter",
    "scan",
    "scatter_vector",
    "gather_vector",
    "all_gather_vector",
    "all_to_all_vector",
    "put-signal",
    "put-rate",
    "put-bandwidth",
];
/// The kinds of work that sum doubles.
const SUMS: [&str; 4] = ["reduce", "all_reduce", "reduce_scatter", "scan"];
/// Measuring time for each size in a launch, in seconds: several launches are worth more than one
/// long launch.
const BUDGET_SECONDS: f64 = 0.06;
/// The seconds, once and for each size, after which the program is considered hanging and ends
/// itself.
const LIMIT_SECONDS: usize = 30;
/// The additional time for its launcher.
const LAUNCHING: Duration = Duration::from_secs(30);

/// The program for one kind of work, compiled by an MPI.
pub(super) struct MpiProgram {
    mpi: Mpi,
    program: CompiledProgram,
    work: &'static str,
    pes: u32,
    /// Whether each process has a core.
    bound: bool,
}

impl MpiProgram {
    /// Compiles the program for `work`, one of its own kinds, with the MPI of this `mpirun` (a
    /// path, or a name to find in `PATH`), for `pes` processes on one machine or anywhere. `stop`
    /// interrupts this.
    ///
    /// # Errors
    /// If MPI cannot do it at one of these sizes, does not exist, or is incomplete. The message
    /// contains the remedy.
    pub(super) fn new(
        mpirun: &Path,
        work: &'static str,
        (pes, on_one_machine): (u32, bool),
        sizes: &[u64],
        stop: &AtomicBool,
    ) -> Result<Self> {
        ensure!(WORK.contains(&work), "no MPI benchmark of {work}: use one of {}", WORK.join(", "));
        for &bytes in sizes {
            ensure!(
                i32::try_from(bytes).is_ok(),
                "MPI counts to 2^31 - 1: {bytes} bytes are too many"
            );
            ensure!(
                !SUMS.contains(&work) || bytes % 8 == 0,
                "a {work} takes doubles, but {bytes} bytes is not a multiple of 8"
            );
        }
        let mpi = Mpi::find(mpirun, stop)?;
        let program = mpi.compile(PROGRAM, stop)?;
        let bound = on_one_machine && pes as usize <= Topology::discover().usable_cores();
        Ok(Self { mpi, program, work, pes, bound })
    }

    /// Launches the program for figures of these sizes. `stop` interrupts this.
    ///
    /// # Errors
    /// If it fails or hangs.
    pub(super) fn launch(&self, sizes: &[u64], stop: &AtomicBool) -> Result<PrintedOutput> {
        self.timed(sizes, BUDGET_SECONDS, stop)
    }

    fn timed(
        &self,
        sizes: &[u64],
        budget_seconds: f64,
        stop: &AtomicBool,
    ) -> Result<PrintedOutput> {
        let limit_seconds = LIMIT_SECONDS * (1 + sizes.len());
        let numbers = [budget_seconds.to_string(), limit_seconds.to_string()];
        let mut arguments = vec![self.work.to_owned()];
        arguments.extend(numbers.into_iter().chain(sizes.iter().map(u64::to_string)));
        let limit = Duration::from_secs(limit_seconds as u64) + LAUNCHING;
        let output =
            self.mpi.run(&self.program, (self.pes, self.bound), &arguments, limit, stop)?;
        let printed = PrintedOutput::read(&output, sizes)?;
        Ok(PrintedOutput { library: printed.library.as_deref().map(short), ..printed })
    }
}

/// Shortens `Open MPI v5.0.11, package: ...`, `MPICH Version:      5.0.2` and `Intel(R) MPI Library
/// 2021.18.1 for Linux* OS` to name and version.
fn short(version: &str) -> String {
    let name = version.split(',').next().unwrap_or(version);
    let name = name.split(" for ").next().unwrap_or(name);
    let words = name.split_whitespace().filter(|word| *word != "Version:");
    words.collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Pattern;

    #[test]
    fn libraries_have_short_names() {
        assert_eq!(short("MPICH Version:      5.0.2"), "MPICH 5.0.2");
        let intel = "Intel(R) MPI Library 2021.18 for Linux* OS";
        assert_eq!(short(intel), "Intel(R) MPI Library 2021.18");
    }

    /// Uses the MPI in `PATH`, if there is one that compiles. To test another one, put it first
    /// there.
    #[test]
    fn all_work_has_figures() {
        let (mpirun, never) = (Path::new("mpirun"), AtomicBool::new(false));
        for work in WORK {
            let sizes = if work == "barrier" { &[0][..] } else { &[8, 1024] };
            let mut program = match MpiProgram::new(mpirun, work, (2, true), sizes, &never) {
                Ok(program) => program,
                Err(why) => {
                    eprintln!("skipped: {why:#}");
                    return;
                }
            };
            let PrintedOutput { library, .. } = program.timed(sizes, 0.0, &never).unwrap();
            assert!(library.is_some(), "{work}");
            program.work = "shuffle";
            let error = program.timed(sizes, 0.0, &never).unwrap_err().to_string();
            assert!(error.contains("no work shuffle"), "{error}");
        }
    }

    /// A call has the same number of messages on both sides.
    #[test]
    fn mpi_program_sends_as_many_messages() {
        for pattern in Pattern::EVERY {
            let begins = format!("    {{\"{}\", ", pattern.name());
            let ends = format!(", 0, 0, {}}},", pattern.messages().unwrap_or(1));
            let is_entry = |line: &str| line.starts_with(&begins) && line.ends_with(&ends);
            assert!(PROGRAM.lines().any(is_entry), "{pattern:?}");
        }
    }

    fn refusal(mpirun: &str, work: &'static str, bytes: u64) -> String {
        let never = AtomicBool::new(false);
        let refused = MpiProgram::new(Path::new(mpirun), work, (2, true), &[bytes], &never);
        refused.err().expect("it is refused").to_string()
    }

    #[test]
    fn an_absent_mpirun_is_named_with_advice() {
        for absent in ["/nowhere/at/all/mpirun", "mpirun-that-nobody-has"] {
            let error = refusal(absent, "barrier", 0);
            assert!(error.contains(absent) && error.contains("install an MPI"), "{error}");
        }
    }

    #[test]
    fn unsupported_mpi_work_is_refused() {
        let refused = |work, bytes| refusal("/nowhere/mpirun", work, bytes);
        assert!(refused("reduce", 12).contains("not a multiple of 8"));
        assert!(refused("broadcast", 1 << 31).contains("2^31"));
        assert!(refused("shuffle", 8).contains("no MPI benchmark of shuffle"));
    }
}
