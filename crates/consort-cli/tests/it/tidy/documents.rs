//! What the documents say about the tree: the stages of `ci/test`, files and tests. And each public
//! type has a test of its first line.

use std::collections::BTreeSet;

use super::{Tree, assert_none, assert_one, tree, workspace};

/// Returns the lines after one that starts with `from`, up to one that starts with `to`.
fn part<'t>(text: &'t str, from: &str, to: &str) -> impl Iterator<Item = &'t str> {
    let lines = text.lines().skip_while(move |line| !line.starts_with(from)).skip(1);
    lines.take_while(move |line| !line.starts_with(to)).collect::<Vec<_>>().into_iter()
}

/// Returns the cells of the rows of a Markdown table, without its first two lines.
fn rows<'t>(lines: impl Iterator<Item = &'t str>) -> impl Iterator<Item = Vec<&'t str>> {
    let rows = lines.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Complains about names that are in only one of two lists.
fn differences<'n>(
    (one, ones): (&str, impl Iterator<Item = &'n str>),
    (other, others): (&str, impl Iterator<Item = &'n str>),
) -> Vec<String> {
    let (ones, others): (BTreeSet<_>, BTreeSet<_>) = (ones.collect(), others.collect());
    let missing = |in_it: &str, name: &&str| format!("{in_it}: there is no `{name}`");
    let of_one = others.difference(&ones).map(|name| missing(one, name));
    of_one.chain(ones.difference(&others).map(|name| missing(other, name))).collect()
}

/// Checks that each stage of `ci/test` has its function, and its row in CONTRIBUTING.md.
fn stages(tree: &Tree) -> Vec<String> {
    let (script, guide) = (&tree["ci/test"], &tree["CONTRIBUTING.md"]);
    let quotes = part(script, "readonly stages=(", ")");
    let marked = |name: &str, about: &str| {
        let is_of_night = about.trim_start().starts_with("(night)");
        if is_of_night { format!("{name} (night)") } else { name.to_owned() }
    };
    let lines = quotes.filter_map(|it| it.trim().trim_matches('"').split_once(' '));
    let (listed, of_script): (Vec<_>, Vec<_>) =
        lines.map(|(name, about)| (name, marked(name, about))).unzip();
    let functions = script.lines().filter_map(|it| it.strip_prefix("stage_")?.strip_suffix("() {"));
    let in_guide: Vec<_> = rows(part(guide, "`ci/test` must pass", "###"))
        .flat_map(|row| {
            let (names, about) = (row[0], row[1]);
            quoted(names).map(move |name| marked(name, about))
        })
        .collect();
    let mut complaints =
        differences(("ci/test, stages", listed.into_iter()), ("ci/test, functions", functions));
    complaints.extend(differences(
        ("ci/test, stages", of_script.iter().map(String::as_str)),
        ("CONTRIBUTING.md, stages", in_guide.iter().map(String::as_str)),
    ));
    complaints
}

#[test]
fn documents_list_the_stages() {
    assert_none(&stages(&workspace()));
    let of = |functions: &str, guide: &str| {
        let script = format!("readonly stages=(\n    \"doc   it builds\"\n)\n{functions}");
        let guide =
            format!("`ci/test` must pass\n| stage | what |\n| --- | --- |\n{guide}### Tiers");
        stages(&tree([("ci/test", &script), ("CONTRIBUTING.md", &guide)]))
    };
    let (function, row) = ("stage_doc() {\n}\n", "| `doc` | it builds |\n");
    assert_none(&of(function, row));
    assert_one(&of("", row), "ci/test, functions: there is no `doc`");
    assert_one(&of(function, ""), "CONTRIBUTING.md, stages: there is no `doc`");
    assert_one(&of(function, &format!("{row}| `fmt` | |\n")), "ci/test, stages: there is no `fmt`");
    let of_night = of(function, "| `doc` | (night) it builds |\n");
    assert_eq!(of_night.len(), 2, "one is for a change, one of the night: {of_night:?}");
}

/// Checks that the files and folders exist that a document names by a path.
fn paths(tree: &Tree) -> Vec<String> {
    let ends = ["rs", "md", "toml", "py"];
    let is_file = |word: &&str| {
        let stem =
            word.rsplit_once('.').filter(|(_, end)| ends.contains(end)).map(|(stem, _)| stem);
        let is_path = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        stem.is_some_and(|stem| stem.contains('/') && stem.chars().all(is_path))
    };
    let mut complaints = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for word in text.lines().flat_map(quoted).filter(is_file) {
            let is_it = |known: &String| {
                known
                    .strip_suffix(word)
                    .is_some_and(|start| start.is_empty() || start.ends_with('/'))
            };
            if !tree.keys().any(is_it) {
                complaints.push(format!("{path}: there is no `{word}`"));
            }
        }
    }
    complaints
}

#[test]
fn documents_name_existing_files() {
    assert_none(&paths(&workspace()));
    let of = |text| paths(&tree([("docs/a.md", text), ("crates/x/src/b/c.rs", "")]));
    assert_none(&of("`b/c.rs` and `src/b/c.rs`, `c.rs`, `a b/d.rs`, `d.md`"));
    assert_one(&of("as `b/d.rs` does"), "docs/a.md: there is no `b/d.rs`");
    assert_one(&of("as `d/c.rs` does"), "there is no `d/c.rs`");
}

