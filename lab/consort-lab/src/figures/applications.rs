//! G10 (Nishtala, Zheng, Hargrove and Yelick 2011, section 6): applications whose broadcasts and
//! exchanges overlap with computation, compared with other libraries and with blocking calls.
//!
//! The applications are not part of this library, but programs of a source checkout. The script
//! `/lab/apps/compare` of the checkout builds them, and runs them and their peers in turn with the
//! same local kernels. This module runs the script in reduced form and reads its output with
//! `--json`. Without an MPI, the PEs are processes that this command starts, and there is no peer.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{
    experiment::{Experiment, Outcome},
    figure::Figure,
    networks::{BLUE_GENE, CRAY},
};
use consort_bench::{
    page::Page,
    peers::{commands, mpi},
    units::{in_a_line, ratio},
};

figures! { pub FIGURES of "G10", "sections 6.1 to 6.3": "ratio":
    // The matrix multiplication "significantly outperforms" ScaLAPACK.
    SUMMA_OF_PEER("summa, pdgemm over overlap", CRAY >= 1.0)
    SUMMA_BLOCKING("summa, blocking over overlap", CRAY >= 1.0, BLUE_GENE >= 1.0)
    SUMMA_MESSAGES("summa, binomial messages over overlap", CRAY >= 1.0, BLUE_GENE >= 1.0)
    // Cholesky "performs better than or equally well". Methods within 2 % perform equally well.
    CHOLESKY_OF_PEER("cholesky, pdpotrf over overlap", CRAY >= 0.98)
    CHOLESKY_BLOCKING("cholesky, blocking over overlap")
    CHOLESKY_MESSAGES("cholesky, binomial messages over blocking", CRAY >= 0.98, BLUE_GENE >= 0.98)
    // "17% at 32,768 cores".
    FT_OF_PEER("ft, fftw_mpi over overlap")
    FT_BLOCKING("ft, blocking over overlap", BLUE_GENE == 1.17)
    FT_MESSAGES("ft, pairwise messages over overlap")
}

/// The checkout from which this was built, or the folder that a release names in `CONSORT_SOURCES`.
const SOURCES: &str = match option_env!("CONSORT_SOURCES") {
    Some(folder) => folder,
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
};
/// Reduced problems, which take less than a second each.
const PROBLEMS: [&str; 8] = ["--size", "1024", "--class", "W", "--blocks", "64", "--repeat", "3"];
/// The approximate time of a launch of each side.
const ROUND: Duration = Duration::from_secs(5);
const MOST_ROUNDS: u32 = 5;
/// The longest time that building and running may take.
const LIMIT: Duration = Duration::from_secs(1200);

/// An application, its overlapping and its blocking variant, its peer, the paper's machine, and the
/// figures of the peer and of the blocking variant.
type Application =
    (&'static str, [&'static str; 2], &'static str, &'static str, [&'static Figure; 2]);

const APPLICATIONS: [Application; 3] = [
    ("summa", ["overlap", "blocking"], "pdgemm", CRAY, [&SUMMA_OF_PEER, &SUMMA_BLOCKING]),
    ("cholesky", ["overlap", "blocking"], "pdpotrf", CRAY, [&CHOLESKY_OF_PEER, &CHOLESKY_BLOCKING]),
    ("ft", ["pencils", "pencils-whole"], "fftw_mpi", BLUE_GENE, [&FT_OF_PEER, &FT_BLOCKING]),
];
/// The variants of FT without a grid of PEs: a layout that the paper does not have.
const SLABS: [&str; 2] = ["slabs", "whole"];

/// A line of the script's output.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Side { application: String, side: String, seconds: f64 },
    Absent { peer: String, left_out: String },
}

