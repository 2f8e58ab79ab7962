//! Rules for the interface of `consort`: the table in the documentation of `Team` names each public
//! method of `Team`, the documentation hides only what macros and traits need, and the error types
//! of `consort` may get more variants without breaking programs.

use super::{Tree, assert_none, assert_one, tree, workspace};

const SOURCES: &str = "crates/consort/src/";
const TABLE: &str = "crates/consort/src/team.md";

/// Returns the public methods in the `impl` blocks of a text that are for `Team` alone.
fn methods(text: &str) -> Vec<&str> {
    let mut in_block = false;
    let mut methods = Vec::new();
    for line in text.lines() {
        if line.starts_with("impl") {
            in_block = line == "impl Team {";
        } else if line == "}" {
            in_block = false;
        }
        if in_block && let Some(rest) = line.strip_prefix("    pub fn ") {
            methods.extend(rest.split(['<', '(']).next());
        }
    }
    methods
}

fn missing(tree: &Tree) -> Vec<String> {
    let Some(table) = tree.get(TABLE) else { return vec![format!("{TABLE}: there is none")] };
    let sources = tree.iter().filter(|(path, _)| path.starts_with(SOURCES));
    sources
        .filter(|(path, _)| path.ends_with(".rs"))
        .flat_map(|(path, text)| methods(text).into_iter().map(move |method| (path, method)))
        .filter(|(_, method)| !table.contains(&format!("[`{method}`](Team::{method})")))
        .map(|(path, method)| format!("{TABLE}: has no link to `{method}` of {path}"))
        .collect()
}

#[test]
fn the_table_of_team_names_each_method() {
    let found: usize = workspace().values().map(|text| methods(text).len()).sum();
    assert!(found > 40, "only {found} methods are found");
    assert_none(&missing(&workspace()));
    let source = [
        "impl Team {\n    pub fn send<T>(&self) {\n    }\n    fn own() {}\n}",
        "impl Display for Team {\n    pub fn no() {}\n}",
        "impl Other {\n    pub fn no() {}\n}",
    ];
    let source = source.join("\n");
    let files = |text: &str| tree([("crates/consort/src/a.rs", &source), (TABLE, text)]);
    assert_none(&missing(&files("[`send`](Team::send)")));
    assert_one(&missing(&files("[`send_all`](Team::send_all), `send`")), "`send` of crates");
    assert_one(&missing(&tree([("crates/consort/src/a.rs", "")])), "there is none");
}

/// The hidden items that generated code names, or a default method of the trait `Value`.
const MAY_BE_HIDDEN: [&str; 2] = ["pub mod derive;", "pub struct Unpacking<O, T, Kind> {"];

/// Returns complaints about items that programs can name, but that the documentation hides.
fn hidden(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.starts_with(SOURCES)) {
        for rest in text.split("#[doc(hidden)]\n").skip(1) {
            let mut lines = rest.lines().map(str::trim_start);
            let item = lines.find(|line| !line.starts_with("#[")).unwrap_or_default();
            if item.starts_with("pub ") && !MAY_BE_HIDDEN.contains(&item) {
                complaints.push(format!("{path}: hides `{item}`: move it to `bindings`"));
            }
        }
    }
    complaints
}

#[test]
fn public_items_are_not_hidden() {
    assert_none(&hidden(&workspace()));
    let of = |item: &str| {
        let text = format!("    #[doc(hidden)]\n    #[must_use]\n    {item}\n");
        hidden(&tree([("crates/consort/src/a.rs", &text)]))
    };
    assert_none(&of("fn method_of_a_trait();"));
    assert_none(&of("pub mod derive;"));
    assert_one(&of("pub fn raw() {}"), "hides `pub fn raw() {}`");
}

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
