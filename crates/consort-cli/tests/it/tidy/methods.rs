//! The table in the documentation of `Team` names each of its public methods.

use super::{Tree, assert_none, assert_one, tree, workspace};

const SOURCES: &str = "crates/consort/src/";
const TABLE: &str = "crates/consort/src/team.md";

/// Returns the public methods in the `impl` blocks of a text that are for `Team` alone, except
/// those that the documentation hides.
fn methods(text: &str) -> Vec<&str> {
    let (mut in_block, mut is_hidden) = (false, false);
    let mut methods = Vec::new();
    for line in text.lines() {
        if line.starts_with("impl") {
            in_block = line == "impl Team {";
        } else if line == "}" {
            in_block = false;
        }
        if in_block && let Some(rest) = line.strip_prefix("    pub fn ") {
            methods.extend(rest.split(['<', '(']).next().filter(|_| !is_hidden));
            is_hidden = false;
        }
        is_hidden |= line == "    #[doc(hidden)]";
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
        "impl Team {\n    #[doc(hidden)]\n    pub fn raw() {}\n}",
        "impl Display for Team {\n    pub fn no() {}\n}",
        "impl Other {\n    pub fn no() {}\n}",
    ];
    let source = source.join("\n");
    let files = |text: &str| tree([("crates/consort/src/a.rs", &source), (TABLE, text)]);
    assert_none(&missing(&files("[`send`](Team::send)")));
    assert_one(&missing(&files("[`send_all`](Team::send_all), `send`")), "`send` of crates");
    assert_one(&missing(&tree([("crates/consort/src/a.rs", "")])), "there is none");
}
