//! The release recipe, and the Python package, which is not part of the workspace's builds.

use std::process::{Command, Output};

use toml::{Table, Value};

use super::{Tree, assert_none, assert_one, packages, root, tree, workspace};

/// Runs the recipe, which builds nothing in a dry run or with wrong arguments.
fn recipe(words: &[&str]) -> Output {
    Command::new(root().join("ci/release")).args(words).output().expect("a shell starts")
}

fn said(output: &Output) -> String {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8(text).expect("text")
}

#[test]
fn the_options_of_the_recipe_parse() {
    let version = env!("CARGO_PKG_VERSION");
    let tagged = format!("v{version}");
    let name = format!("consort-{version}-{}-unknown-linux-gnu.tar.gz", std::env::consts::ARCH);
    for (words, path) in [
        (vec!["--dry-run"], format!("target/release-archive/{name}")),
        (vec![version, "--check", "--dry-run"], format!("target/release-archive/{name}")),
        (vec!["--output", "away", &tagged, "--dry-run"], format!("away/{name}")),
    ] {
        let output = recipe(&words);
        assert_eq!((output.status.code(), said(&output).trim()), (Some(0), &*path), "{words:?}");
    }
    let help = said(&recipe(&["--help"]));
    for option in ["VERSION", "--check", "--output DIR", "--dry-run"] {
        assert!(help.contains(&format!("\n  {option} ")), "{option}: {help}");
    }
    for (words, why) in [
        (vec!["9.8.7"], "not 9.8.7: see Cargo.toml"),
        (vec!["--chek"], "unknown option '--chek'"),
        (vec!["--output"], "--output needs a folder"),
        (vec![version, version], "name one"),
    ] {
        let output = recipe(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{words:?}: {}", said(&output));
    }
}

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Checks that each published crate has a front page, documentation and the texts of the licences,
/// and lists the systems for docs.rs.
fn front_pages(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (folder, text) in packages(tree) {
        let manifest: Table = text.parse().expect("a manifest in TOML");
        let package = &manifest["package"];
        if !folder.starts_with("crates/") || package.get("publish").is_some() {
            continue;
        }
        let name = package["name"].as_str().expect("a name");
        let documentation = Value::from(format!("https://docs.rs/{name}"));
        for (key, is_said) in [
            ("readme", package.get("readme") == Some(&Value::from("README.md"))),
            ("documentation", package.get("documentation") == Some(&documentation)),
            (
                "metadata.docs.rs",
                package.get("metadata").is_some_and(|it| it.get("docs").is_some()),
            ),
        ] {
            if !is_said {
                complaints.push(format!("{folder}/Cargo.toml: `{key}` is missing or another one"));
            }
        }
        // Without symbolic links, git stores the path of a link as the file's text.
        for licence in LICENCES {
            if tree.get(&format!("{folder}/{licence}")) != tree.get(licence) {
                complaints.push(format!("{folder}/{licence}: not a link to ../../{licence}"));
            }
        }
    }
    complaints
}

#[test]
fn a_published_crate_has_a_front_page_documentation_and_licences() {
    assert_none(&front_pages(&workspace()));
    let all = "[package]\nname = \"x\"\nreadme = \"README.md\"\ndocumentation = \
               \"https://docs.rs/x\"\n[package.metadata.docs.rs]\ntargets = []";
    let of = |text: &str| front_pages(&tree([("crates/x/Cargo.toml", text)]));
    assert_none(&of(all));
    assert_none(&of("[package]\nname = \"x\"\npublish = false"));
    assert_one(&of(&all.replace("docs.rs/x", "docs.rs/y")), "`documentation`");
    assert_one(&of(&all.replace("readme", "red")), "`readme`");
    assert_one(&of(all.split_once("\n[").expect("two parts").0), "`metadata.docs.rs`");
    let licensed = |text| {
        let part = ("crates/x/LICENSE-MIT", text);
        front_pages(&tree([("crates/x/Cargo.toml", all), ("LICENSE-MIT", "May be used."), part]))
    };
    assert_none(&licensed("May be used."));
    assert_one(&licensed("../../LICENSE-MIT"), "crates/x/LICENSE-MIT");
}

/// Checks that the Python package has the workspace's version, edition, licence and lints of unsafe
/// code.
fn python(tree: &Tree) -> Vec<String> {
    let parsed = |path: &str| tree[path].parse::<Table>().expect("a manifest in TOML");
    let (whole, part) = (parsed("Cargo.toml"), parsed("python/Cargo.toml"));
    let mut complaints = Vec::new();
    for key in ["version", "edition", "rust-version", "license"] {
        if part["package"].get(key) != whole["workspace"]["package"].get(key) {
            complaints.push(format!("python/Cargo.toml: another {key} than the workspace's"));
        }
    }
    for key in ["unsafe_code", "unsafe_op_in_unsafe_fn"] {
        if part["lints"]["rust"].get(key) != whole["workspace"]["lints"]["rust"].get(key) {
            complaints.push(format!("python/Cargo.toml: another lint {key} than the workspace's"));
        }
    }
    let excluded = whole["workspace"].get("exclude").and_then(Value::as_array);
    if !excluded.is_some_and(|all| all.iter().any(|one| one.as_str() == Some("python"))) {
        complaints.push("Cargo.toml: python is not excluded from the workspace".to_owned());
    }
    complaints
}

#[test]
fn the_python_package_is_of_this_workspace_but_not_in_it() {
    assert_none(&python(&workspace()));
    let whole = "[workspace]\nexclude = [\"python\"]\n[workspace.package]\nversion = \"1.0.0\"\n\
                 [workspace.lints.rust]\nunsafe_code = \"deny\"";
    let part = "[package]\nversion = \"1.0.0\"\n[lints.rust]\nunsafe_code = \"deny\"";
    let of = |whole: &str, part: &str| {
        python(&tree([("Cargo.toml", whole), ("python/Cargo.toml", part)]))
    };
    assert_none(&of(whole, part));
    assert_one(&of(whole, &part.replace("1.0.0", "1.0.1")), "another version");
    assert_one(&of(whole, &part.replace("deny", "allow")), "another lint unsafe_code");
    assert_one(&of(&whole.replace("python", "others"), part), "not excluded");
}
