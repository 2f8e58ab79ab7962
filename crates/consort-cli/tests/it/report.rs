//! Results as HTML, as CSV, and next to those of an earlier run. `ci/report` opens the reports in a
//! browser.

use std::{fs, process::Output};

use serde_json::Value;
use tempfile::TempDir;

use consort_sandbox::commands::{report_of, run_in, said, says};

const PROGRAM: &str = env!("CARGO_BIN_EXE_consort");

fn consort(folder: &TempDir, line: &str) -> Output {
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
        (
            "bench collective broadcast --bytes 8,1k --peers std --budget 0",
            "lines",
            "Size of a block, bytes",
        ),
        ("bench barrier --peers std --budget 0", "bars", "other libraries"),
        ("bench lock --threads 1,2 --budget 0", "lines", "Number of threads"),
        ("bench lock wake-up --threads 2 --budget 0", "bars", "lock, wake-up"),
        ("sync advise --section 100 --threads 2 --budget 0", "bars", "Mutex&lt;T&gt;, the default"),
        ("topo --budget 0.000000001", "", "NUMA node"),
        (
            "tune --pes 2 --collective broadcast --bytes 8,1k --budget 1",
            "heat",
            "the choices in symmetric memory",
        ),
    ] {
        let html = report_of(PROGRAM, folder.path(), line);
        assert!(html.contains(part), "{line}: {part}");
        let is_plot = html.contains(&format!("<figure class=\"plot {kind}"));
        // A machine with one processor has no pairs.
        assert!(is_plot || kind.is_empty(), "{line}: no {kind}");
    }
}

#[test]
fn csv_has_the_rows_of_the_json() {
    let folder = folder();
    let line =
        "bench collective reduce --bytes 8,64 --peers std --budget 0 --json=a.json --csv=a.csv";
    let output = consort(&folder, line);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    let (json, csv) = (read(&folder, "a.json"), read(&folder, "a.csv"));
    let rows: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    assert_eq!(header[..4], ["bench", "fabric", "pes", "team"]);
    for column in ["median_ns", "context.date", "context.interrupted"] {
        assert!(header.contains(&column), "{header:?}");
    }
    let median = header.iter().position(|column| *column == "median_ns").expect("it");
    let medians: Vec<String> = lines.map(|line| fields(line)[median].clone()).collect();
    let expected: Vec<String> = rows
        .iter()
        .map(|row| row["median_ns"].as_f64().map_or(String::new(), |ns| format!("{ns:?}")))
        .collect();
    assert_eq!(medians, expected);
    let output = consort(&folder, "bench barrier --peers none --budget 0 --csv");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("bench,fabric,pes,"));
}

/// One JSON object may contain many rows.
#[test]
fn csv_has_one_line_per_table_row() {
    let folder = folder();
    for (line, start) in [
        (
            "tune --pes 2 --collective barrier,broadcast --bytes 8 --budget 0.5",
            "collective,sync,pes,bytes,operator,symmetric,choice,median_ns,",
        ),
        ("topo --fabric processes --budget 0.2", "a,b,between,one_way_ns,"),
        ("sync advise --section 10 --threads 1 --budget 0", "bench,algorithm,is_peer,load,"),
    ] {
        let output = consort(&folder, &format!("{line} --csv"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.starts_with(start), "{line}: {text}");
        assert!(text.lines().count() > 1, "{line}: {text}");
    }
}

/// Returns the fields of a line without line breaks in fields.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for one in line.chars() {
        match one {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            one => fields.last_mut().expect("one field").push(one),
        }
    }
    fields
}

#[test]
fn failed_output_does_not_lose_the_others() {
    let folder = folder();
    let line = "bench barrier --peers none --budget 0 --report /dev/full";
    let output = consort(&folder, line);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("error: cannot write /dev/full"), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("median"), "the table is there");
    let output = consort(&folder, &format!("{line} --json --csv=a.csv"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stdout.starts_with(b"{\"bench\":\"barrier\"") && !read(&folder, "a.csv").is_empty()
    );
    let line = "bench barrier --peers none --budget 0 --json=/dev/full --report report.html";
    let output = consort(&folder, line);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!output.stdout.is_empty(), "it prints the table without --json");
    assert!(read(&folder, "report.html").ends_with("</html>\n"));
}

