//! The programs in the documents are examples, and print the output that the cookbook shows.
//!
//! A code block after a line that names an example, such as `crates/consort/examples/pi.rs`, is the
//! text of the example without its first comment. `TEST_WRITE=1 cargo test -p consort-cli cookbook`
//! writes these blocks. In the cookbook, a block marked `text` is the output of the example before
//! it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use consort_sandbox::built;

use super::readme::documents;

const COOKBOOK: &str = "docs/cookbook.md";

/// The folders whose examples are all in the cookbook.
const FOLDERS: [&str; 2] = ["crates/consort/examples", "crates/consort-sync/examples"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the path of the example that a line names.
fn named_example(line: &str) -> Option<&str> {
    line.split('`').skip(1).step_by(2).find(|quoted| {
        let file = quoted.split_once("/examples/").map_or("", |(_, file)| file);
        !file.contains('/') && [".rs", ".c"].iter().any(|end| file.ends_with(end))
    })
}

/// Returns the text of an example without its first comment.
fn program(text: &str) -> &str {
    let end = if text.starts_with("//!") { "\n\n" } else { "*/\n" };
    text.split_once(end).map_or(text, |(_, program)| program)
}

/// A code block of a document.
struct Block<'t> {
    language: &'t str,
    text: String,
    /// The last line before it that is not empty, since the last block.
    before: &'t str,
    /// The line numbers of its text: its first, and that of its end.
    lines: (usize, usize),
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let lines: Vec<_> = document.lines().collect();
    let mut blocks = Vec::new();
    let (mut before, mut at) = ("", 0);
    while at < lines.len() {
        if let Some(language) = lines[at].strip_prefix("```") {
            let rest = &lines[at + 1..];
            let len = rest.iter().position(|line| line.starts_with("```")).unwrap_or(rest.len());
            let text = rest[..len].iter().flat_map(|line| [line, "\n"]).collect();
            blocks.push(Block { language, text, before, lines: (at + 1, at + 1 + len) });
            before = "";
            at += len + 1;
        } else if !lines[at].is_empty() {
            before = lines[at];
        }
        at += 1;
    }
    blocks
}

/// Returns a document with the programs that its lines name.
fn with_programs(document: &str, example: impl Fn(&str) -> String) -> String {
    let mut written = String::new();
    let mut lines = document.lines().enumerate().peekable();
    let mut copy_until = |written: &mut String, end: usize| {
        while let Some((_, line)) = lines.next_if(|(index, _)| *index < end) {
            written.extend([line, "\n"]);
        }
    };
    for block in blocks(document) {
        copy_until(&mut written, block.lines.0);
        if let Some(path) = named_example(block.before) {
            written.push_str(program(&example(path)));
            copy_until(&mut String::new(), block.lines.1);
        }
    }
    copy_until(&mut written, usize::MAX);
    written
}

#[test]
fn programs_are_written_after_their_names() {
    let example = |path: &str| match path {
        "x/examples/a.rs" => "//! An A.\n//! Two.\n\nfn a() {}\n\nfn b() {}\n".to_owned(),
        _ => "/* A\n C. */\nint c;\n".to_owned(),
    };
    let page = |a: &str, c: &str| {
        let other = "`examples/b/main.rs`\n```rust\nb\n```\n";
        format!("`x/examples/a.rs`:\n\n```rust\n{a}```\n\n```text\nt\n```\n{other}")
            + &format!("in `x/examples/c.c`\n\n```c\n{c}```\n")
    };
    let written = page("fn a() {}\n\nfn b() {}\n", "int c;\n");
    assert_eq!(with_programs(&page("", "old\nold\n"), example), written);
    assert_eq!(with_programs(&written, example), written);
}

#[test]
fn programs_of_the_documents_are_examples() {
    let mut programs = 0;
    for path in documents() {
        let document = fs::read_to_string(&path).expect("a document");
        programs += blocks(&document).iter().filter_map(|it| named_example(it.before)).count();
        let written = with_programs(&document, read);
        if written != document {
            let is_writing = env::var_os("TEST_WRITE").is_some();
            assert!(
                is_writing,
                "{}: a program is not its example: set TEST_WRITE=1 to write it",
                path.display()
            );
            fs::write(&path, written).expect("a writable document");
        }
    }
    assert!(programs > 10, "only {programs} programs are found");
}

#[test]
fn the_cookbook_has_all_examples() {
    let page = read(COOKBOOK);
    for folder in FOLDERS {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let path = format!("`{folder}/{}`", name.to_str().expect("a name in UTF-8"));
            assert!(page.contains(&path), "{COOKBOOK} does not name {path}");
        }
    }
}

/// Runs a command, and returns its lines in alphabetical order.
fn printed(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    sorted(&String::from_utf8_lossy(&output.stdout))
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Programs whose PEs may be processes print the same as processes, in any order.
#[test]
fn programs_of_the_cookbook_print_what_it_shows() {
    let page = read(COOKBOOK);
    let mut outputs = 0;
    let mut last = None;
    for block in blocks(&page) {
        last = named_example(block.before).or(last);
        let (Some(path), "text") = (last, block.language) else { continue };
        let name = Path::new(path).file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let example = built(env!("CARGO_BIN_EXE_consort"), &format!("examples/{name}"));
        let mut commands = vec![Command::new(&example)];
        if read(path).contains("Job::from_env") {
            let mut launcher = Command::new(env!("CARGO_BIN_EXE_consort"));
            launcher.args(["run", "-n", "4"]).arg(&example);
            commands.push(launcher);
        }
        for mut command in commands {
            assert_eq!(printed(&mut command), sorted(&block.text), "{command:?}");
        }
        outputs += 1;
    }
    assert!(outputs >= 10, "only {outputs} outputs are found");
}
