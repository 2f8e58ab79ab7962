//! Rules for single source files, their names and their connections.

use std::collections::BTreeSet;

use super::{Tree, assert_none, assert_one, in_package, tree, workspace};

const DOC_LINES_MAX: usize = 30;
const FILE_LINES_MAX: usize = 600;

/// Each in two parts, so that this file may contain them.
const FORBIDDEN_WORDS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("#[ig", "nore"),
    concat!("allow(dead", "_code"),
];

/// Returns the Rust files of the packages.
fn rust_files(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter()
        .filter(|(path, _)| path.ends_with(".rs") && in_package(tree, path).is_some())
        .map(|(path, text)| (path.as_str(), text.as_str()))
}

/// Returns those that are not tests, benchmarks or examples.
fn src_files(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let is_source = |path| in_package(tree, path).is_some_and(|(_, it)| it.starts_with("src/"));
    rust_files(tree).filter(move |(path, _)| is_source(path))
}

fn module_doc(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.starts_with("//!"))
}

fn module_docs(tree: &Tree) -> Vec<String> {
    src_files(tree)
        .filter_map(|(path, text)| match module_doc(text).count() {
            0 => Some(format!("{path}: does not begin with a module doc")),
            1..=DOC_LINES_MAX => None,
            lines => Some(format!("{path}: {lines} lines of module doc, over {DOC_LINES_MAX}")),
        })
        .collect()
}

#[test]
fn each_module_begins_with_a_short_doc() {
    assert_none(&module_docs(&workspace()));
    assert_one(&module_docs(&tree([("crates/x/src/a.rs", "use a;\n//! Late.")])), "a.rs");
    let long = "//! Words.\n".repeat(DOC_LINES_MAX + 1);
    assert_one(&module_docs(&tree([("crates/x/src/a/b.rs", &long)])), "31 lines");
    assert_none(&module_docs(&tree([("crates/x/tests/a.rs", "")])));
}

/// System variables, which are read directly.
const SYSTEM_VARIABLES: [&str; 3] = ["\"HOME\"", "\"PATH\"", "\"RUST_MIN_STACK\""];

/// Returns the lines that contain one of these calls in sources outside `own`: the path, the line,
/// and the line with the three lines above.
fn calls_elsewhere<'t>(
    tree: &'t Tree,
    own: &str,
    calls: &[&str],
    code: impl Fn(&'t str) -> &'t str,
) -> Vec<(&'t str, &'t str, String)> {
    let others = src_files(tree).filter(|(path, _)| {
        ["crates/", "lab/consort"].iter().any(|start| path.starts_with(start))
            && !path.contains(own)
            && !path.ends_with("/tests.rs")
    });
    let mut found = Vec::new();
    for (path, text) in others {
        let lines: Vec<_> = code(text).lines().map(str::trim).collect();
        let has = |line: &str, call: &str| {
            let mut places = line.match_indices(call);
            places.any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
        };
        let is_call =
            |line: &str| !line.starts_with("//") && calls.iter().any(|call| has(line, call));
        let at = (0..lines.len()).filter(|&at| is_call(lines[at]));
        found.extend(at.map(|at| (path, lines[at], lines[at.saturating_sub(3)..=at].join(" "))));
    }
    found
}

fn variables_read_elsewhere(tree: &Tree) -> Vec<String> {
    let calls = ["env::var(", "env::var_os("];
    let found = calls_elsewhere(tree, "consort-fabric/src/environment.rs", &calls, |text| text);
    let others = found
        .into_iter()
        .filter(|(_, line, _)| !SYSTEM_VARIABLES.iter().any(|name| line.contains(name)));
    others.map(|(path, line, _)| format!("{path}: use `variable`, not {line}")).collect()
}

/// An empty variable counts as unset everywhere.
#[test]
fn one_function_reads_the_environment() {
    assert_none(&variables_read_elsewhere(&workspace()));
    let read = "let home = env::var_os(\"HOME\");\nlet own = std::env::var(NAME);";
    assert_one(&variables_read_elsewhere(&tree([("crates/x/src/a.rs", read)])), "var(NAME)");
    assert_none(&variables_read_elsewhere(&tree([("crates/x/tests/a.rs", read)])));
}

/// The words in comments for files that users do not name: those of the system, and those that this
/// process has just created.
const NAMED_BY_NO_USER: [&str; 3] = ["\"/proc/", "of the system", "of this process"];

fn files_read_elsewhere(tree: &Tree) -> Vec<String> {
    let calls = ["fs::read(", "fs::read_to_string(", "File::open("];
    let code = |text| {
        ["#[cfg(test)]", "#[cfg(all(test,"]
            .into_iter()
            .fold(text, |text: &str, tests| text.split(tests).next().unwrap_or_default())
    };
    let found = calls_elsewhere(tree, "consort-fabric/src/files/", &calls, code);
    let others = found
        .into_iter()
        .filter(|(_, _, lines)| !NAMED_BY_NO_USER.iter().any(|words| lines.contains(words)));
    others.map(|(path, line, _)| format!("{path}: use `files::read`, not {line}")).collect()
}

