//! Integration tests of the command `consort-lab`.

mod calibrate;
mod fitted;
mod gallery;
mod interrupts;
mod machines;
mod model;
mod report;
mod reproduce;
mod scc;
mod sim;
mod usage;

use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

use serde_json::Value;

/// Runs the command in an empty folder, with its own wisdom and no other programs.
fn lab(line: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
    command.args(line.split_whitespace()).current_dir(&folder);
    command.env("XDG_CONFIG_HOME", folder.path()).env("PATH", "");
    command.output().expect("the command starts")
}

fn stdout(line: &str) -> String {
    let output = lab(line);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the objects that a command prints, one per line.
fn objects(line: &str) -> Vec<Value> {
    stdout(line).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}
