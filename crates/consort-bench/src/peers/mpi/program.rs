//! MPI libraries as peers: a C program, compiled and launched by any MPI that is named.
//!
//! The program is part of this library. It is compiled with the `mpicc` beside the named `mpirun`,
//! and started with one process for each PE, bound to cores if they fit. It prints the times of its
//! blocks of calls; its head defines a sample. The statistics are computed here, as for Consort's
//! own figures.
//!
//! The processes inherit the affinity mask of the calling thread, so do not call this from a pinned
//! thread.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use consort_fabric::statistics::Summary;

use super::installation::Mpi;

const PROGRAM: &str = include_str!("mpi_bench.c");
/// The collectives that the program times, by the names in its table.
const COLLECTIVES: [&str; 14] = [
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
];
/// Those of them that sum doubles.
const SUMS: [&str; 4] = ["reduce", "all_reduce", "reduce_scatter", "scan"];
/// Measuring time for each size, in seconds.
const BUDGET_SECONDS: f64 = 0.3;
/// The seconds, once and for each size, after which the program counts as hanging.
const LIMIT_SECONDS: usize = 30;

/// The time of one collective of an MPI library at one size: throughput of calls in a row on one
/// reused buffer, the time of the slowest rank.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MpiFigure {
    /// Size of a block in bytes, as the program's head defines it; 0 for a barrier.
    pub(super) bytes: u64,
    /// The time of one call in nanoseconds, over the blocks.
    pub(super) times: Summary,
    /// The library's name and version, as it reports them.
    pub(super) library: String,
}

/// Measures `collective`, one of the program's, with the MPI of this `mpirun` (a path, or a name to
/// find in `PATH`), on `pes` processes of this machine. A barrier has no size, and has one figure.
///
/// # Errors
/// When the MPI does not exist or is not complete, or its run fails. The message contains the
/// remedy.
pub(super) fn bench(
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
    let program = mpi.compile(PROGRAM, folder.path())?;
    timed(&mpi, &program, collective, pes, sizes, BUDGET_SECONDS)
}

/// Runs the compiled program and returns its figures.
fn timed(
    mpi: &Mpi,
    program: &Path,
    collective: &str,
    pes: u32,
    sizes: &[u64],
    budget_seconds: f64,
) -> Result<Vec<MpiFigure>> {
    let limit_seconds = LIMIT_SECONDS * (1 + sizes.len());
    let mut arguments =
        vec![collective.to_owned(), budget_seconds.to_string(), limit_seconds.to_string()];
    arguments.extend(sizes.iter().map(u64::to_string));
    let figures = figures(&mpi.run(program, pes, &arguments)?)?;
    let (found, asked) = (figures.len(), sizes.len());
    ensure!(found == asked, "the program printed {found} figures for {asked} sizes");
    Ok(figures)
}

/// Parses the program's lines. Other lines, which launchers may add, are skipped.
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
            figures.push(MpiFigure {
                bytes: bytes.parse().with_context(|| format!("no size in bytes: {bytes}"))?,
                times: Summary::of(&samples),
                library: library.clone(),
            });
        }
    }
    Ok(figures)
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
            times: Summary { median: 74.0, p99: 90.25, ci95: (73.5, 90.25), count: 3 },
            library: "Open MPI v5.0.11".to_owned(),
        };
        assert_eq!(figures[0], first);
        assert_eq!((figures[1].bytes, figures[1].times.median), (65536, 7454.7));
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
        assert_eq!(short(intel), "Intel(R) MPI Library 2021.18");
    }

    /// Uses the MPI in `PATH`, if there is one that compiles. To test another, put it first there.
    #[test]
    fn every_collective_has_figures() {
        let mpi = match Mpi::find(Path::new("mpirun")) {
            Ok(mpi) => mpi,
            Err(why) => {
                eprintln!("skipped: {why:#}");
                return;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile(PROGRAM, folder.path()).unwrap();
        for collective in COLLECTIVES {
            let sizes = if collective == "barrier" { &[0][..] } else { &[8, 1024] };
            let figures = timed(&mpi, &program, collective, 2, sizes, 0.0).unwrap();
            let bytes = figures.iter().map(|figure| figure.bytes);
            assert!(bytes.eq(sizes.iter().copied()), "{collective}: {figures:?}");
            assert!(figures.iter().all(|figure| figure.times.median > 0.0), "{collective}");
        }
        let error = timed(&mpi, &program, "shuffle", 2, &[8], 0.0).unwrap_err().to_string();
        assert!(error.contains("no collective shuffle"), "{error}");
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
}
