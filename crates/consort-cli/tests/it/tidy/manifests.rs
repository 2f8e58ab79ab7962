//! Rules between crates: their allowed imports, and the required lists in the documents.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::{Tree, assert_none, assert_one, packages, tree, workspace, workspaces};

/// Returns the names of the packages of a tree, by their folders.
fn names(tree: &Tree) -> BTreeMap<&str, String> {
    packages(tree)
        .map(|(folder, text)| {
            let manifest: Table = text.parse().expect("a manifest in TOML");
            let name = manifest["package"].get("name").and_then(Value::as_str);
            (folder, name.unwrap_or(folder).to_owned())
        })
        .collect()
}

/// The packages of ours that a package may import, and those that its tests may also import.
#[derive(Default)]
struct Allowed {
    normal: BTreeSet<String>,
    tests: BTreeSet<String>,
}

/// The head of the table in ARCHITECTURE.md with the allowed imports of packages.
const HEAD: &str = "| crate | what it is | may import of ours |";

/// The tests of every package may import this one.
const OF_ALL_TESTS: &str = "consort-sandbox";

/// Returns the packages that a list in the table names, by the last parts of their names.
fn listed(list: &str, names: &BTreeMap<&str, String>) -> Result<BTreeSet<String>, String> {
    let find = |word: &str| {
        let end = format!("-{word}");
        let exact = names.values().find(|name| *name == word);
        let found = exact.or_else(|| names.values().find(|name| name.ends_with(&end)));
        found.cloned().ok_or_else(|| format!("ARCHITECTURE.md: there is no package `{word}`"))
    };
    let mut all = BTreeSet::new();
    for word in list.split(", ").filter(|word| *word != "nothing") {
        if word == "all" {
            let in_crates = names.iter().filter(|(folder, _)| folder.starts_with("crates/"));
            all.extend(in_crates.map(|(_, name)| name.clone()));
        } else {
            all.insert(find(word)?);
        }
    }
    Ok(all)
}

/// Returns the imports that ARCHITECTURE.md allows, by package name, and errors in its table.
fn table(tree: &Tree) -> (BTreeMap<String, Allowed>, Vec<String>) {
    let names = names(tree);
    let (mut rows, mut complaints) = (BTreeMap::new(), Vec::new());
    let text = tree.get("ARCHITECTURE.md").map_or("", |text| text);
    let lines = text.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let (normal, tests) = cells[3].split_once("; its tests ").unwrap_or((cells[3], "nothing"));
        for word in cells[1].split('`').skip(1).step_by(2).filter(|word| !word.ends_with('/')) {
            let row = listed(word, &names).and_then(|it| {
                let (normal, tests) = (listed(normal, &names)?, listed(tests, &names)?);
                Ok(it.into_iter().map(move |it| (it, normal.clone(), tests.clone())))
            });
            match row {
                Err(complaint) => complaints.push(complaint),
                Ok(row) => {
                    rows.extend(row.map(|(name, normal, tests)| (name, Allowed { normal, tests })))
                }
            }
        }
    }
    let missing = names.values().filter(|name| !rows.contains_key(*name));
    complaints.extend(
        missing.map(|name| format!("ARCHITECTURE.md: its table of crates has no row for {name}")),
    );
    (rows, complaints)
}

/// The sections of a manifest with dependencies.
const SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

/// Returns the names of the packages in the sections of a manifest, for any target.
fn dependencies(manifest: &Table, sections: &[&str]) -> BTreeSet<String> {
    dependencies_that(manifest, sections, |_| true)
}

/// Returns those dependencies whose entries meet a condition.
fn dependencies_that(
    manifest: &Table,
    sections: &[&str],
    holds: impl Fn(&Value) -> bool,
) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let for_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(for_targets)
        .flat_map(|table| sections.iter().filter_map(|section| table.get(*section)?.as_table()))
        .flatten()
        .filter(|(_, value)| holds(value))
        .map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned())
        .collect()
}

fn imports(tree: &Tree) -> Vec<String> {
    let (rows, mut complaints) = table(tree);
    let names = names(tree);
    let ours: BTreeSet<_> = names.values().cloned().collect();
    for (folder, text) in packages(tree) {
        let name = &names[folder];
        let Some(allowed) = rows.get(name) else { continue };
        let manifest: Table = text.parse().expect("a manifest in TOML");
        let normal = dependencies(&manifest, &["dependencies", "build-dependencies"]);
        let in_tests = dependencies(&manifest, &["dev-dependencies"]);
        for other in normal.intersection(&ours).filter(|it| !allowed.normal.contains(*it)) {
            complaints.push(format!("{name} may not import {other}"));
        }
        let is_lab = |name: &&String| {
            names.iter().any(|(folder, it)| folder.starts_with("lab/") && it == *name)
        };
        if folder.starts_with("crates/") {
            let of_lab = normal.iter().filter(is_lab);
            complaints.extend(of_lab.map(|other| format!("{name} is the product, {other} is not")));
        }
        let may = &allowed.normal | &allowed.tests;
        // A package names itself to enable features in its tests.
        let is_refused =
            |it: &&String| ![OF_ALL_TESTS, name].contains(&it.as_str()) && !may.contains(*it);
        for other in in_tests.intersection(&ours).filter(is_refused) {
            complaints.push(format!("the tests of {name} may not import {other}"));
        }
    }
    complaints
}

