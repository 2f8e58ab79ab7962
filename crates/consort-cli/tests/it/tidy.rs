//! Rules of the source tree.
//!
//! A check is a function from the texts of the tree, by path, to complaints. Each has two tests:
//! the tree causes no complaint, and bad input does.

mod circles;
mod documents;
mod interface;
mod links;
mod manifests;
mod release;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The texts of the tree by their paths from its root, with `/` between the parts.
type Tree = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads the sources, manifests, documents, licences and scripts of both workspaces and the Python
/// package.
fn workspace() -> Tree {
    let mut tree = Tree::new();
    read_folder(&root(), "", &mut tree);
    tree
}

/// The name endings of files that are read, in addition to the scripts of two folders.
const READ: [&str; 9] =
    [".rs", ".md", ".toml", ".py", ".pyi", ".c", ".svg", "LICENSE-APACHE", "LICENSE-MIT"];
const SCRIPTS: [&str; 2] = ["ci/", "lab/apps/"];

/// The hidden folder that is part of the tree: settings of tools.
const SETTINGS: &str = ".config";

/// Skips other hidden folders, and build outputs, which cargo marks as caches.
fn read_folder(folder: &Path, prefix: &str, tree: &mut Tree) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().expect("a name").to_str().expect("a name in UTF-8");
        let place = format!("{prefix}{name}");
        if path.is_dir() {
            let is_hidden = name.starts_with('.') && name != SETTINGS;
            if !is_hidden && !path.join("CACHEDIR.TAG").exists() {
                read_folder(&path, &format!("{place}/"), tree);
            }
        } else if READ.iter().any(|end| name.ends_with(end)) || SCRIPTS.contains(&prefix) {
            let text = fs::read_to_string(&path);
            tree.insert(place, text.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
}

/// Returns the folder and the manifest of each package, in the workspace and for Python.
fn packages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter().filter_map(|(path, text)| {
        let folder = path.strip_suffix("/Cargo.toml")?;
        text.lines().any(|line| line == "[package]").then_some((folder, &**text))
    })
}

/// Returns the manifests of the workspaces: the root's, and those that it excludes.
fn workspaces(tree: &Tree) -> impl Iterator<Item = &str> {
    let is_whole = |text: &str| text.lines().any(|line| line == "[workspace]");
    let manifests = tree.iter().filter(|(path, _)| path.ends_with("Cargo.toml"));
    manifests.filter(move |(_, text)| is_whole(text)).map(|(path, _)| &**path)
}

/// Returns the folder of the package that contains a file, and the file's path in it.
fn in_package<'t>(tree: &Tree, path: &'t str) -> Option<(&'t str, &'t str)> {
    let mut ends = path.rmatch_indices('/').map(|(end, _)| end);
    let end = ends.find(|end| tree.contains_key(&format!("{}/Cargo.toml", &path[..*end])))?;
    Some((&path[..end], &path[end + 1..]))
}

/// Returns a tree about which a check complains. Each folder in `crates/` is a package.
fn tree<const N: usize>(files: [(&str, &str); N]) -> Tree {
    let mut tree: Tree = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    for path in files.map(|(path, _)| path) {
        let folder = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'));
        if let Some((folder, _)) = folder {
            let manifest = format!("crates/{folder}/Cargo.toml");
            tree.entry(manifest).or_insert_with(|| "[package]\n".to_owned());
        }
    }
    tree
}

/// Returns the output of `cargo metadata` for a workspace of the tree.
fn metadata(manifest: &str) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(root().join(manifest))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata in JSON")
}

/// The packages found by their manifests are those that cargo knows.
#[test]
fn packages_match_cargo_metadata() {
    let root = fs::canonicalize(root()).expect("the root of the tree");
    let tree = workspace();
    let mut known = BTreeSet::new();
    for manifest in workspaces(&tree) {
        for package in metadata(manifest)["packages"].as_array().expect("a list of packages") {
            let path = Path::new(package["manifest_path"].as_str().expect("a path"));
            let folder = path.parent().and_then(|it| it.strip_prefix(&root).ok());
            known.insert(folder.expect("a folder of the tree").to_str().expect("text").to_owned());
        }
    }
    let found: BTreeSet<_> = packages(&tree).map(|(folder, _)| folder.to_owned()).collect();
    assert_eq!(found, known);
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "the tree is not tidy:\n{}", complaints.join("\n"));
}

#[track_caller]
fn assert_one(complaints: &[String], about: &str) {
    assert!(
        matches!(complaints, [complaint] if complaint.contains(about)),
        "expected one complaint with `{about}`, not {complaints:#?}"
    );
}
