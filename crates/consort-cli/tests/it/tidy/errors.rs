//! The errors of `consort` may get more variants without breaking programs.

use super::{Tree, assert_none, assert_one, tree, workspace};

const ERRORS: &str = "crates/consort/src/error.rs";

/// Returns the names of the types that a text exports, or declares as enums.
fn exported(text: &str) -> Vec<&str> {
    let uses = text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let names = uses.flat_map(|path| {
        let last = path.rsplit("::").next().unwrap_or(path);
        last.trim_matches(['{', '}']).split(',').map(str::trim).filter(|name| !name.is_empty())
    });
    let enums = text.lines().filter_map(|line| line.strip_prefix("pub enum ")?.strip_suffix(" {"));
    names.chain(enums).collect()
}

/// Returns whether the text declares this enum, and if so, whether it is `#[non_exhaustive]`.
fn may_grow(text: &str, name: &str) -> Option<bool> {
    let lines: Vec<_> = text.lines().collect();
    let at = lines.iter().position(|line| *line == format!("pub enum {name} {{"))?;
    let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    Some(attributes.any(|line| *line == "#[non_exhaustive]"))
}

fn fixed_errors(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.get(ERRORS) else { return vec![format!("{ERRORS}: there is none")] };
    let sources = || tree.iter().filter(|(path, _)| path.starts_with("crates/"));
    let of_name = |name| {
        sources()
            .filter(move |(_, text)| may_grow(text, name) == Some(false))
            .map(move |(path, _)| format!("{path}: `{name}` is not `#[non_exhaustive]`"))
    };
    exported(text).into_iter().flat_map(of_name).collect()
}

#[test]
fn errors_may_get_more_variants() {
    let all = workspace();
    let names = exported(&all[ERRORS]);
    let enums = names.iter().filter(|name| all.values().any(|it| may_grow(it, name).is_some()));
    assert!(enums.count() >= 10, "too few of {names:?} are found");
    assert_none(&fixed_errors(&all));
    let files = |before: &str| {
        let text = format!("\n{before}pub enum FullError {{\n");
        let errors =
            "mod a;\npub use a::{Members,\n    FullError};\n#[non_exhaustive]\npub enum Error {\n";
        fixed_errors(&tree([(ERRORS, errors), ("crates/x/src/a.rs", &text)]))
    };
    assert_none(&files("#[derive(Debug)]\n#[non_exhaustive]\n"));
    assert_one(&files("#[derive(Debug)]\n"), "`FullError` is not");
    assert_one(&files("#[non_exhaustive]\n\n"), "`FullError` is not");
    assert_one(&fixed_errors(&tree([("crates/x/src/a.rs", "")])), "there is none");
}
