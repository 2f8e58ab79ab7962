//! Tests `consort-lab calibrate` and `consort-lab predict`: the description of this machine, and
//! its check.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use consort_sandbox::commands::says;

/// Runs the command with its wisdom, and therefore its configuration, in a folder.
fn consort(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_consort-lab"))
        .args(words)
        .current_dir(folder)
        .env("CONSORT_WISDOM", folder.join("own/wisdom.toml"))
        .output()
        .expect("the command starts")
}

#[track_caller]
fn shown(folder: &Path, words: &[&str]) -> String {
    let output = consort(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn refused(folder: &Path, words: &[&str], status: i32, says: &[&str]) {
    let output = consort(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    for part in says {
        assert!(said.contains(part), "{words:?}: `{part}` in {said}");
    }
}

#[test]
fn this_machine_is_described_and_can_be_simulated() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), &["predict"], 1, &["host.toml does not exist", "consort-lab calibrate"]);
    let page = shown(folder.path(), &["calibrate", "--budget", "0.2"]);
    assert!(page.starts_with("host: ") && says(&page, "Written to"), "{page}");
    assert!(folder.path().join("own/host.toml").exists());
    let again = shown(folder.path(), &["machines", "host"]);
    assert!(page.starts_with(again.trim_end()), "{again}");
    let call = shown(folder.path(), &["sim", "barrier", "--machine", "host", "--json"]);
    assert!(call.contains("\"fabric\":\"sim:host\""), "{call}");

    let words = ["calibrate", "--budget", "0", "--output", "mine.toml"];
    assert!(shown(folder.path(), &words).starts_with("mine: "));
    // If the cores have moved in the meantime, the description cannot be checked, and the command
    // says so.
    let words =
        ["predict", "--machine", "./mine.toml", "--bytes", "8", "--budget", "0.2", "--json"];
    let output = consort(folder.path(), &words);
    if output.status.success() {
        let text = String::from_utf8(output.stdout).unwrap();
        let object: serde_json::Value = serde_json::from_str(&text).expect("one object");
        assert!(object["median_error"].as_f64() >= Some(0.0), "{object}");
        let calls = object["calls"].as_array().unwrap();
        assert!(!calls.is_empty() && calls[0]["predicted_ns"].as_f64() > Some(0.0), "{object}");
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        let is_known = said.contains("describe the machine again") || said.contains("usable here");
        assert!(is_known, "{said}");
    }
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    refused(path, &["calibrate", "--output", "mine"], 2, &["mine must end in .toml"]);
    fs::write(path.join("file"), "").unwrap();
    let words = ["calibrate", "--budget", "0", "--output", "file/mine.toml"];
    refused(path, &words, 1, &["cannot write file/mine.toml"]);
    refused(
        path,
        &["predict", "--machine", "scc"],
        2,
        &["scc: only machines with coherent caches"],
    );
    let niagara = "niagara2-x4";
    let words = ["predict", "--machine", niagara, "--pes", "3000"];
    refused(path, &words, 2, &["--pes 3000", "has 256 PEs", "usable here"]);
    let words = ["predict", "--machine", niagara, "--sync", "loose"];
    refused(path, &words, 2, &["--sync loose", "strict, mine"]);
}
