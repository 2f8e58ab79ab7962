//! MPI libraries as peers: a C program, compiled and launched by whichever MPI is named.
//!
//! The program is part of this binary. It is compiled with the `mpicc` that lies beside the
//! named `mpirun`, started with one process a PE, bound to cores when they fit, and prints the
//! times of its blocks of calls; see its head for what a sample is. The statistics are made here,
//! by the same rules as for Consort's own figures.
//!
//! The threads' affinity mask is inherited: do not call this from a pinned thread.

use anyhow::{Context, Result, bail, ensure};
use consort_fabric::statistics::Summary;
use consort_native::topology::Topology;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = include_str!("mpi_bench.c");
/// Measuring time for each size, in seconds.
const BUDGET_SECONDS: f64 = 0.3;
/// After so many seconds, and as many again for each size, the program is hanging.
const LIMIT_SECONDS: usize = 30;

/// What an MPI library takes for one collective at one size: throughput of calls in a row, on one
/// reused buffer, the slowest rank's time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MpiFigure {
    /// Size of the buffer in bytes; 0 for a barrier.
    pub(crate) bytes: u64,
    /// Median over the blocks of the time of one call.
    pub(crate) median_ns: f64,
    /// 99th percentile over the blocks.
    pub(crate) p99_ns: f64,
    /// 95 % confidence interval of the median.
    pub(crate) ci95_ns: (f64, f64),
    /// Number of blocks.
    pub(crate) reps: u64,
    /// The library's name and version, as it says itself.
    pub(crate) library: String,
}

/// Measures `collective` (`barrier`, `broadcast` or `reduce`, of doubles) with the MPI whose
/// `mpirun` is named (by a path, or a name to find in `PATH`), on `pes` processes of this
/// machine. A barrier has no size, and gives one figure.
///
/// # Errors
/// When the MPI is not there or not complete, or its run fails: the message says what to do.
pub(crate) fn bench(
    mpirun: &Path,
    collective: &str,
    pes: u32,
    sizes: &[u64],
) -> Result<Vec<MpiFigure>> {
    ensure!(
        ["barrier", "broadcast", "reduce"].contains(&collective),
        "no MPI benchmark of {collective}: there are barrier, broadcast and reduce"
    );
    let sizes = if collective == "barrier" { &[0] } else { sizes };
    for &bytes in sizes {
        ensure!(i32::try_from(bytes).is_ok(), "MPI counts to 2^31 - 1: {bytes} bytes are too many");
        ensure!(
            collective != "reduce" || bytes % 8 == 0,
            "a reduce is of whole doubles: {bytes} bytes is no multiple of 8"
        );
    }
    let mpirun = find(mpirun).with_context(|| {
        format!(
            "no {} here: install an MPI (a package `openmpi` or `mpich`, the system's or \
             Python's), or name the mpirun of another",
            mpirun.display()
        )
    })?;
    let launcher = Launcher::of(&mpirun)?;
    let folder = tempfile::tempdir().context("no temporary folder to compile in")?;
    let program = compile(&mpirun, folder.path())?;
    let bound = pes as usize <= Topology::discover().usable_cores();
    let limit_seconds = LIMIT_SECONDS * (1 + sizes.len());
    let mut command = Command::new(&mpirun);
    command.args(launcher.arguments(bound)).arg("-n").arg(pes.to_string()).arg(program);
    command.args([collective, &BUDGET_SECONDS.to_string(), &limit_seconds.to_string()]);
    command.args(sizes.iter().map(u64::to_string));
    let output = output(&mut command)?;
    let figures = figures(&output)?;
    ensure!(
        figures.len() == sizes.len(),
        "{} printed {} figures for {} sizes",
        mpirun.display(),
        figures.len(),
        sizes.len()
    );
    Ok(figures)
}

/// Those who want different options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    OpenMpi,
    /// MPICH's.
    Hydra,
    /// Intel's and others, which bind by themselves.
    Other,
}

impl Launcher {
    fn of(mpirun: &Path) -> Result<Launcher> {
        Ok(Launcher::named(&output(Command::new(mpirun).arg("--version"))?))
    }

    fn named(version: &str) -> Launcher {
        if version.contains("Open MPI") || version.contains("OpenRTE") {
            Launcher::OpenMpi
        } else if version.contains("HYDRA") {
            Launcher::Hydra
        } else {
            Launcher::Other
        }
    }

    fn arguments(self, bound: bool) -> Vec<&'static str> {
        let cores = if bound { "core" } else { "none" };
        match self {
            // Root is refused, and more processes than cores, unless asked for.
            Launcher::OpenMpi => {
                vec!["--allow-run-as-root", "--oversubscribe", "--bind-to", cores]
            }
            Launcher::Hydra => vec!["-bind-to", cores],
            Launcher::Other => Vec::new(),
        }
    }
}

fn compile(mpirun: &Path, folder: &Path) -> Result<PathBuf> {
    let mpicc = compiler(mpirun).with_context(|| {
        format!(
            "{} has no mpicc beside it, and none is in PATH: install what this MPI needs to \
             compile programs (on Debian, its -dev package)",
            mpirun.display()
        )
    })?;
    let (source, program) = (folder.join("mpi_bench.c"), folder.join("mpi_bench"));
    fs::write(&source, PROGRAM).context("cannot write the program")?;
    output(Command::new(mpicc).arg("-O2").arg("-o").arg(&program).arg(source))?;
    Ok(program)
}

