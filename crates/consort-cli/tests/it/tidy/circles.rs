//! No two files import each other, directly or indirectly, and no subcommand imports another.
//!
//! A file is its module. An import is a path that begins with `crate`, `super`, `self` or a child's
//! name. `mod` and `pub use` of a child's item are not imports. A module that imports that item
//! from the parent imports the child. Tests inside a file and doc links do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::{Tree, assert_none, assert_one, packages, tree, workspace};

/// A module, by the parts of its path; the root of the crate has none.
type Module = Vec<String>;

/// The starts of conditions that hold only for tests or documentation.
const NOT_IN_BUILDS: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test,", "#[cfg(doc)]"];

/// Returns a text without comments and without items that are compiled only for tests or
/// documentation.
fn code(text: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut skipped: Option<usize> = None;
    let mut code = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        if let Some(begins) = skipped {
            let ends = line.ends_with([';', '}', ',']) && indentation(line) == begins;
            skipped = Some(begins).filter(|_| !ends);
        } else if NOT_IN_BUILDS.iter().any(|start| line.trim_start().starts_with(start)) {
            skipped = Some(indentation(line));
        } else {
            code += line;
            code.push('\n');
        }
    }
    code
}

/// Returns the texts of a package's modules, without tests and comments. The roots of a library and
/// of its command are one module.
fn modules(tree: &Tree, folder: &str) -> BTreeMap<Module, String> {
    let mut modules = BTreeMap::<Module, String>::new();
    for (path, text) in tree {
        let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix("/src/"));
        let Some(path) = inside.and_then(|path| path.strip_suffix(".rs")) else { continue };
        let mut parts: Module = path.split('/').map(str::to_owned).collect();
        parts.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        modules.entry(parts).or_default().push_str(&code(text));
    }
    modules
}

/// Returns the paths of an import with its braces expanded.
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

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the paths that a text names, each with whether it is a `pub use`.
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
        // Renaming an import changes nothing.
        let parts = import.split_inclusive([',', '}']).map(|part| match part.split_once(" as ") {
            Some((path, name)) => format!("{path}{}", name.trim_start_matches(is_of_name)),
            None => part.to_owned(),
        });
        let dense: String = parts.collect::<String>().split_whitespace().collect();
        paths.extend(expanded(&dense).into_iter().map(|path| (is_public, path)));
        others += before;
    }
    let words = others.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    paths.extend(words.filter(|word| word.contains("::")).map(|word| (false, word.to_owned())));
    paths
}

/// Returns the child module whose item of this name a module re-exports by `pub use`.
fn passed_on(all: &BTreeMap<Module, String>, module: &Module, name: &str) -> Option<Module> {
    let is_it = |path: &String| path.rsplit("::").next() == Some(name);
    let found = paths(&all[module]).into_iter().find(|(is_public, path)| *is_public && is_it(path));
    let child = found?.1;
    let target = target(all, module, &child)?;
    target.starts_with(module).then_some(target)
}

/// Returns the module of the crate to which a path in `module` leads.
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
            at = passed_on(all, &at, name).unwrap_or(at);
            break;
        }
    }
    (at != *module).then_some(at)
}

/// Returns the imports of each module of a crate.
fn imports(tree: &Tree, folder: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let all = modules(tree, folder);
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

/// Returns all modules that a module reaches.
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

/// Returns a complaint for each file in a circle, which names the imported files of the circle.
fn circles(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (folder, _) in packages(tree) {
        let imports = imports(tree, folder);
        for (module, imported) in &imports {
            let back = imported.iter().filter(|it| reached(&imports, it).contains(module));
            let back: Vec<_> = back.map(|it| it.join("/")).collect();
            if !back.is_empty() {
                let (module, back) = (module.join("/"), back.join(", "));
                complaints.push(format!("{folder}: {module} imports {back}, and that leads back"));
            }
        }
    }
    complaints
}

#[test]
fn no_files_import_each_other() {
    let tree = workspace();
    assert_none(&circles(&tree));
    let all: Vec<_> = packages(&tree).map(|(folder, _)| imports(&tree, folder)).collect();
    let has_any =
        |imports: &&BTreeMap<_, BTreeSet<_>>| imports.values().any(|imported| !imported.is_empty());
    assert!(2 * all.iter().filter(has_any).count() > all.len(), "imports are not found");
}

/// Asserts the files of a package with complaints, and their imports.
#[track_caller]
fn assert_in_circles<const N: usize>(files: [(&str, &str); N], expected: &[(&str, &str)]) {
    let files = files.map(|(path, text)| (format!("crates/x/src/{path}.rs"), text));
    let complaints = circles(&tree(files.each_ref().map(|(path, text)| (&**path, *text))));
    let expected: Vec<_> = expected
        .iter()
        .map(|(file, imports)| format!("crates/x: {file} imports {imports}, and that leads back"))
        .collect();
    assert_eq!(complaints, expected);
}

#[test]
fn import_circles_are_found() {
    let uses_b = "use std::fmt;\nuse crate::{\n    b::{self, B},\n};";
    let of = |b, expected: &[_]| {
        assert_in_circles([("main", "mod a;\nmod b;"), ("a", uses_b), ("b", b)], expected);
    };
    of("fn f() { super::a::f(); }", &[("a", "b"), ("b", "a")]);
    of("#[cfg(test)]\nmod tests;\n\nuse crate::a;", &[("a", "b"), ("b", "a")]);
    of("// use super::a;\n#[cfg(test)]\nmod tests {\n    use super::a;\n}", &[]);
    of("#[cfg(all(test, unix))]\nmod tests {\n    use super::a;\n}", &[]);
    of("#[cfg(all(unix, not(test)))]\nuse super::a;", &[("a", "b"), ("b", "a")]);
    of("#[cfg(doc)]\nuse super::a;", &[]);
    of("use crate::{\n    a as c,\n    d,\n};", &[("a", "b"), ("b", "a")]);
    of("use crate::a as c;", &[("a", "b"), ("b", "a")]);
    // A module that imports a re-exported item imports the file that has it.
    assert_in_circles(
        [
            ("a", "mod c;\nmod d;\npub(crate) use c::C;"),
            ("a/c", "use super::d::D;"),
            ("a/d", "use super::C;"),
        ],
        &[("a/c", "a/d"), ("a/d", "a/c")],
    );
    assert_in_circles(
        [
            ("lib", "mod a;\nmod e;\npub use a::C;\npub use e::E;"),
            ("a", "mod c;\npub use c::C;"),
            ("a/c", "use crate::E;"),
            ("e", "use crate::C;"),
        ],
        &[("a/c", "e"), ("e", "a/c")],
    );
    let parent = |parent, expected: &[_]| {
        assert_in_circles([("a", parent), ("a/c", "use super::A;")], expected);
    };
    parent("mod c;\npub(crate) use c::C;\nstruct A;", &[]);
    parent("mod c;\nuse c::C;\nstruct A;", &[("a", "a/c"), ("a/c", "a")]);
    parent("mod c;\nstruct A;\nfn f() { c::f(); }", &[("a", "a/c"), ("a/c", "a")]);
}

fn commands_apart(tree: &Tree) -> Vec<String> {
    let command = |module: &Module| match &module[..] {
        [folder, command, ..] if folder == "commands" => Some(command.clone()),
        _ => None,
    };
    let mut complaints = Vec::new();
    for (module, imported) in imports(tree, "crates/consort-cli") {
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
