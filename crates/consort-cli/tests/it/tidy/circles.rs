//! No two files import each other, directly or through others; and no subcommand imports another.
//!
//! A file stands for its module. An import is a path that begins with `crate`, `super`, `self` or a
//! child's name; `mod` is none, and neither is `pub use` of a child's item: who imports that item
//! from the parent imports the child. Tests inside a file do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Tree, assert_none, assert_one, inside, tree, workspace};

/// All crates.
const CRATES: [&str; 12] = [
    "cholesky",
    "consort",
    "consort-bench",
    "consort-cli",
    "consort-collectives",
    "consort-fabric",
    "consort-native",
    "consort-sim",
    "consort-tuner",
    "ft",
    "kernels",
    "summa",
];

/// A module by the parts of its path; the root of the crate has none.
type Module = Vec<String>;

/// The texts of a crate's modules, without tests and comments.
fn modules(tree: &Tree, name: &str) -> BTreeMap<Module, String> {
    let prefix = format!("{name}/src/");
    let module = |(path, text): (&String, &String)| {
        let path = inside(path)?.strip_prefix(&prefix)?.strip_suffix(".rs")?;
        let mut parts: Module = path.split('/').map(str::to_owned).collect();
        parts.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        let text = text.split("#[cfg(test)]").next().unwrap_or(text);
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        Some((parts, text.lines().filter(is_code).collect::<Vec<_>>().join("\n")))
    };
    tree.iter().filter_map(module).collect()
}

