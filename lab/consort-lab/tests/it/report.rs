//! Tests results as HTML. A browser opens the reports in `ci/report`.

use std::{fs, process::Output};

use consort_sandbox::commands::{report_of, run_in, said};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_consort-lab");

fn lab(folder: &TempDir, line: &str) -> Output {
    run_in(PROGRAM, folder.path(), line)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn each_command_has_a_report_with_plots() {
    let folder = folder();
    for (line, kind, part) in [
        ("sim broadcast --pes 8 --lines 1,4", "lines", "Where a PE&#39;s time goes"),
        ("sim barrier --pes 8", "bars", "The simulated machine"),
        ("reproduce H1 --pes 3 --budget 0", "bars", "are given by its source"),
        ("reproduce T5 --budget 0", "lines", "get, us by routers"),
        ("reproduce T5 --budget 0", "lines", ">Time, us</text>"),
    ] {
        let html = report_of(PROGRAM, folder.path(), line);
        assert!(html.contains(part), "{line}: {part}");
        let is_plot = html.contains(&format!("<figure class=\"plot {kind}"));
        assert!(is_plot, "{line}: no {kind}");
    }
}

/// For each claim: the mechanism, where the parameters of its machine come from, and the figures
/// that are met and missed.
#[test]
fn reproduction_shows_the_evidence_of_a_claim() {
    let html = report_of(PROGRAM, folder().path(), "reproduce T5 T7 --budget 0");
    let sections: Vec<&str> = html.split("<h2 ").skip(2).collect();
    let fact = |section: &str, name: &str| {
        let (_, rest) = section.split_once(&format!("<dt>{name}</dt><dd>"))?;
        Some(rest.split("</dd>").next()?.to_owned())
    };
    let [t5, t7, ..] = sections[..] else { panic!("{} sections", sections.len()) };
    for section in [t5, t7] {
        let of = |name| fact(section, name).unwrap_or_else(|| panic!("{name}: {section}"));
        assert!(of("Mechanism").ends_with('.'), "{section}");
        assert!(of("Given").contains(" parameters, by Petrović 2015, Table 4.1"), "{section}");
        assert!(of("Assumed").contains("2 parameters (queued_reads, queued_writes)"), "{section}");
        assert!(of("Met, simulated").contains(" of "), "{section}");
    }
    let fitted = "Fitted to these figures";
    let is_of = |section, parameter| fact(section, fitted).is_some_and(|it| it.contains(parameter));
    assert!(is_of(t5, "flag_read_ns to throughput, k=2;") && !is_of(t5, "serve_ns"), "{t5}");
    assert!(is_of(t7, "serve_ns to gets of 128 lines") && !is_of(t7, "flag_read_ns"), "{t7}");
    let uncounted = fact(t5, "Met, but fitted, so not counted").expect("fitted figures");
    assert!(uncounted.contains("throughput, k=47"), "{uncounted}");
    let missed = fact(t7, "Missed, simulated").expect("missed figures");
    assert!(missed.contains("puts of 1 line, 48 cores"), "{missed}");
    for (section, result) in [(t5, "fitted"), (t5, "met"), (t7, "missed")] {
        assert!(section.contains(&format!("\">{result}</span>")), "{result}: {section}");
    }
}

#[test]
fn prediction_is_compared_with_measurement() {
    let folder = folder();
    let output = lab(&folder, "calibrate --budget 0.2 --output ./mine.toml");
    assert!(output.status.success(), "{}", said(&output));
    let line = "predict --machine ./mine.toml --bytes 8,1k --sync mine --budget 0.5";
    let output = lab(&folder, &format!("{line} --report report.html --csv=calls.csv"));
    // On a machine whose cores change, there may be no valid measurement.
    if output.status.success() {
        let html = read(&folder, "report.html");
        assert!(html.contains("Predicted and measured") && html.contains("as measured"), "{html}");
        assert!(read(&folder, "calls.csv").starts_with("collective,sync,pes,bytes,"));
    }
}

#[test]
fn outside_names_are_escaped() {
    let folder = folder();
    let name = "<script>alert(1)<&script>.toml";
    let described = lab(&folder, "machines scc --source");
    fs::write(folder.path().join(name), described.stdout).expect("a description");
    let html =
        report_of(PROGRAM, folder.path(), &format!("sim barrier --pes 4 --machine ./{name}"));
    assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains("<script>alert"), "{html}");
}
