//! What files and items are called.

use super::{
    Tree, assert_none, assert_one,
    sources::{declared_modules, rust_files, src_files},
    tree, workspace,
};

const FORBIDDEN_NAMES: [&str; 7] =
    ["util", "utils", "common", "helper", "helpers", "manager", "misc"];

fn forbidden_names(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in rust_files(tree) {
        let mut parts = path.trim_end_matches(".rs").split('/');
        if parts.any(|part| FORBIDDEN_NAMES.contains(&part)) {
            complaints.push(format!("{path}: named after nothing it does"));
        }
        for module in declared_modules(text) {
            if FORBIDDEN_NAMES.contains(&module) {
                complaints.push(format!("{path}: module `{module}` is named after nothing"));
            }
        }
    }
    complaints
}

#[test]
fn modules_are_named_after_what_they_do() {
    assert_none(&forbidden_names(&workspace()));
    for name in FORBIDDEN_NAMES {
        assert_one(&forbidden_names(&tree([(&format!("crates/x/src/{name}.rs"), "")])), name);
        assert_one(&forbidden_names(&tree([(&format!("crates/x/src/{name}/a.rs"), "")])), name);
        let inline = format!("pub mod {name} {{}}");
        assert_one(&forbidden_names(&tree([("crates/x/src/a.rs", &inline)])), name);
    }
}

/// Words that no item is named by, and the field's words for what they would stand for.
const WORDS: [(&str, &str); 13] = [
    ("announcement", "asynchronous broadcast"),
    ("board", "notifications"),
    ("bracket", "entry and exit barrier"),
    ("errand", "progress callback"),
    ("flight", "operation"),
    ("lease", "exposure"),
    ("ledger", "pending calls"),
    ("lend", "expose"),
    ("loan", "exposure"),
    ("meet", "pairwise exchange"),
    ("meeting", "pairwise exchange"),
    ("notice", "notification"),
    ("varied", "vector"),
];

/// The words of a name in snake case, in camel case, or of a constant.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && !before.is_uppercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// Whether a name has this word, or its plural.
fn has_word(name: &str, word: &str) -> bool {
    words(name).iter().any(|it| it.strip_prefix(word).is_some_and(|end| ["", "s"].contains(&end)))
}

/// The name of the item that a line defines.
fn item(line: &str) -> Option<&str> {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static"];
    let code = line.split("//").next()?;
    let mut parts = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.find(|part| KINDS.contains(part))?;
    parts.find(|part| !part.is_empty())
}

fn odd_names(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in src_files(tree) {
        for name in text.lines().filter_map(item) {
            let is_odd = |(word, _): &&(&str, &str)| has_word(name, word);
            if let Some((word, other)) = WORDS.iter().find(is_odd) {
                complaints.push(format!("{path}: {name}: for `{word}` say {other}"));
            }
        }
    }
    complaints
}

#[test]
fn items_are_named_by_the_fields_words() {
    assert_none(&odd_names(&workspace()));
    let of = |line| odd_names(&tree([("crates/x/src/a.rs", line)]));
    assert_one(&of("pub(crate) async fn take_loan(&self) {"), "for `loan` say exposure");
    assert_one(&of("struct NoticeBoard<T>(T);"), "for `board` say notifications");
    assert_one(&of("fn loans_of(&self) {"), "loans_of: for `loan` say exposure");
    assert_one(&of("pub(super) const LOAN_BYTES: usize = 8;"), "LOAN_BYTES: for `loan`");
    assert_one(&of("static ALL_LOANS: Loans = 8;"), "ALL_LOANS: for `loan`");
    assert_none(&of("fn clipboard() { meet() } // fn lend"));
}
