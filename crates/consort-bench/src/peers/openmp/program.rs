//! The C program that times OpenMP's regions, barriers and reductions, and its compilers.
//!
//! The program is part of this library. It is compiled once, and started for a few blocks at a
//! time. Its threads spin between calls, but they are gone while others are timed. If each thread
//! has a core, threads are bound to the cores in the caller's list. All else is decided by the
//! compiler's library or its environment variables.

use std::{process::Command, sync::atomic::AtomicBool, time::Duration};

use anyhow::{Context, Result};
use consort_machine::affinity::CpuId;

use crate::peers::{
    commands::{CompiledProgram, PATIENCE, output},
    printed::PrintedOutput,
};

const SOURCE: &str = include_str!("openmp_bench.c");
const OPTIONS: [&str; 2] = ["-O3", "-fopenmp"];
/// The variables that take precedence over `OMP_WAIT_POLICY`.
const WAITING: [&str; 2] = ["GOMP_SPINCOUNT", "KMP_BLOCKTIME"];
/// The stack space of a thread besides its part of a sum.
const STACK_BYTES: u64 = 2 << 20;

consort_fabric::named_enum! {
    /// An implementation of OpenMP. Where one is enough, the first that is available is used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Library {
        /// GCC's.
        Gomp = "libgomp",
        /// LLVM's.
        Omp = "libomp",
    }
}

impl Library {
    /// Returns the compiler that it comes with.
    const fn compiler(self) -> &'static str {
        match self {
            Self::Gomp => "gcc",
            Self::Omp => "clang",
        }
    }

    /// Returns the Debian packages that contain it.
    const fn packages(self) -> &'static str {
        match self {
            Self::Gomp => "gcc",
            Self::Omp => "clang and libomp-dev",
        }
    }
}

/// The compiled program.
#[derive(Debug)]
pub struct OpenMp {
    program: CompiledProgram,
    compiler: String,
}

/// A launch of the program.
#[derive(Clone, Debug)]
pub struct OpenMpLaunch<'l> {
    /// One of the kinds of work that the program's head lists.
    pub work: &'l str,
    /// The number of threads.
    pub pes: u32,
    /// The processors to which the threads are bound, if they are bound.
    pub cpus: Option<&'l [CpuId]>,
    /// `OMP_WAIT_POLICY`; `None` for the library's default, or the value in the environment.
    pub waiting: Option<&'l str>,
    /// The size of the work.
    pub bytes: u64,
    /// The time of a block.
    pub block: Duration,
    /// The number of blocks.
    pub blocks: u32,
    /// The time after which the program is killed.
    pub limit: Duration,
    /// Kills the program once it is set.
    pub stop: &'l AtomicBool,
}

impl OpenMp {
    /// Compiles the program for this library; `stop` interrupts this.
    ///
    /// # Errors
    /// When no compiler is installed, or the compiler has no OpenMP.
    pub fn compile(library: Library, stop: &AtomicBool) -> Result<Self> {
        let needs = ["OpenMP", library.packages()];
        let program = CompiledProgram::by(library.compiler(), &OPTIONS, SOURCE, needs, stop)?;
        let versions = output(&mut Command::new(&program.path), PATIENCE, stop)?;
        let printed = PrintedOutput::read(&versions, &[])?;
        let compiler = printed.library.context("the program does not name its compiler")?;
        Ok(Self { program, compiler })
    }

    /// Compiles the program for the first available library; `stop` interrupts this.
    ///
    /// # Errors
    /// If there is none: the error of the first library.
    pub fn compile_any(stop: &AtomicBool) -> Result<Self> {
        let [first, other] = Library::EVERY.map(|library| move || Self::compile(library, stop));
        first().or_else(|why| other().map_err(|_| why))
    }

    /// Returns the name and the version of the compiler.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Returns the compiler with its options.
    pub fn compilation(&self) -> String {
        format!("{}, {}", self.compiler, OPTIONS.join(" "))
    }

    /// Returns the times of one call, region or barrier in nanoseconds, in each block of a launch:
    /// at least one.
    ///
    /// # Errors
    /// If the program fails (with its message) or is killed.
    pub fn samples_ns(&self, launch: &OpenMpLaunch<'_>) -> Result<Vec<f64>> {
        let OpenMpLaunch { work, pes, cpus, waiting, bytes, block, blocks, limit, stop } = *launch;
        let mut command = Command::new(&self.program.path);
        command.args([work, &pes.to_string(), &bytes.to_string(), &block.as_nanos().to_string()]);
        // If this process ends before it can kill the program, the program ends itself.
        command.args([blocks.to_string(), (limit.as_secs() + 1).to_string()]);
        match cpus {
            Some(cpus) => {
                let places: Vec<String> = cpus.iter().map(|cpu| format!("{{{}}}", cpu.0)).collect();
                command.env("OMP_PLACES", places.join(",")).env("OMP_PROC_BIND", "true");
            }
            None => {
                command.env("OMP_PROC_BIND", "false");
            }
        }
        if let Some(waiting) = waiting {
            for name in WAITING {
                command.env_remove(name);
            }
            command.env("OMP_WAIT_POLICY", waiting);
        }
        command.env("OMP_STACKSIZE", format!("{}B", bytes + STACK_BYTES));
        let printed = PrintedOutput::read(&output(&mut command, limit, stop)?, &[bytes])?;
        Ok(printed.figures.into_iter().flat_map(|(_, samples)| samples).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the compilers in `PATH` that have OpenMP. On a busy machine, LLVM's program has once
    /// reported a wrong sum.
    #[test]
    fn every_work_has_times() {
        let never = AtomicBool::new(false);
        for library in Library::EVERY {
            let openmp = match OpenMp::compile(library, &never) {
                Ok(openmp) => openmp,
                Err(why) => {
                    eprintln!("skipped: {why:#}");
                    continue;
                }
            };
            assert!(openmp.compilation().ends_with("-fopenmp"), "{openmp:?}");
            let first = consort_machine::affinity::allowed()[0];
            let launch = |work| OpenMpLaunch {
                work,
                pes: 3,
                cpus: None,
                waiting: Some("passive"),
                bytes: 800,
                block: Duration::from_micros(100),
                blocks: 2,
                limit: Duration::from_secs(60),
                stop: &never,
            };
            for work in ["parallel", "sum", "barrier", "reduce", "all_reduce"] {
                for (pes, bytes, cpus) in
                    [(3, 800, None), (1, 800, None), (1, 8, Some(&[first][..]))]
                {
                    let launch = OpenMpLaunch { pes, bytes, cpus, ..launch(work) };
                    let samples = (0..4).fold(openmp.samples_ns(&launch), |samples, _| {
                        samples.or_else(|_| openmp.samples_ns(&launch))
                    });
                    let samples = samples.unwrap();
                    assert!((1..=2).contains(&samples.len()), "{work}: {samples:?}");
                }
            }
            let why = |launch| openmp.samples_ns(&launch).unwrap_err().to_string();
            assert!(why(launch("shuffle")).contains("no work shuffle"));
            let vast = OpenMpLaunch { bytes: 1 << 40, ..launch("reduce") };
            assert!(why(vast).contains("raise ulimit -s"));
            let hasty = OpenMpLaunch { limit: Duration::ZERO, ..launch("barrier") };
            assert!(why(hasty).contains("was killed"));
        }
    }
}