/// The paths of an import with its braces multiplied out.
fn expanded(import: &str) -> Vec<String> {
    let Some((head, rest)) = import.split_once('{') else { return vec![import.to_owned()] };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if let (false, Some(last)) = (c == ',' && depth == 0, parts.last_mut()) {
            last.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.iter().flat_map(|part| expanded(&format!("{head}{part}"))).collect()
}

/// The paths that a text names: whether `pub use` passes it on, and the path.
fn paths(text: &str) -> Vec<(bool, String)> {
    let (mut paths, mut others) = (Vec::new(), String::new());
    for statement in text.split(';') {
        let statement = format!(" {statement}");
        let start = statement.match_indices("use ").map(|(at, _)| at);
        let mut start = start.filter(|at| statement[..*at].ends_with(char::is_whitespace));
        let Some(at) = start.next() else {
            others += &statement;
            continue;
        };
        let (before, import) = (&statement[..at], &statement[at + 4..]);
        let is_public = before.lines().last().is_some_and(|line| line.contains("pub"));
        let dense: String = import.chars().filter(|c| !c.is_whitespace()).collect();
        paths.extend(expanded(&dense).into_iter().map(|path| (is_public, path)));
        others += before;
    }
    let words = others.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    paths.extend(words.filter(|word| word.contains("::")).map(|word| (false, word.to_owned())));
    paths
}

/// The child whose item of this name a module passes on by `pub use`.
fn passed_on(all: &BTreeMap<Module, String>, module: &Module, name: &str) -> Option<String> {
    let is_it = |path: &String| path.rsplit("::").next() == Some(name);
    let found = paths(&all[module]).into_iter().find(|(is_public, path)| *is_public && is_it(path));
    let mut child = module.clone();
    child.push(found?.1.split("::").next()?.to_owned());
    if all.contains_key(&child) { child.pop() } else { None }
}

/// The module of the crate that a path in `module` leads into.
fn target(all: &BTreeMap<Module, String>, module: &Module, path: &str) -> Option<Module> {
    let mut parts = path.split("::").peekable();
    let child = |name: &str| [module.as_slice(), &[name.to_owned()]].concat();
    let mut at = match *parts.peek()? {
        "crate" => parts.next().map(|_| Module::new())?,
        "self" => parts.next().map(|_| module.clone())?,
        "super" => module.clone(),
        name if all.contains_key(&child(name)) => module.clone(),
        _ => return None,
    };
    while parts.next_if_eq(&"super").is_some() {
        at.pop();
    }
    for name in parts {
        at.push(name.to_owned());
        if !all.contains_key(&at) {
            at.pop();
            at.extend(passed_on(all, &at, name));
            break;
        }
    }
    (at != *module).then_some(at)
}

/// What each module of a crate imports.
fn imports(tree: &Tree, name: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let all = modules(tree, name);
    let of = |(module, text): (&Module, &String)| {
        let imported = paths(text).into_iter().filter_map(|(is_public, path)| {
            let target = target(&all, module, &path)?;
            let passes_on = is_public && target.starts_with(module);
            (!passes_on).then_some(target)
        });
        (module.clone(), imported.collect())
    };
    all.iter().map(of).collect()
}

/// All that a module reaches.
fn reached(imports: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if reached.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    reached
}

fn circles(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in CRATES {
        let imports = imports(tree, name);
        let circular: Vec<String> = imports
            .keys()
            .filter(|module| reached(&imports, module).contains(*module))
            .map(|module| module.join("/"))
            .collect();
        if !circular.is_empty() {
            complaints.push(format!("{name}: in circles of imports: {}", circular.join(", ")));
        }
    }
    complaints
}

#[test]
fn no_files_import_each_other() {
    let imports = imports(&workspace(), "consort-bench");
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 100, "imports are not found");
    assert_none(&circles(&workspace()));
    let of = |a, b| {
        let files = [
            ("crates/consort-cli/src/main.rs", "mod a;\nmod b;"),
            ("crates/consort-cli/src/a.rs", a),
            ("crates/consort-cli/src/b.rs", b),
        ];
        circles(&tree(files))
    };
    let uses_b = "use std::fmt;\nuse crate::{\n    b::{self, B},\n};";
    assert_one(&of(uses_b, "fn f() { super::a::f(); }"), "a, b");
    assert_none(&of(uses_b, "// use super::a;\n#[cfg(test)]\nmod tests { use super::a; }"));
    let files = [
        ("crates/consort-cli/src/a.rs", "mod c;\nmod d;\npub(crate) use c::C;"),
        ("crates/consort-cli/src/a/c.rs", "use super::d::D;"),
        ("crates/consort-cli/src/a/d.rs", "use super::C;"),
    ];
    assert_one(&circles(&tree(files)), "a/c, a/d");
    let parent = |parent| {
        let child = ("crates/consort-cli/src/a/c.rs", "use super::A;");
        circles(&tree([("crates/consort-cli/src/a.rs", parent), child]))
    };
    assert_none(&parent("mod c;\npub(crate) use c::C;\nstruct A;"));
    assert_one(&parent("mod c;\nuse c::C;\nstruct A;"), "a, a/c");
    assert_one(&parent("mod c;\nstruct A;\nfn f() { c::f(); }"), "a, a/c");
}

fn commands_apart(tree: &Tree) -> Vec<String> {
    let command = |module: &Module| match &module[..] {
        [folder, command, ..] if folder == "commands" => Some(command.clone()),
        _ => None,
    };
    let mut complaints = Vec::new();
    for (module, imported) in imports(tree, "consort-cli") {
        let Some(one) = command(&module) else { continue };
        for other in imported.iter().filter_map(command).filter(|other| *other != one) {
            complaints.push(format!("the command {one} imports the command {other}"));
        }
    }
    complaints
}

#[test]
fn no_command_imports_another() {
    assert_none(&commands_apart(&workspace()));
    let files = [
        ("crates/consort-cli/src/commands/mod.rs", "mod bench;\nmod tune;"),
        ("crates/consort-cli/src/commands/bench.rs", "use super::tune::Tune;"),
        ("crates/consort-cli/src/commands/tune.rs", ""),
    ];
    assert_one(&commands_apart(&tree(files)), "bench imports the command tune");
}