/// Checks that commands of cargo name the package of their example. Without `-p`, cargo looks only
/// in the default members.
fn examples(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for line in text.lines().filter(|line| line.contains("cargo ")) {
            let after = |option| {
                let rest = line.split_once(option).map(|(_, rest)| rest);
                rest.and_then(|rest: &str| rest.split([' ', '`', '\'']).next())
            };
            let Some(example) = after(" --example ") else { continue };
            let package = after(" -p ").unwrap_or_default();
            let ends = [".rs", "/main.rs"].map(|end| format!("/{package}/examples/{example}{end}"));
            if !tree.keys().any(|file| ends.iter().any(|end| file.ends_with(end))) {
                complaints.push(format!("{path}: `-p {package}` has no example `{example}`"));
            }
        }
    }
    complaints
}

#[test]
fn commands_find_their_examples() {
    assert_none(&examples(&workspace()));
    let of = |text| {
        let (file, folder) = ("crates/x/examples/a.rs", "lab/y/examples/b/main.rs");
        examples(&tree([("docs/a.md", text), (file, ""), (folder, "")]))
    };
    assert_none(&of("cargo build -p x --example a\n`cargo run -p y --example b`, as --example c"));
    assert_one(&of("cargo build --example a"), "docs/a.md: `-p ` has no example `a`");
    assert_one(&of("cargo run -p y --example a"), "`-p y` has no example `a`");
}

/// The word limit of a document that is read from beginning to end.
const ARCHITECTURE_WORDS: usize = 2000;

#[test]
fn the_architecture_is_a_map() {
    let words = workspace()["ARCHITECTURE.md"].split_whitespace().count();
    assert!(words <= ARCHITECTURE_WORDS, "ARCHITECTURE.md has {words} words");
}

/// Checks that the tests exist that ARCHITECTURE.md names as (T), of `consort`, or after `loom`.
fn named_tests(tree: &Tree) -> Vec<String> {
    let table = part(&tree["ARCHITECTURE.md"], "## What must always hold", "(T) ");
    let mut complaints = Vec::new();
    for row in rows(table) {
        for group in row[2].split(';') {
            let is_loom = group.contains("loom");
            if !is_loom && !group.contains("(T)") {
                continue;
            }
            let listed = if is_loom { group } else { group.split("(T)").next().unwrap_or(group) };
            for name in quoted(listed).filter(|name| !name.contains('.')) {
                let folder = if is_loom { "tests/loom/" } else { "/consort/tests/" };
                let (file, submodules) = (format!("/{name}.rs"), format!("/{name}/"));
                let is_it = |path: &String| {
                    path.contains(folder) && (path.ends_with(&file) || path.contains(&submodules))
                };
                if !tree.keys().any(is_it) {
                    complaints.push(format!("ARCHITECTURE.md: there is no test `{name}`"));
                }
            }
        }
    }
    complaints
}

#[test]
fn architecture_names_existing_tests() {
    assert_none(&named_tests(&workspace()));
    let of = |cell: &str| {
        let head =
            "## What must always hold\n| invariant | where | checked |\n| --- | --- | --- |\n";
        let text = format!("{head}| it | here | {cell} |\n(T) are");
        named_tests(&tree([
            ("ARCHITECTURE.md", &text),
            ("crates/consort/tests/it/a/mod.rs", ""),
            ("tests/loom/tests/x/b.rs", ""),
        ]))
    };
    assert_none(&of("`a` (T), tests of `x`; loom `b`; conformance"));
    assert_one(&of("`a`, `b` (T); loom `b`"), "no test `b`");
    assert_one(&of("loom `a`"), "no test `a`");
}

/// The test module of a package with the first line of each of its public types.
const FIRST_LINES: &str = "/first_lines.rs";

/// Checks that the tests of first lines name each type that a module re-exports, unless the module
/// is hidden: it is then for generated code.
fn first_lines(tree: &Tree) -> Vec<String> {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let mut complaints = Vec::new();
    for (path, test) in tree {
        let tests = path.strip_suffix(FIRST_LINES).and_then(|path| path.split_once("/tests/"));
        let Some((folder, _)) = tests else { continue };
        let sources = tree.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/src/")));
        let sources: Vec<_> = sources.collect();
        let root = tree.get(&*format!("{folder}/src/lib.rs")).map_or("", |text| &**text);
        let is_hidden = |path: &str| {
            let module = path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs"));
            module.is_some_and(|name| root.contains(&format!("#[doc(hidden)]\npub mod {name};")))
        };
        let shown = sources.iter().filter(|(path, _)| !is_hidden(path));
        let uses = shown.flat_map(|(_, text)| text.split("\npub use ").skip(1));
        let passed_on = uses.filter_map(|text| text.split(';').next());
        let public: BTreeSet<_> = passed_on.flat_map(words).collect();
        let tested = words(test);
        for line in sources.iter().flat_map(|(_, text)| text.lines()) {
            let kinds = ["pub struct ", "pub enum ", "pub type "];
            let rest = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind));
            let name = rest.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
            let is_missing = |name: &&str| public.contains(*name) && !tested.contains(*name);
            if let Some(name) = name.filter(is_missing) {
                complaints.push(format!("{path}: has no first line of `{name}`"));
            }
        }
    }
    complaints
}

#[test]
fn each_public_type_has_its_first_line() {
    let tree_of_all = workspace();
    let tests = tree_of_all.keys().filter(|path| path.ends_with(FIRST_LINES)).count();
    assert!(tests > 1, "only {tests} tests of first lines are found");
    assert_none(&first_lines(&tree_of_all));
    let of = |test| {
        let test_file = format!("crates/x/tests/it{FIRST_LINES}");
        first_lines(&tree([
            (&test_file, test),
            ("crates/x/src/lib.rs", "//! A lock.\npub use a::Lock;"),
            ("crates/x/src/a.rs", "pub struct Lock<T>(T);\npub struct OfItsMacro;"),
        ]))
    };
    assert_none(&of("let lock = Lock::new(0);"));
    assert_one(&of("let lock = Locked::new(0);"), "no first line of `Lock`");
}
