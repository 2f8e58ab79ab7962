//! The C program that times OpenMP's regions and barriers, and its compiler.
//!
//! The program is part of this library. It is compiled by the `cc` in `PATH`, and started for each
//! block anew, so its threads, which spin between regions, are gone while others are timed. Where
//! each thread has a core, they are bound to the cores of the caller's list. All else is as the
//! compiler's library does it, or as its variables in the environment say, such as
//! `OMP_WAIT_POLICY`.

use std::{ffi::OsStr, fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result};
use consort_native::affinity::CpuId;
use tempfile::TempDir;

use crate::peers::commands::{in_path, output};

const SOURCE: &str = include_str!("openmp_bench.c");
const COMPILER: &str = "cc";
/// The options of the compiler.
const OPTIONS: [&str; 2] = ["-O3", "-fopenmp"];
/// The seconds after which the program counts as hanging.
const LIMIT_SECONDS: u32 = 60;

/// The compiled program.
#[derive(Debug)]
pub struct OpenMp {
    program: PathBuf,
    /// The program's folder, which goes with it.
    _folder: TempDir,
    compiler: String,
}

impl OpenMp {
    /// Compiles the program.
    ///
    /// # Errors
    /// When there is no compiler, or it has no OpenMP.
    pub fn compile() -> Result<Self> {
        let cc = in_path(OsStr::new(COMPILER))
            .with_context(|| format!("no {COMPILER} in PATH: install a C compiler with OpenMP"))?;
        let folder = tempfile::tempdir().context("no temporary folder to compile in")?;
        let (file, program) =
            (folder.path().join("openmp_bench.c"), folder.path().join("openmp_bench"));
        fs::write(&file, SOURCE).context("cannot write the program")?;
        output(Command::new(cc).args(OPTIONS).arg("-o").arg(&program).arg(file))
            .context("the C compiler has no OpenMP")?;
        let compiler = output(&mut Command::new(&program))?.trim().to_owned();
        Ok(Self { program, _folder: folder, compiler })
    }

    /// The name and the version of the compiler, with its options.
    pub fn compiler(&self) -> String {
        format!("{}, {}", self.compiler, OPTIONS.join(" "))
    }

    /// Times one block of a work of the program, which its head lists. Threads are bound to the
    /// processors, if there are any. Returns nanoseconds of one region or barrier.
    ///
    /// # Errors
    /// When the program fails, with its message.
    pub fn block_ns(
        &self,
        work: &str,
        pes: u32,
        cpus: Option<&[CpuId]>,
        len: usize,
        block: Duration,
    ) -> Result<f64> {
        let mut command = Command::new(&self.program);
        let numbers = [pes.to_string(), len.to_string(), block.as_nanos().to_string()];
        command.arg(work).args(numbers).arg(LIMIT_SECONDS.to_string());
        match cpus {
            Some(cpus) => {
                let places: Vec<String> = cpus.iter().map(|cpu| format!("{{{}}}", cpu.0)).collect();
                command.env("OMP_PLACES", places.join(",")).env("OMP_PROC_BIND", "true");
            }
            None => {
                command.env("OMP_PROC_BIND", "false");
            }
        }
        let printed = output(&mut command)?;
        printed
            .trim()
            .parse()
            .with_context(|| format!("OpenMP's program printed no time: {printed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the compiler in `PATH`, if it has OpenMP.
    #[test]
    fn every_work_has_times() {
        let openmp = match OpenMp::compile() {
            Ok(openmp) => openmp,
            Err(why) => {
                eprintln!("skipped: {why:#}");
                return;
            }
        };
        assert!(openmp.compiler().contains("-fopenmp"), "{openmp:?}");
        let block = Duration::from_micros(100);
        let first = consort_native::affinity::allowed()[0];
        for work in ["parallel", "reduction", "barrier"] {
            for (pes, cpus) in [(3, None), (1, Some(&[first][..]))] {
                assert!(openmp.block_ns(work, pes, cpus, 100, block).unwrap() > 0.0, "{work}");
            }
        }
        let error = openmp.block_ns("shuffle", 2, None, 100, block).unwrap_err().to_string();
        assert!(error.contains("no work shuffle"), "{error}");
    }
}
