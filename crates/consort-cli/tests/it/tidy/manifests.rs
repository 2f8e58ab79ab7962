//! Rules between crates: who imports whom, licences, and what the documents must list.

use std::{collections::BTreeSet, env, process::Command};

use toml::{Table, Value};

use super::{Tree, assert_none, assert_one, inside, root, tree, workspace};

/// What a crate of ours may import of ours, and what its tests may besides.
struct Imports {
    name: &'static str,
    normal: &'static [&'static str],
    tests_besides: &'static [&'static str],
}

const EVERYTHING: &[&str] = &[
    "consort",
    "consort-bench",
    "consort-collectives",
    "consort-fabric",
    "consort-launch",
    "consort-mpi",
    "consort-native",
    "consort-report",
    "consort-shmem",
    "consort-sim",
    "consort-sync",
    "consort-tuner",
];

const IMPORTS: [Imports; 18] = [
    Imports { name: "consort-fabric", normal: &[], tests_besides: &[] },
    Imports {
        name: "consort-collectives",
        normal: &["consort-fabric"],
        tests_besides: &["consort-native"],
    },
    Imports {
        name: "consort-sync",
        normal: &["consort-fabric", "consort-native"],
        tests_besides: &["consort-sim"],
    },
    Imports { name: "consort-report", normal: &[], tests_besides: &[] },
    Imports { name: "consort-tuner", normal: &["consort-fabric"], tests_besides: &[] },
    Imports {
        name: "consort-launch",
        normal: &["consort-fabric", "consort-native"],
        tests_besides: &[],
    },
    Imports { name: "consort-native", normal: &["consort-fabric"], tests_besides: &[] },
    Imports {
        name: "consort-sim",
        normal: &["consort-fabric", "consort-collectives"],
        tests_besides: &[],
    },
    Imports {
        name: "consort",
        normal: &[
            "consort-fabric",
            "consort-collectives",
            "consort-mpi",
            "consort-sync",
            "consort-tuner",
            "consort-native",
        ],
        tests_besides: &["consort-conformance"],
    },
    Imports {
        name: "consort-mpi",
        normal: &["consort-fabric", "consort-native"],
        tests_besides: &[],
    },
    Imports {
        name: "consort-shmem",
        normal: &["consort", "consort-fabric", "consort-native"],
        tests_besides: &["consort-launch"],
    },
    Imports {
        name: "consort-bench",
        normal: &[
            "consort",
            "consort-collectives",
            "consort-fabric",
            "consort-mpi",
            "consort-native",
            "consort-sim",
            "consort-sync",
            "consort-tuner",
        ],
        tests_besides: &[],
    },
    Imports { name: "consort-cli", normal: EVERYTHING, tests_besides: &[] },
    Imports {
        name: "conformance",
        normal: &["consort-fabric", "consort-collectives"],
        tests_besides: EVERYTHING,
    },
    Imports { name: "kernels", normal: &["consort"], tests_besides: &[] },
    Imports { name: "summa", normal: APPLICATION, tests_besides: &[] },
    Imports { name: "cholesky", normal: APPLICATION, tests_besides: &[] },
    Imports { name: "ft", normal: APPLICATION, tests_besides: &[] },
];

/// What an application may import: what any program of a user may, and what they all share.
const APPLICATION: &[&str] = &["consort", "consort-apps-kernels"];

/// The folders of the crates, of the package of tests and of the applications, with their
/// manifests.
fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, Table)> {
    tree.iter().filter_map(|(path, text)| {
        let inside = inside(path)?;
        let folder = inside.strip_suffix("/Cargo.toml")?;
        Some((folder, text.parse().expect("a manifest in TOML")))
    })
}

/// The names of the packages in the sections of a manifest, for any target.
fn dependencies(manifest: &Table, sections: &[&str]) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let for_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(for_targets)
        .flat_map(|table| sections.iter().filter_map(|section| table.get(*section)?.as_table()))
        .flatten()
        .map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned())
        .collect()
}

fn imports(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (folder, manifest) in manifests(tree) {
        let Some(allowed) = IMPORTS.iter().find(|row| row.name == folder) else {
            complaints.push(format!("crates/{folder}: not in the table of imports"));
            continue;
        };
        let normal = dependencies(&manifest, &["dependencies", "build-dependencies"]);
        let in_tests = dependencies(&manifest, &["dev-dependencies"]);
        let ours = |name: &&String| *name == "consort" || name.starts_with("consort-");
        for name in normal.iter().filter(ours) {
            if !allowed.normal.contains(&name.as_str()) {
                complaints.push(format!("{folder} may not import {name}"));
            }
        }
        for name in in_tests.iter().filter(ours) {
            let mut may = allowed.normal.iter().chain(allowed.tests_besides);
            if !may.any(|other| other == name) {
                complaints.push(format!("the tests of {folder} may not import {name}"));
            }
        }
    }
    complaints
}

#[test]
fn crates_import_only_what_they_may() {
    assert_none(&imports(&workspace()));
    let complaints =
        |folder: &str, text: &str| imports(&tree([(&format!("crates/{folder}/Cargo.toml"), text)]));
    let native = "consort-native = { workspace = true }";
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let text = format!("[{section}]\n{native}\nserde = \"1\"");
        assert_one(&complaints("consort-collectives", &text), "may not import consort-native");
    }
    let tests = format!("[dev-dependencies]\n{native}");
    assert_none(&complaints("consort-collectives", &tests));
    assert_one(&complaints("consort-tuner", &tests), "tests of consort-tuner");
    let renamed = "[dependencies]\nfloor = { package = \"consort-native\", path = \"\" }";
    assert_one(&complaints("consort-tuner", renamed), "may not import consort-native");
    assert_one(&complaints("consort-new", ""), "crates/consort-new");
}