/// No pipe, device or endless file that a user names may hang a program or fill its memory.
#[test]
fn one_module_reads_files_of_users() {
    assert_none(&files_read_elsewhere(&workspace()));
    let read = "let all = fs::read(\"/proc/stat\");\n\n\n\nlet own = fs::read(path);";
    assert_one(&files_read_elsewhere(&tree([("crates/x/src/a.rs", read)])), "read(path)");
    assert_none(&files_read_elsewhere(&tree([("crates/x/tests/a.rs", read)])));
}

/// Returns whether a file of a crate is compiled without a `mod` that names it: by cargo, or by a
/// test of mistakes.
fn is_crate_root(tree: &Tree, path: &str) -> bool {
    let parts: Vec<_> = in_package(tree, path).map_or("", |(_, it)| it).split('/').collect();
    matches!(
        parts[..],
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["tests" | "benches" | "examples" | "fuzz_targets", _]
            | ["tests", "mistakes", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    )
}

/// Returns the name in `mod NAME;` or `mod NAME {`, with any visibility.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(')')?.1.trim_start(),
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let name = line.strip_prefix("mod ")?;
    Some(name.split([';', ' ', '{']).next().unwrap_or(name))
}

/// Returns the modules that a text declares, itself or by the lines `NAME: TYPE,` of a `registry!`.
fn declared_modules(text: &str) -> Vec<&str> {
    let mut in_registry = false;
    let mut modules = Vec::new();
    for line in text.lines() {
        if in_registry {
            modules.extend(line.trim().split_once(": ").map(|(name, _)| name));
        }
        modules.extend(declared_module(line));
        in_registry = line == "registry! {" || (in_registry && line != "}");
    }
    modules
}

/// Returns `folder` followed by `rest`, which may begin with `../`.
fn join(folder: &str, rest: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').collect();
    for part in rest.split('/') {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the possible files of a file's `mod` declarations.
fn named_files(tree: &Tree, path: &str, text: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let below = if is_crate_root(tree, path) || name == "mod.rs" {
        folder.to_owned()
    } else {
        join(folder, name.trim_end_matches(".rs"))
    };
    let mut files = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("#[path = \"") {
            files.extend(rest.split_once('"').map(|(named, _)| join(folder, named)));
        }
    }
    for module in declared_modules(text) {
        files.push(format!("{below}/{module}.rs"));
        files.push(format!("{below}/{module}/mod.rs"));
    }
    files
}

fn dead_files(tree: &Tree) -> Vec<String> {
    let mut waiting: Vec<String> = rust_files(tree)
        .filter(|(path, _)| is_crate_root(tree, path))
        .map(|(path, _)| path.to_owned())
        .collect();
    let mut alive = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if let Some(text) = tree.get(&path)
            && !alive.contains(&path)
        {
            waiting.extend(named_files(tree, &path, text));
            alive.insert(path);
        }
    }
    rust_files(tree)
        .filter(|(path, _)| !alive.contains(*path))
        .map(|(path, _)| format!("{path}: no `mod` names it"))
        .collect()
}

#[test]
fn each_file_is_reachable() {
    assert_none(&dead_files(&workspace()));
    let alive = [
        ("crates/x/src/lib.rs", "mod a;\n// mod dead;\n#[path = \"../shown.rs\"]\npub mod shown;"),
        ("crates/x/src/a.rs", "pub(crate) mod b;"),
        ("crates/x/src/a/b/mod.rs", "mod c;"),
        ("crates/x/src/a/b/c.rs", "registry! {\n    e: E,\n}\nf: F,"),
        ("crates/x/src/a/b/c/e.rs", ""),
        ("crates/x/shown.rs", ""),
        ("crates/x/tests/it/main.rs", "mod d;"),
        ("crates/x/tests/it/d.rs", ""),
    ];
    assert_none(&dead_files(&tree(alive)));
    let mut files = tree(alive);
    files.insert("crates/x/src/dead.rs".to_owned(), String::new());
    assert_one(&dead_files(&files), "src/dead.rs");
    files.remove("crates/x/src/dead.rs");
    files.insert("crates/x/src/a.rs".to_owned(), String::new());
    assert_eq!(dead_files(&files).len(), 3);
}

fn forbidden_words(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree {
        for (index, line) in text.lines().enumerate() {
            for word in FORBIDDEN_WORDS.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{path}:{}: `{word}`", index + 1));
            }
        }
    }
    complaints
}

#[test]
fn no_file_has_a_forbidden_word() {
    assert_none(&forbidden_words(&workspace()));
    for word in FORBIDDEN_WORDS {
        assert_one(&forbidden_words(&tree([("a.md", &format!("a\n a {word} b"))])), "a.md:2");
    }
}

/// Returns whether a text uses the settable system clock. Clippy finds uses of it through the
/// standard library (`clippy.toml`).
fn steps(text: &str) -> bool {
    ["CLOCK_REALTIME", "ClockId::Realtime"].iter().any(|name| text.contains(name))
}

fn stepping_clocks(tree: &Tree) -> Vec<String> {
    src_files(tree)
        .filter(|(_, text)| steps(text))
        .map(|(path, _)| format!("{path}: times are by `Instant`, which never steps"))
        .collect()
}