/// The `mpicc` in the folder of `mpirun`, or of what that links to, or else in `PATH`.
fn compiler(mpirun: &Path) -> Option<PathBuf> {
    let linked = mpirun.canonicalize().ok();
    let beside = [Some(mpirun), linked.as_deref()];
    let mut beside = beside.into_iter().flatten().map(|mpirun| mpirun.with_file_name("mpicc"));
    beside.find(|mpicc| mpicc.is_file()).or_else(|| in_path(OsStr::new("mpicc")))
}

/// A path as it is, a bare name from `PATH`.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    in_path(program.as_os_str())
}

fn in_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// What a command prints, if it ends well; else what it complains of.
fn output(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).display().to_string();
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        // Some launchers complain on their standard output.
        let complaint = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
        bail!("{program} failed ({status}):\n{}", String::from_utf8_lossy(&complaint).trim());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Reads the program's lines; all others, which launchers like to add, are passed over.
fn figures(output: &str) -> Result<Vec<MpiFigure>> {
    let mut library = String::from("unknown");
    let mut figures = Vec::new();
    for line in output.lines() {
        if let Some(version) = line.strip_prefix("library ") {
            library = short(version);
        } else if let Some(figure) = line.strip_prefix("figure ") {
            let (bytes, samples) = figure.split_once(' ').context("a figure without samples")?;
            let samples = samples.split_whitespace().map(str::parse::<f64>);
            let samples = samples.collect::<Result<Vec<f64>, _>>();
            let samples = samples.with_context(|| format!("no samples of a figure: {line}"))?;
            ensure!(!samples.is_empty(), "a figure without samples");
            let Summary { median, ci95, p99, count } = Summary::of(&samples);
            figures.push(MpiFigure {
                bytes: bytes.parse().with_context(|| format!("no size in bytes: {bytes}"))?,
                median_ns: median,
                p99_ns: p99,
                ci95_ns: ci95,
                reps: count as u64,
                library: library.clone(),
            });
        }
    }
    Ok(figures)
}

/// `Open MPI v5.0.11, package: ...` and `MPICH Version:      5.0.2` without what does not matter.
fn short(version: &str) -> String {
    let name = version.split(',').next().unwrap_or(version);
    let words = name.split_whitespace().filter(|word| *word != "Version:");
    words.collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_lines_are_read() {
        let output = "a launcher's warning\n\
                      library Open MPI v5.0.11, package: whatever, ident: 5.0.11\n\
                      figure 8 74.00 73.50 90.25\n\
                      figure 65536 7454.70\n";
        let figures = figures(output).unwrap();
        assert_eq!(figures.len(), 2);
        let first = MpiFigure {
            bytes: 8,
            median_ns: 74.0,
            p99_ns: 90.25,
            ci95_ns: (73.5, 90.25),
            reps: 3,
            library: "Open MPI v5.0.11".to_owned(),
        };
        assert_eq!(figures[0], first);
        assert_eq!((figures[1].bytes, figures[1].median_ns), (65536, 7454.7));
    }

    #[test]
    fn broken_lines_are_errors() {
        for line in ["figure 8", "figure 8 ", "figure 8 fast", "figure x 1.0"] {
            assert!(figures(line).is_err(), "{line}");
        }
        assert_eq!(figures("").unwrap(), []);
    }

    #[test]
    fn libraries_have_short_names() {
        assert_eq!(short("MPICH Version:      5.0.2"), "MPICH 5.0.2");
        let intel = "Intel(R) MPI Library 2021.18 for Linux* OS";
        assert_eq!(short(intel), intel);
    }

    #[test]
    fn launchers_get_their_options() {
        assert_eq!(Launcher::named("mpirun (Open MPI) 5.0.11"), Launcher::OpenMpi);
        assert_eq!(Launcher::named("mpiexec (OpenRTE) 4.1.4"), Launcher::OpenMpi);
        assert_eq!(Launcher::named("HYDRA build details:"), Launcher::Hydra);
        assert_eq!(Launcher::named("Intel(R) MPI Library for Linux* OS"), Launcher::Other);
        assert_eq!(Launcher::Hydra.arguments(true), ["-bind-to", "core"]);
        assert!(Launcher::OpenMpi.arguments(false).ends_with(&["--bind-to", "none"]));
    }

    #[test]
    fn an_absent_mpirun_is_named_with_advice() {
        for absent in ["/nowhere/at/all/mpirun", "mpirun-that-nobody-has"] {
            let error = bench(Path::new(absent), "barrier", 2, &[]).unwrap_err().to_string();
            assert!(error.contains(absent) && error.contains("install an MPI"), "{error}");
        }
    }

    #[test]
    fn what_mpi_cannot_do_is_refused() {
        let refused = |collective, bytes| {
            let error = bench(Path::new("/nowhere/mpirun"), collective, 2, &[bytes]).unwrap_err();
            error.to_string()
        };
        assert!(refused("reduce", 12).contains("no multiple of 8"));
        assert!(refused("broadcast", 1 << 31).contains("2^31"));
        assert!(refused("shuffle", 8).contains("no MPI benchmark of shuffle"));
    }

    #[test]
    fn the_compiler_beside_mpirun_is_preferred() {
        let folder = tempfile::tempdir().unwrap();
        let (mpirun, mpicc) = (folder.path().join("mpirun"), folder.path().join("mpicc"));
        fs::write(&mpirun, "").unwrap();
        assert_ne!(compiler(&mpirun), Some(mpicc.clone()));
        fs::write(&mpicc, "").unwrap();
        assert_eq!(compiler(&mpirun), Some(mpicc));
    }
}