/// Whether an SPDX expression can be met with the allowed licences; `None` if it is malformed.
/// `/` is the old spelling of `OR`.
fn can_be_met(expression: &str, allowed: &[&str]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any_of(&mut rest, allowed)?;
    rest.is_empty().then_some(met)
}

fn any_of(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut met = all_of(words, allowed)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        met |= all_of(words, allowed)?;
    }
    Some(met)
}

fn all_of(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut met = one_licence(words, allowed)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        met &= one_licence(words, allowed)?;
    }
    Some(met)
}

fn one_licence(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    match **words {
        ["(", ref rest @ ..] => {
            *words = rest;
            let met = any_of(words, allowed)?;
            *words = words.strip_prefix(&[")"])?;
            Some(met)
        }
        [licence, "WITH", exception, ref rest @ ..] => {
            *words = rest;
            Some(allowed.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        [licence, ref rest @ ..] => {
            *words = rest;
            Some(allowed.contains(&licence))
        }
        [] => None,
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
    for (expression, met) in [
        ("MIT", Some(true)),
        ("GPL-3.0-only", Some(false)),
        ("GPL-3.0-only OR MIT", Some(true)),
        ("MIT/Apache-2.0", Some(true)),
        ("MIT AND GPL-3.0-only", Some(false)),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", Some(true)),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", Some(false)),
        ("Apache-2.0 WITH LLVM-exception", Some(true)),
        ("Apache-2.0", Some(false)),
        ("", None),
        ("MIT OR", None),
        ("(MIT", None),
        ("MIT Apache-2.0", None),
    ] {
        assert_eq!(can_be_met(expression, &allowed), met, "{expression}");
    }
}

/// Whether every package in cargo's `metadata` may be used under the licences of `deny`.
fn licences(metadata: &str, deny: &str) -> Vec<String> {
    let deny: Table = deny.parse().expect("deny.toml in TOML");
    let allowed = deny["licenses"]["allow"].as_array().expect("a list of licences");
    let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
    let metadata: serde_json::Value = serde_json::from_str(metadata).expect("metadata in JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| (&package["name"], package["license"].as_str().unwrap_or_default()))
        .filter(|(_, licence)| can_be_met(licence, &allowed) != Some(true))
        .map(|(name, licence)| format!("{name}: licence `{licence}` is not among the allowed"))
        .collect()
}

/// For the platform at hand, whose packages are here already.
fn metadata() -> String {
    let platform = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--filter-platform", &platform])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("metadata in UTF-8")
}

#[test]
fn licences_are_allowed() {
    let deny = &workspace()["deny.toml"];
    assert_none(&licences(&metadata(), deny));
    let package = |licence: &str| {
        format!("{{\"packages\": [{{\"name\": \"crate\", \"license\": {licence}}}]}}")
    };
    assert_none(&licences(&package("\"MIT\""), deny));
    assert_one(&licences(&package("\"GPL-3.0-only\""), deny), "`GPL-3.0-only`");
    assert_one(&licences(&package("null"), deny), "crate");
}

/// Whether a text holds a crate's name that is no part of a longer one.
fn mentions(text: &str, name: &str) -> bool {
    let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c));
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !is_inside(before) && !is_inside(after)
    })
}

/// The documents that must exist, and the crates of ours that the first must name.
fn documents(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    match tree.get("ARCHITECTURE.md") {
        None => complaints.push("ARCHITECTURE.md: there is none".to_owned()),
        Some(text) => complaints.extend(
            manifests(tree)
                .filter(|(folder, _)| !mentions(text, folder))
                .map(|(folder, _)| format!("ARCHITECTURE.md: does not mention {folder}")),
        ),
    }
    if !tree.contains_key("CHANGELOG.md") {
        complaints.push("CHANGELOG.md: there is none".to_owned());
    }
    complaints
}

#[test]
fn the_architecture_names_each_crate() {
    assert_none(&documents(&workspace()));
    let crates = [("CHANGELOG.md", ""), ("crates/consort/Cargo.toml", "")];
    assert_one(&documents(&tree(crates)), "ARCHITECTURE.md: there is none");
    for (text, complaints) in [("`consort-sim` `x-consort`", 1), ("In `crates/consort`:", 0)] {
        let mut files = tree(crates);
        files.insert("ARCHITECTURE.md".to_owned(), text.to_owned());
        assert_eq!(documents(&files).len(), complaints, "{text}");
        files.remove("CHANGELOG.md");
        assert_eq!(documents(&files).len(), complaints + 1, "{text}");
    }
}

/// Whether CONTRIBUTING.md has a row for each crate of others that the workspace may use.
fn external_crates(tree: &Tree) -> Vec<String> {
    let manifest: Table = tree["Cargo.toml"].parse().expect("a manifest in TOML");
    let all = manifest["workspace"]["dependencies"].as_table().expect("a table of dependencies");
    let rows: Vec<_> = tree["CONTRIBUTING.md"].lines().collect();
    all.iter()
        .filter(|(_, value)| value.get("path").is_none())
        .filter(|(name, _)| !rows.iter().any(|row| row.starts_with(&format!("| `{name}` |"))))
        .map(|(name, _)| format!("CONTRIBUTING.md: its table of crates has no row for {name}"))
        .collect()
}

#[test]
fn each_external_crate_has_its_reason() {
    assert_none(&external_crates(&workspace()));
    let manifest = "[workspace.dependencies]\nconsort = { path = \"\" }\nserde = \"1\"";
    let files = |table| tree([("Cargo.toml", manifest), ("CONTRIBUTING.md", table)]);
    assert_none(&external_crates(&files("| `serde` | files | MIT |")));
    assert_one(&external_crates(&files("| `serde_json` | we use `serde` |")), "serde");
}