#[test]
fn crates_import_only_allowed_crates() {
    assert_none(&imports(&workspace()));
    let rows = "\
        | `consort-native` | threads | nothing | |\n\
        | `consort-mpi` | processes | all | |\n\
        | `consort-tuner`, in `crates/` | search | nothing; its tests mpi | |\n";
    let of = |rows: &str, sections: &str| {
        let manifest = |name: &str| format!("[package]\nname = \"{name}\"\n");
        let tuner = format!("{}{sections}", manifest("consort-tuner"));
        imports(&tree([
            ("ARCHITECTURE.md", &format!("{HEAD} why |\n| --- |\n{rows}\n| `other` | a table |")),
            ("crates/consort-native/Cargo.toml", &manifest("consort-native")),
            ("crates/consort-mpi/Cargo.toml", &manifest("consort-mpi")),
            ("crates/consort-tuner/Cargo.toml", &tuner),
        ]))
    };
    assert_none(&of(rows, ""));
    let native = "consort-native = { workspace = true }";
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let section = format!("[{section}]\n{native}\nserde = \"1\"");
        assert_one(&of(rows, &section), "consort-tuner may not import consort-native");
        assert_none(&of(&rows.replace("nothing; its tests mpi", "all"), &section));
        assert_none(&of(&rows.replace("nothing; its tests mpi", "native"), &section));
    }
    let of_lab = imports(&tree([
        (
            "ARCHITECTURE.md",
            &format!("{HEAD} why |\n| --- |\n| `a` | | sim | |\n| `sim` | | nothing | |\n"),
        ),
        ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n[dependencies]\nsim = \"1\""),
        ("lab/sim/Cargo.toml", "[package]\nname = \"sim\""),
    ]));
    assert_one(&of_lab, "a is the product, sim is not");
    let renamed = "[dependencies]\nfloor = { package = \"consort-native\", path = \"\" }";
    assert_one(&of(rows, renamed), "may not import consort-native");
    assert_one(&of(rows, &format!("[dev-dependencies]\n{native}")), "tests of consort-tuner");
    assert_none(&of(rows, "[dev-dependencies]\nconsort-mpi = \"1\""));
    let missing = rows.replace("| `consort-mpi`", "| mpi");
    assert_one(&of(&missing, ""), "no row for consort-mpi");
    assert_one(&of(&format!("{rows}| `new` | | nothing | |\n"), ""), "no package `new`");
}

/// Returns the names in CONTRIBUTING.md's tables of external crates.
fn rows(guide: &str) -> BTreeSet<&str> {
    let lines = guide.lines().skip_while(|line| *line != "## External crates");
    lines.filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0)).collect()
}

/// Checks that CONTRIBUTING.md has a row for each external crate of a workspace, and for no others.
fn external_crates(tree: &Tree) -> Vec<String> {
    let mut used = BTreeSet::new();
    for path in workspaces(tree) {
        let manifest: Table = tree[path].parse().expect("a manifest in TOML");
        let of_members = manifest["workspace"].get("dependencies");
        let all = of_members.or(manifest.get("dependencies")).and_then(Value::as_table);
        let external = all.into_iter().flatten().filter(|(_, value)| value.get("path").is_none());
        used.extend(external.map(|(name, _)| name.clone()));
    }
    // Members use them by `workspace = true`, or declare them separately.
    for (_, text) in packages(tree) {
        let manifest: Table = text.parse().expect("a manifest in TOML");
        let is_own = |value: &Value| {
            let has = |key: &str| value.get(key).is_some();
            !has("path") && !has("workspace")
        };
        used.extend(dependencies_that(&manifest, &SECTIONS, is_own));
    }
    let rows: BTreeSet<String> =
        rows(&tree["CONTRIBUTING.md"]).into_iter().map(str::to_owned).collect();
    let missing = used.difference(&rows);
    let missing = missing.map(|name| format!("CONTRIBUTING.md: no row of a crate is of {name}"));
    let unused = rows.difference(&used);
    missing.chain(unused.map(|name| format!("CONTRIBUTING.md: nothing uses {name}"))).collect()
}

#[test]
fn each_external_crate_has_its_reason() {
    assert_none(&external_crates(&workspace()));
    let of = |table: &str| {
        external_crates(&tree([
            (
                "Cargo.toml",
                "[workspace]\n[workspace.dependencies]\na = { path = \"\" }\nserde = \"1\"",
            ),
            ("python/Cargo.toml", "[workspace]\n[dependencies]\npyo3 = \"1\"\na = { path = \"\" }"),
            ("CONTRIBUTING.md", &format!("| `doc` | a stage |\n## External crates\n{table}")),
        ]))
    };
    let rows = "| `serde` | files |\n| `pyo3` | an extension |\n";
    assert_none(&of(rows));
    assert_one(&of(&rows.replace("| `serde` | files", "| serde | `serde`")), "is of serde");
    assert_one(&of(&rows.replace("| `pyo3` |", "| pyo3 |")), "is of pyo3");
    assert_one(&of(&format!("{rows}| `libc` | calls |")), "nothing uses libc");
    let of_member = |dependency: &str| {
        let manifest = format!("[package]\nname = \"x\"\n[dev-dependencies]\n{dependency}");
        external_crates(&tree([
            ("Cargo.toml", "[workspace]\n[workspace.dependencies]\nserde = \"1\""),
            ("tests/x/Cargo.toml", &manifest),
            ("CONTRIBUTING.md", "## External crates\n| `serde` | files |"),
        ]))
    };
    assert_none(&of_member("serde = { workspace = true }"));
    assert_none(&of_member("own = { path = \"\" }"));
    assert_one(&of_member("libc = \"1\""), "is of libc");
}