#[test]
fn two_results_in_one_place_are_refused() {
    let folder = folder();
    for (line, why) in [
        ("bench barrier --json --csv", "--json and --csv both go to standard output"),
        ("topo --json=a --report a", "--json and --report both go to a"),
        ("topo --csv a.csv", "unexpected a.csv after --csv: write --csv=a.csv for a file"),
        ("sync advise --section 1 --threads 1 --report -", "a report is a file"),
    ] {
        let output = consort(&folder, line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(said(&output).contains(why), "{line}: {}", said(&output));
    }
}

const BARRIER: &str = "bench barrier --peers none --pes 2 --budget 0";

/// Writes results of this machine, with other times.
fn old(folder: &TempDir, times: f64) {
    let output = consort(folder, &format!("{BARRIER} --json=old.json"));
    assert!(output.status.success(), "{}", said(&output));
    let rows = read(folder, "old.json");
    let slower = rows.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).expect("JSON");
        let ns = row["median_ns"].as_f64().expect("a time") * times;
        row["median_ns"] = ns.into();
        row["ci95_ns"] = vec![ns * 0.99, ns * 1.01].into();
        row["c2c_class"] = Value::Null;
        format!("{row}\n")
    });
    let slower: String = slower.collect();
    let classes = ["near", "far"]
        .map(|class| slower.replace("\"c2c_class\":null", &format!("\"c2c_class\":\"{class}\"")));
    fs::write(folder.path().join("old.json"), slower + &classes.concat()).expect("a file");
}

#[test]
fn earlier_run_is_compared_with_this_one() {
    let folder = folder();
    old(&folder, 1e6);
    let output = consort(&folder, &format!("{BARRIER} --compare old.json --report report.html"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", said(&output));
    assert!(says(&text, "Compared with old.json") && text.contains("verdict"), "{text}");
    assert!(read(&folder, "report.html").contains("Compared with old.json: 0 slower"));
    let output = consort(&folder, &format!("{BARRIER} --compare old.json --json"));
    assert!(said(&output).contains("Compared with old.json: "), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row: Value = serde_json::from_str(text.lines().next().expect("a row")).expect("JSON");
    assert!(row["compared"]["ratio"].as_f64().is_some_and(|ratio| ratio < 0.1), "{row}");
}

#[test]
fn a_check_fails_where_something_is_slower() {
    let folder = folder();
    old(&folder, 1e-9);
    let line = format!("{BARRIER} --compare old.json --fail-if-slower 5");
    let output = consort(&folder, &line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(says(&text, "Compared with old.json"), "the results come first: {text}");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    // A single block has no interval, and so no verdict.
    let why = if says(&text, "1 slower") { "1 of 1 row more" } else { "1 of 1 row perhaps more" };
    assert!(said(&output).contains(why), "{}", said(&output));
    let others = read(&folder, "old.json").replace("\"barrier\"", "\"another\"");
    fs::write(folder.path().join("old.json"), others).expect("a file");
    let output = consort(&folder, &line);
    assert_eq!(output.status.code(), Some(3), "nothing was compared: {}", said(&output));
    assert!(said(&output).contains("no row of Consort has a partner"), "{}", said(&output));
    let output = consort(&folder, "bench barrier --fail-if-slower 5");
    assert_eq!(output.status.code(), Some(2), "without what it is compared with");
}

#[test]
fn invalid_earlier_run_is_refused_before_measuring() {
    let folder = folder();
    let write = |text: &str| fs::write(folder.path().join("old.json"), text).expect("a file");
    let complaint = |path: &str| {
        let output = consort(&folder, &format!("bench barrier --compare {path}"));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(output.stdout.is_empty());
        said(&output)
    };
    assert!(complaint("missing.json").contains("cannot read missing.json"));
    let row = consort(&folder, &format!("{BARRIER} --json")).stdout;
    let row = String::from_utf8(row).expect("text");
    let first = row.lines().next().expect("a row");
    write(&format!("{first}\n{}", &first[..40]));
    assert!(complaint("old.json").contains("old.json, line 2: it ends after 40 characters"));
    let topo = consort(&folder, "topo --budget 0 --json").stdout;
    write(&String::from_utf8(topo).expect("text"));
    assert!(complaint("old.json").contains("a command other than `consort bench`"));
}