#[test]
fn times_use_the_monotonic_clock() {
    assert_none(&stepping_clocks(&workspace()));
    let of = |call| stepping_clocks(&tree([("crates/x/src/a.rs", call)]));
    assert_one(&of("clock_gettime(ClockId::Realtime)"), "never steps");
    assert_none(&of("clock_gettime(ClockId::Monotonic)"));
}

fn file_lengths(tree: &Tree) -> Vec<String> {
    rust_files(tree)
        .filter(|(_, text)| !module_doc(text).any(|line| line.contains("long")))
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines; its doc does not say why so long"))
        .collect()
}

#[test]
fn long_files_explain_their_length() {
    assert_none(&file_lengths(&workspace()));
    let long = "use a;\n".repeat(FILE_LINES_MAX + 1);
    for path in ["crates/x/src/a.rs", "crates/x/tests/it/a.rs", "crates/x/examples/a.rs"] {
        assert_one(&file_lengths(&tree([(path, &long)])), "601 lines");
    }
    let explained = format!("//! So long because of its tables.\n{long}");
    assert_none(&file_lengths(&tree([("crates/x/src/a.rs", &explained)])));
}

/// Returns the files of its own crate that the docs of a file name, as `folder/file`.
fn named_in_docs(text: &str) -> impl Iterator<Item = &str> {
    let docs = text.lines().filter(|line| line.trim_start().starts_with("//"));
    let quoted = docs.flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.map(|name| name.trim_end_matches(".rs")).filter(|name| {
        let is_path = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/';
        let is_inside = !name.starts_with('/') && !name.ends_with('/');
        is_inside && name.contains('/') && name.chars().all(is_path)
    })
}

fn stale_names(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in src_files(tree) {
        let Some((root, _)) = path.split_once("/src/") else { continue };
        for name in named_in_docs(text) {
            let named = format!("{root}/src/{name}");
            let exists = |end: &str| tree.contains_key(&format!("{named}{end}"));
            let is_test =
                name.starts_with("tests/") && tree.contains_key(&format!("{root}/{name}.rs"));
            if !is_test && ![".rs", "/mod.rs"].into_iter().any(exists) {
                complaints.push(format!("{path}: there is no `{name}`"));
            }
        }
    }
    complaints
}

#[test]
fn docs_name_existing_files() {
    assert_none(&stale_names(&workspace()));
    let files = |doc| [("crates/x/src/a.rs", doc), ("crates/x/src/b/c.rs", "")];
    assert_none(&stale_names(&tree(files("//! As `b/c` and `b/c.rs` do."))));
    assert_one(&stale_names(&tree(files("//! As `b/d` does."))), "no `b/d`");
}

/// Returns whether a line contains a year, as a separate word of four digits.
fn has_year(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric()).any(|word| {
        word.len() == 4
            && word.bytes().all(|byte| byte.is_ascii_digit())
            && (word.starts_with("19") || word.starts_with("20"))
    })
}

/// Returns the files of algorithms: those next to a registry.
fn algorithms(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let has_registry = |(_, text): &(&str, &str)| text.lines().any(|line| line == "registry! {");
    let registries = src_files(tree).filter(has_registry);
    let folders: BTreeSet<_> = registries.filter_map(|(path, _)| folder(path)).collect();
    src_files(tree).filter(move |(path, _)| {
        !path.ends_with("/mod.rs") && folder(path).is_some_and(|folder| folders.contains(&folder))
    })
}

/// Checks that each algorithm cites a source with its year, or names the algorithm that it uses.
fn citations(tree: &Tree) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().map(|name| name.replace(".rs", ""));
    let names: BTreeSet<_> = algorithms(tree).filter_map(|(path, _)| name(path)).collect();
    let names_another = |path: &str, line: &str| {
        let mut words = line.split('`').skip(1).step_by(2);
        words.any(|word| names.contains(word) && name(path).as_deref() != Some(word))
    };
    algorithms(tree)
        .filter(|(path, text)| {
            !module_doc(text).any(|line| has_year(line) || names_another(path, line))
        })
        .map(|(path, _)| format!("{path}: its doc cites no source with a year"))
        .collect()
}

#[test]
fn each_algorithm_cites_its_source() {
    assert!(algorithms(&workspace()).count() > 30, "the registries are not found");
    assert_none(&citations(&workspace()));
    let registry = ("crates/x/src/reduce/mod.rs", "//! The registry.\nregistry! {\n}");
    let other = ("crates/x/src/reduce/b.rs", "//! Hensgen, Finkel, Manber (1988).");
    let of = |text| citations(&tree([registry, ("crates/x/src/reduce/a.rs", text), other]));
    assert_one(&of("//! `a` of 8192 bytes, x1988, as `c`.\n// 1988"), "reduce/a.rs");
    assert_none(&of("//! As in 1988."));
    assert_none(&of("//! `b` twice."));
    assert_none(&citations(&tree([("crates/x/src/other/a.rs", "//! No algorithm.")])));
}

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
