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
use std::path::{self, Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = include_str!("mpi_bench.c");
/// What the program times, by the names that its table has.
const COLLECTIVES: [&str; 10] = [
    "barrier",
    "broadcast",
    "reduce",
    "all_reduce",
    "all_gather",
    "exchange",
    "scatter",
    "gather",
    "reduce_scatter",
    "scan",
];
/// Those of them that sum doubles.
const SUMS: [&str; 4] = ["reduce", "all_reduce", "reduce_scatter", "scan"];
/// Measuring time for each size, in seconds.
const BUDGET_SECONDS: f64 = 0.3;
/// After so many seconds, and as many again for each size, the program is hanging.
const LIMIT_SECONDS: usize = 30;

/// What an MPI library takes for one collective at one size: throughput of calls in a row, on one
/// reused buffer, the slowest rank's time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MpiFigure {
    /// Size of a block in bytes, as the program's head defines it; 0 for a barrier.
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

/// Measures `collective`, one of the program's, with the MPI whose `mpirun` is named (by a path, or
/// a name to find in `PATH`), on `pes` processes of this machine. A barrier has no size, and gives
/// one figure.
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
        COLLECTIVES.contains(&collective),
        "no MPI benchmark of {collective}: there are {}",
        COLLECTIVES.join(", ")
    );
    let sizes = if collective == "barrier" { &[0] } else { sizes };
    for &bytes in sizes {
        ensure!(i32::try_from(bytes).is_ok(), "MPI counts to 2^31 - 1: {bytes} bytes are too many");
        ensure!(
            !SUMS.contains(&collective) || bytes % 8 == 0,
            "a {collective} is of whole doubles: {bytes} bytes is no multiple of 8"
        );
    }
    let mpi = Mpi::find(mpirun)?;
    let folder = tempfile::tempdir().context("no temporary folder to compile in")?;
    let program = mpi.compile(folder.path())?;
    mpi.run(&program, collective, pes, sizes, BUDGET_SECONDS)
}

/// A library that can be started.
struct Mpi {
    /// Absolute, but a link if it was named by one.
    mpirun: PathBuf,
    launcher: Launcher,
}

impl Mpi {
    fn find(mpirun: &Path) -> Result<Mpi> {
        let found = find(mpirun).with_context(|| {
            format!(
                "no {} here: install an MPI (ci/install-mpis does, or take a package `openmpi` \
                 or `mpich`, the system's or Python's), or name the mpirun of another",
                mpirun.display()
            )
        })?;
        let mpirun = path::absolute(&found).context("no current folder")?;
        let launcher = Launcher::named(&output(command(&mpirun, &mpirun).arg("--version"))?);
        Ok(Mpi { mpirun, launcher })
    }

    fn compile(&self, folder: &Path) -> Result<PathBuf> {
        let mpicc = compiler(&self.mpirun).with_context(|| {
            format!(
                "{} has no mpicc beside it, and none is in PATH: install what this MPI needs to \
                 compile programs (on Debian, its -dev package)",
                self.mpirun.display()
            )
        })?;
        let (source, program) = (folder.join("mpi_bench.c"), folder.join("mpi_bench"));
        fs::write(&source, PROGRAM).context("cannot write the program")?;
        let mut compile = command(&mpicc, &self.mpirun);
        compile.arg("-O2").arg("-o").arg(&program).arg(source);
        if self.launcher == Launcher::Other
            && let Some(root) = intel_root(&mpicc)
        {
            compile.env("I_MPI_ROOT", root);
        }
        output(&mut compile)?;
        Ok(program)
    }

    fn run(
        &self,
        program: &Path,
        collective: &str,
        pes: u32,
        sizes: &[u64],
        budget_seconds: f64,
    ) -> Result<Vec<MpiFigure>> {
        let bound = pes as usize <= Topology::discover().usable_cores();
        let limit_seconds = LIMIT_SECONDS * (1 + sizes.len());
        let mut run = command(&self.mpirun, &self.mpirun);
        run.args(self.launcher.arguments(bound)).arg("-n").arg(pes.to_string()).arg(program);
        run.args([collective, &budget_seconds.to_string(), &limit_seconds.to_string()]);
        run.args(sizes.iter().map(u64::to_string));
        let figures = figures(&output(&mut run)?)?;
        ensure!(
            figures.len() == sizes.len(),
            "{} printed {} figures for {} sizes",
            self.mpirun.display(),
            figures.len(),
            sizes.len()
        );
        Ok(figures)
    }
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

/// A command of an MPI, which finds its other parts before those of MPIs in `PATH`: Intel's
/// `mpirun` is a script that looks for them there, unless it was activated.
fn command(program: &Path, mpirun: &Path) -> Command {
    let folder = mpirun.parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    // A folder with a colon cannot be in PATH.
    if let Ok(path) = env::join_paths(folder.into_iter().chain(env::split_paths(&path))) {
        command.env("PATH", path);
    }
    command
}

/// What Intel's `mpicc` takes for its folder. The one in Python's package does not know its own,
/// and that of an MPI which was activated may be another's. Only layouts with the library in `lib`
/// are called by the folder above `bin`.
fn intel_root(mpicc: &Path) -> Option<&Path> {
    mpicc.parent()?.parent().filter(|root| root.join("lib/libmpi.so").exists())
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

    /// With the MPI in `PATH`, if there is one that compiles: another is put first there.
    #[test]
    fn every_collective_has_figures() {
        let Some(mpirun) = find(Path::new("mpirun")) else {
            eprintln!("skipped: there is no mpirun in PATH");
            return;
        };
        let mpi = Mpi::find(&mpirun).unwrap();
        if compiler(&mpi.mpirun).is_none() {
            eprintln!("skipped: {} has no mpicc", mpi.mpirun.display());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile(folder.path()).unwrap();
        for collective in COLLECTIVES {
            let sizes = if collective == "barrier" { &[0][..] } else { &[8, 1024] };
            let figures = mpi.run(&program, collective, 2, sizes, 0.0).unwrap();
            let bytes = figures.iter().map(|figure| figure.bytes);
            assert!(bytes.eq(sizes.iter().copied()), "{collective}: {figures:?}");
            assert!(figures.iter().all(|figure| figure.median_ns > 0.0), "{collective}");
        }
        let error = mpi.run(&program, "shuffle", 2, &[8], 0.0).unwrap_err().to_string();
        assert!(error.contains("no collective shuffle"), "{error}");
    }

    #[test]
    fn a_command_finds_the_parts_of_its_own_mpi_first() {
        let mpirun = Path::new("/an/mpi/bin/mpirun");
        let command = command(mpirun, mpirun);
        let (_, path) = command.get_envs().find(|(name, _)| *name == "PATH").unwrap();
        let first = env::split_paths(path.unwrap()).next();
        assert_eq!(first.as_deref(), mpirun.parent());
    }

    #[test]
    fn the_root_of_intels_compiler_is_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let mpicc = folder.path().join("bin/mpicc");
        assert_eq!(intel_root(&mpicc), None);
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("lib/libmpi.so"), "").unwrap();
        assert_eq!(intel_root(&mpicc), Some(folder.path()));
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
