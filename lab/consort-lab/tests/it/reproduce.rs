//! Tests `consort-lab reproduce` with the smallest budgets.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;

use consort_sandbox::commands::says;

use super::{keys, lab, objects, stdout};

const QUANTITY: [&str; 13] = [
    "claim",
    "machine",
    "quantity",
    "figure",
    "unit",
    "paper",
    "model",
    "simulated",
    "fitted",
    "native",
    "rel_error",
    "holds",
    "context",
];

#[test]
fn claims_print_readable_figures() {
    for (claim, part) in [
        ("H1", "logarithmic"),
        ("h3", "Strict over Loose"),
        ("H5", "flat is best"),
        ("g1", "median"),
    ] {
        let page = stdout(&format!("reproduce {claim} --pes 3 --budget 0 --here"));
        assert!(says(&page, part) && says(&page, "Here: 3 PEs"), "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    }
}

#[test]
fn several_claims_print_in_order() {
    let page = stdout("reproduce H5 h1 --pes 3 --budget 0 --here");
    let claims: Vec<&str> = page.lines().filter(|line| line.contains(": ")).collect();
    let at = |claim: &str| claims.iter().position(|line| line.starts_with(claim));
    assert!(at("H5: ") < at("H1: ") && at("H5: ").is_some(), "{page}");
    let objects = objects("reproduce H5 H1 --pes 3 --budget 0 --here --json");
    let of = |claim: &str| objects.iter().filter(|object| object["claim"] == claim).count();
    assert!(of("H5") > 0 && of("H1") > 0, "{objects:?}");
}

/// Tests the simulated messages. Which algorithms exist and which one wins is not tested.
#[test]
fn dissemination_messages_match_the_paper() {
    let objects = objects("reproduce G6 --pes 4 --budget 0 --here --json");
    let counts: Vec<&Value> =
        objects.iter().filter(|object| object["figure"] == "G6.MESSAGES").collect();
    assert!(counts.len() >= 3, "{objects:?}");
    for object in counts {
        // Messages of an all-gather that wrap around are sent as two.
        let wraps = object["quantity"].as_str().is_some_and(|what| what.contains("all_gather"));
        let range = if wraps { 0.0..=0.2 } else { 0.0..=0.0 };
        let error = object["rel_error"].as_f64();
        assert!(error.is_some_and(|error| range.contains(&error)), "{object}");
    }
    assert!(objects.iter().any(|object| object["native"].is_number()));
    assert!(objects.iter().any(|object| object["machine"] == "scc"));
}

#[test]
fn every_collective_is_compared_in_modes_addresses_and_transfers() {
    for claim in ["G1", "G4", "G5"] {
        let objects = objects(&format!("reproduce {claim} --pes 3 --budget 0 --here --json"));
        // The paper's transfers are those of broadcasts.
        let all = ["broadcast", "gather", "all_to_all", "reduce", "scan"];
        for collective in if claim == "G5" { &all[..1] } else { &all } {
            let of = |object: &&Value| {
                object["quantity"].as_str().is_some_and(|what| what.starts_with(collective))
            };
            assert!(objects.iter().any(|object| of(&object)), "{claim}, {collective}: {objects:?}");
        }
        for object in &objects {
            assert_eq!(keys(object), BTreeSet::from(QUANTITY));
            assert!(object["native"].as_f64() > Some(0.0), "{object}");
        }
    }
}

#[test]
fn counting_puts_are_compared_with_flags() {
    for (claim, part) in [("P3", "ping-pong"), ("P4", "put, barrier over"), ("P5", "stencil")] {
        let text = stdout(&format!("reproduce {claim} --budget 0 --json"));
        if text.trim().is_empty() {
            continue; // all blocks were disturbed
        }
        assert!(says(&text, part) && says(&text, "flag over counted put"), "{text}");
        let first: Value = serde_json::from_str(text.lines().next().expect("a line")).unwrap();
        assert_eq!(keys(&first), BTreeSet::from(QUANTITY));
        assert_eq!(first["paper"].is_number(), claim != "P5", "{first}");
    }
}

/// The figures of counting puts come from their machine, whatever was measured here.
#[test]
fn counting_puts_run_on_their_machine() {
    for (claim, pes, figures) in [("P3", 2, 13), ("P4", 180, 18), ("P5", 48, 7)] {
        let objects = objects(&format!("reproduce {claim} --pes 2 --budget 0 --json"));
        let of_machine = |object: &&Value| {
            let suffix = format!(", {pes} PEs");
            object["machine"] == "xeon-x5680-infiniband"
                && object["simulated"].as_f64() > Some(0.0)
                && object["quantity"].as_str().is_some_and(|what| what.ends_with(&suffix))
        };
        assert_eq!(objects.iter().filter(of_machine).count(), figures, "{claim}: {objects:?}");
    }
}

/// Without an MPI there are figures of threads and processes, and the reason why there are no more.
#[test]
fn claim_without_an_mpi_says_so() {
    let page = stdout("reproduce G7 --budget 0").replace('\n', " ");
    assert!(says(&page, "Here: not measured: --fabric mpi") && says(&page, "no mpirun found"));
    assert_eq!(stdout("reproduce G7 --budget 0 --json"), "");
    let page = stdout("reproduce F7 --budget 0").replace('\n', " ");
    assert!(says(&page, "the same calls ran on threads, processes of a machine; not"), "{page}");
    assert!(says(&page, "no mpirun found"), "{page}");
    let objects = objects("reproduce F7 --pes 2 --budget 0 --json");
    assert_eq!(objects.len(), 8, "four calls of two kinds of PEs: {objects:?}");
    for object in objects {
        assert!(object["native"].as_f64() > Some(0.0) && object["paper"].is_null(), "{object}");
    }
    for claim in ["G7", "F7"] {
        let output = lab(&format!("reproduce {claim} --pes 5"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("each process has 2"), "{said}");
    }
}

/// The command `consort` may be next to this one in the folder of the build.
#[test]
fn applications_without_a_launcher_are_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("consort-lab");
    fs::copy(env!("CARGO_BIN_EXE_consort-lab"), &program).expect("a copy");
    let mut command = Command::new(program);
    command.args(["reproduce", "G10", "--here", "--budget", "0"]).current_dir(&folder);
    let output = command.env("PATH", folder.path()).output().expect("the command starts");
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(says(&page, "not measured: neither `mpirun` nor `consort` is in PATH"), "{page}");
    assert!(output.status.success());
}

mod night {
    use super::*;

    /// A line each, so that a screen of 80 columns and 34 lines has all, with the heading.
    #[test]
    fn all_claims_fit_one_screen() {
        let page = stdout("reproduce --budget 0");
        let is_warning = |line: &&str| line.starts_with("the machine was busy");
        let lines: Vec<&str> = page.lines().filter(|line| !is_warning(line)).collect();
        assert!(
            lines.len() <= 38 && lines.iter().all(|line| line.chars().count() <= 100),
            "{page}"
        );
        let claims = lines.iter().filter(|line| {
            let mut words = line.split_whitespace();
            words
                .next()
                .is_some_and(|word| word.len() <= 3 && word.starts_with(['H', 'T', 'G', 'P', 'F']))
                && words
                    .next()
                    .is_some_and(|word| ["holds", "partly", "misses", "-"].contains(&word))
        });
        assert_eq!(claims.count(), 30, "{page}");
    }

    #[test]
    fn a_reproduction_prints_quantities_with_exactly_the_keys() {
        let objects = objects("reproduce H6 --pes 4 --budget 0 --json");
        let compares = |object: &Value| {
            object["quantity"].as_str().is_some_and(|name| name.contains("/ best"))
        };
        let (comparisons, objects): (Vec<Value>, Vec<Value>) =
            objects.into_iter().partition(compares);
        assert_eq!(comparisons.len(), 7, "winners, radix 2, the worst tree: {comparisons:?}");
        assert_eq!(
            objects.len(),
            50,
            "four columns of two kinds of trees, two without flow control"
        );
        for object in &objects {
            assert_eq!(keys(object), BTreeSet::from(QUANTITY));
            let quantity = object["quantity"].as_str().expect("a name");
            let is_of = |radix| quantity == format!("reduce 8 kB loose radix {radix}, knomial_get");
            let is_fitted = object["machine"] == "barcelona-x8" && [1, 2, 4].into_iter().any(is_of);
            let [value, other] =
                if is_fitted { ["fitted", "simulated"] } else { ["simulated", "fitted"] };
            assert!(object[value].is_number() && object[other].is_null(), "{object}");
            let has_flow_control = !quantity.ends_with(", no flow control");
            assert_eq!(object["native"].is_number(), has_flow_control, "{object}");
            let is_the_papers = has_flow_control && quantity.ends_with("knomial_get");
            assert_eq!(object["paper"].is_number(), is_the_papers, "{object}");
        }
        let paper = objects.iter().find(|object| {
            object["machine"] == "niagara2-x4"
                && object["quantity"] == "reduce 8 kB strict radix 4, knomial_get"
        });
        assert_eq!(paper.unwrap()["paper"], 1774.0);
    }
}
