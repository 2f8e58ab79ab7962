//! Rules of the source tree.
//!
//! A check is a function from the texts of the tree, by path, to complaints. Each has two tests:
//! the tree gives it no reason to complain, and bad input does.

mod circles;
mod manifests;
mod methods;
mod names;
mod release;
mod sources;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The texts of the tree by their paths from its root, with `/` between the parts.
type Tree = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources, manifests, documents and scripts of this workspace.
fn workspace() -> Tree {
    let mut tree = Tree::new();
    read_folder(&root(), "", &mut tree);
    tree
}

/// The ends of the names of files that are read, besides the scripts of `ci/`.
const READ: [&str; 5] = [".rs", ".md", ".toml", ".py", ".pyi"];

/// Hidden folders and build outputs, which cargo marks as caches, are no part of the tree.
fn read_folder(folder: &Path, prefix: &str, tree: &mut Tree) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().expect("a name").to_str().expect("a name in UTF-8");
        let place = format!("{prefix}{name}");
        if path.is_dir() {
            if !name.starts_with('.') && !path.join("CACHEDIR.TAG").exists() {
                read_folder(&path, &format!("{place}/"), tree);
            }
        } else if READ.iter().any(|end| name.ends_with(end)) || prefix == "ci/" {
            let text = fs::read_to_string(&path);
            tree.insert(place, text.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
}

/// The path below one of the folders of packages: crates, tests of all of them, applications.
fn inside(path: &str) -> Option<&str> {
    ["crates/", "tests/", "apps/"].iter().find_map(|folder| path.strip_prefix(folder))
}

/// A tree for showing that a check complains.
fn tree<const N: usize>(files: [(&str, &str); N]) -> Tree {
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
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