/// Runs the applications and judges the claim.
///
/// # Errors
/// When the script fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    if !experiment.whole {
        let why = "applications take a while to build: run `consort-lab reproduce G10`";
        return Ok(Outcome::unmeasured(why));
    }
    let script = script();
    if !script.exists() {
        let why = "the applications are only in the source checkout: run lab/apps/compare there";
        return Ok(Outcome::unmeasured(why));
    }
    let pes = experiment.team_size();
    let mut command = Command::new(script);
    command.args(["--json", "--pes", &pes.to_string()]).args(PROBLEMS);
    let fits = |rounds: &u32| ROUND * *rounds <= experiment.budget;
    let rounds = (1..=MOST_ROUNDS).rev().find(fits).unwrap_or(1);
    command.args(["--rounds", &rounds.to_string()]);
    let Some((launcher, without)) = launcher(experiment) else {
        let why = "neither `mpirun` nor `consort` is in PATH: build consort with `cargo build \
                   --release`";
        return Ok(Outcome::unmeasured(why));
    };
    command.args(["--launcher", &launcher]).args(without);
    let printed = commands::output(&mut command, LIMIT, experiment.stop)?;
    outcome(pes, &printed)
}

/// Returns the script that runs the applications.
fn script() -> PathBuf {
    Path::new(SOURCES).join("lab/apps/compare")
}

/// Returns the command that starts PEs, if there is one, and the option that leaves out all peers,
/// which need an MPI.
fn launcher(experiment: &Experiment<'_>) -> Option<(String, Option<String>)> {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.display());
    if let Ok(launcher) = mpi::launcher(1, experiment.stop) {
        // The last word is the number of processes.
        let words = std::iter::once(launcher.get_program()).chain(launcher.get_args());
        let mut words: Vec<String> = words.map(quoted).collect();
        words.pop();
        return Some((words.join(" ") + " {pes}", None));
    }
    // The command `consort` of this installation, or else the one in PATH.
    let installed = env::current_exe().ok().map(|own| own.with_file_name("consort"));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).map(|folder| folder.join("consort"));
    let consort = installed.into_iter().chain(in_path).find(|it| it.is_file())?;
    let peers = APPLICATIONS.map(|(_, _, peer, ..)| peer).join(",");
    Some((quoted(consort.as_os_str()) + " run -n {pes}", Some(format!("--without={peers}"))))
}

/// Returns the outcome of the claim for the script's output.
fn outcome(pes: u32, printed: &str) -> Result<Outcome> {
    let lines: Vec<Line> = printed
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).with_context(|| format!("lab/apps/compare: {line}")))
        .collect::<Result<_>>()?;
    let seconds = |name: &str, way: &str| {
        lines.iter().find_map(|line| match line {
            Line::Side { application, side, seconds } => {
                (application == name && side == way).then_some(*seconds)
            }
            Line::Absent { .. } => None,
        })
    };
    let (mut rows, mut quantities, mut verdict) = (Vec::new(), Vec::new(), Vec::new());
    for (name, variants, peer, machine, figures) in APPLICATIONS {
        let is_published = name != "ft" || seconds(name, variants[0]).is_some();
        let [overlap, blocking] = if is_published { variants } else { SLABS };
        let Some(own) = seconds(name, overlap) else { bail!("lab/apps/compare ran no {name}") };
        let others =
            [seconds(name, peer), seconds(name, blocking)].map(|other| other.map(|s| s / own));
        let shown = |value: Option<f64>, of: fn(f64) -> String| value.map_or("-".to_owned(), of);
        rows.push(vec![
            name.to_owned(),
            format!("{own:.4} s"),
            shown(others[0], ratio),
            shown(others[1], ratio),
        ]);
        let known = figures.into_iter().zip(others).filter_map(|(of, value)| Some((of, value?)));
        quantities.extend(known.map(|(of, value)| {
            let quantity = of.on(machine).with_pes(pes).native(value);
            if is_published { quantity } else { quantity.by("in slabs", false) }
        }));
        let with_peer =
            others[0].map_or(String::new(), |value| format!("{} with {peer}, ", ratio(value)));
        let blocking = shown(others[1], ratio);
        verdict.push(format!("{name} {with_peer}{blocking} with blocking"));
    }
    let absent = lines.iter().filter_map(|line| match line {
        Line::Absent { peer, left_out } => Some(format!("{peer} is left out: {left_out}")),
        Line::Side { .. } => None,
    });
    let mut page = Page::default();
    page.paragraph(format!("{pes} PEs, 1024 by 1024, class W, the same kernels on all sides"));
    page.table(["application", "overlap", "peer", "blocking"].map(str::to_owned), rows, 1..=3);
    page.lines("\n");
    for why in absent {
        page.paragraph(in_a_line(&anyhow::anyhow!(why)));
    }
    page.paragraph(
        "The paper: multiplication well ahead of ScaLAPACK, Cholesky at least equal, FT gains 17 % \
         by overlap on 32 768 cores.",
    );
    let verdict = format!("{pes} PEs, time relative to overlap: {}", verdict.join("; "));
    Ok(Outcome { verdict, page, quantities })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::figures::figure::Paper;

    const PRINTED: &str = r#"
{"peer": "pdgemm", "left_out": "its library is missing: cannot find -lscalapack"}
{"application": "summa", "side": "overlap", "pes": 2, "seconds": 0.5, "least_seconds": 0.4}
{"application": "summa", "side": "blocking", "pes": 2, "seconds": 0.6, "least_seconds": 0.4}
{"application": "cholesky", "side": "overlap", "pes": 2, "seconds": 0.1, "least_seconds": 0.1}
{"application": "cholesky", "side": "blocking", "pes": 2, "seconds": 0.1, "least_seconds": 0.1}
{"application": "cholesky", "side": "pdpotrf", "pes": 2, "seconds": 0.15, "least_seconds": 0.1}
{"application": "ft", "side": "whole", "pes": 2, "seconds": 0.24, "least_seconds": 0.1}
{"application": "ft", "side": "slabs", "pes": 2, "seconds": 0.2, "least_seconds": 0.1}
{"application": "ft", "side": "pencils-whole", "pes": 2, "seconds": 0.33, "least_seconds": 0.1}
{"application": "ft", "side": "pencils", "pes": 2, "seconds": 0.3, "least_seconds": 0.1}
"#;

    #[test]
    fn script_accepts_these_options() {
        let never = AtomicBool::new(false);
        let limit = Duration::from_secs(20);
        let help = commands::output(Command::new(script()).arg("--help"), limit, &never).unwrap();
        let own = ["--json", "--pes", "--rounds", "--launcher", "--without"];
        let given = PROBLEMS.into_iter().filter(|word| word.starts_with("--"));
        assert!(own.into_iter().chain(given).all(|option| help.contains(option)), "{help}");
    }

    #[test]
    fn printed_figures_are_compared_with_the_paper() {
        let Outcome { quantities, verdict, .. } = outcome(2, PRINTED).unwrap();
        let figures: Vec<_> =
            quantities.iter().map(|one| (&*one.quantity, one.paper, one.native)).collect();
        let least = Some(Paper::AtLeast(1.0));
        let expected = [
            ("summa, blocking over overlap, 2 PEs", least, Some(1.2)),
            ("cholesky, pdpotrf over overlap, 2 PEs", Some(Paper::AtLeast(0.98)), Some(1.5)),
            ("cholesky, blocking over overlap, 2 PEs", None, Some(1.0)),
            ("ft, blocking over overlap, 2 PEs", Some(Paper::Value(1.17)), Some(1.1)),
        ];
        assert_eq!(figures, expected);
        let in_slabs = outcome(2, &PRINTED.replace("pencils", "bars")).unwrap().quantities;
        let in_slabs = in_slabs.last().map(|one| (&*one.quantity, one.paper, one.native));
        let name = "ft, blocking over overlap, 2 PEs, in slabs";
        assert_eq!(in_slabs, Some((name, None, Some(1.2))));
        assert!(!verdict.contains("pdgemm") && verdict.contains("with pdpotrf"), "{verdict}");
        let none = PRINTED.replace("pencils", "bars").replace("slabs", "bars");
        let error = outcome(2, &none).err().expect("an error");
        assert!(error.to_string().contains("no ft"), "{error}");
    }
}
