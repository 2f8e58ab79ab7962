//! The commands in README.md and docs/ work for a reader who types them.
//!
//! The test runs each line of a block marked `sh`, and each line after `$ ` in a block marked
//! `console`, in order. Each document has a fresh folder, separate wisdom, and the C program that
//! it names. After a comment `# takes long`, the test does not run a command, but looks for its
//! options in its help. The test skips the lines that do not use `consort`; a list names them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use consort_sandbox::built;

use super::shmem;

/// The beginnings of lines that this test does not run.
const SKIPPED: &[&str] = &[
    "cargo build",
    "cargo new ",
    "cargo test",
    "cc ",
    "ci/",
    "mpicc ",
    "mpirun ",
    "oshrun ",
    "pip ",
];

/// The program in documents about OpenSHMEM.
const RING: &str = "crates/consort-shmem/examples/ring.c";

const LIMIT_SECONDS: &str = "300";

/// A command line of a document.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    text: String,
    takes_long: bool,
}

/// Returns the command lines of a Markdown text.
fn command_lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut language = None;
    let mut takes_long = false;
    let mut continued: Option<Line> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("```") {
            language = if language.is_none() { Some(rest.trim()) } else { None };
            takes_long = false;
            continue;
        }
        let (Some("sh" | "console"), false) = (language, line.is_empty()) else { continue };
        if continued.is_none() && line.starts_with('#') {
            takes_long |= line == "# takes long";
            continue;
        }
        let command = match (&continued, language) {
            (None, Some("console")) => line.strip_prefix("$ "),
            _ => Some(line),
        };
        let Some(command) = command else { continue };
        let mut whole =
            continued.take().unwrap_or(Line { number: index + 1, text: String::new(), takes_long });
        if let Some(part) = command.strip_suffix('\\') {
            whole.text.push_str(part);
            continued = Some(whole);
        } else {
            whole.text.push_str(command);
            lines.push(whole);
            takes_long = false;
        }
    }
    lines
}

#[test]
fn command_lines_are_found() {
    let text = "\
```sh
# Comment
consort topology

# takes long
# needs mpirun
consort tune \\
    --budget 5
consort bench
```
consort outside
```console
$ consort wisdom
output
```
```rust
consort::run();
```";
    let line = |number, text: &str, takes_long| Line { number, text: text.to_owned(), takes_long };
    let expected = [
        line(3, "consort topology", false),
        line(7, "consort tune --budget 5", true),
        line(9, "consort bench", false),
        line(13, "consort wisdom", false),
    ];
    assert_eq!(command_lines(text), expected);
}

/// The treatment of a command line.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The shell runs it; `consort` replaces the commands that build and start it.
    Run(String),
    Skip,
    Unknown,
}

/// Returns a command line without the variables that it sets.
fn command_of(line: &str) -> &str {
    let is_setting = |word: &str| word.contains('=') && !word.starts_with('-');
    let mut command = line;
    while let Some((word, rest)) = command.split_once(' ')
        && is_setting(word)
    {
        command = rest.trim_start();
    }
    command
}

fn fate(line: &str) -> Fate {
    let command = command_of(line);
    let settings = &line[..line.len() - command.len()];
    if SKIPPED.iter().any(|start| command.starts_with(start)) {
        Fate::Skip
    } else if ["consort", "consort-lab"].contains(&command.split(' ').next().unwrap_or_default()) {
        Fate::Run(line.to_owned())
    } else if let Some(rest) = command.strip_prefix("cargo run --release ")
        && let Some((_, arguments)) = rest.split_once("-- ")
    {
        let program = if command.contains(" -p consort-lab ") { "consort-lab" } else { "consort" };
        Fate::Run(format!("{settings}{program} {arguments}"))
    } else {
        Fate::Unknown
    }
}

#[test]
fn command_lines_are_classified() {
    let run = |line: &str| Fate::Run(line.to_owned());
    assert_eq!(fate("consort bench barrier > a.json"), run("consort bench barrier > a.json"));
    assert_eq!(fate("A=1 B=2 consort bench"), run("A=1 B=2 consort bench"));
    assert_eq!(fate("cargo run --release -- bench --pes=2"), run("consort bench --pes=2"));
    assert_eq!(fate("A=1 cargo run --release -p consort-cli -- x"), run("A=1 consort x"));
    assert_eq!(fate("cargo run --release -p consort-lab -- sim"), run("consort-lab sim"));
    assert_eq!(fate("consort-lab sim broadcast"), run("consort-lab sim broadcast"));
    for start in SKIPPED {
        assert_eq!(fate(&format!("{start}x")), Fate::Skip);
    }
    for line in ["rm -rf x", "consortium", "cargo run --release"] {
        assert_eq!(fate(line), Fate::Unknown, "{line}");
    }
}

/// Returns the command that shows the help for a line, and the line's long options before `--`.
fn help_for(line: &str) -> (String, Vec<&str>) {
    let words = line.split_whitespace().take_while(|word| !word.starts_with(['#', '|', '>', ';']));
    let words: Vec<_> = words.take_while(|word| *word != "--").collect();
    let asking = words.iter().take_while(|word| !word.starts_with('-')).chain([&"--help"]);
    let options = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    let names = options.map(|word| word.split_once('=').map_or(*word, |(name, _)| name));
    (asking.copied().collect::<Vec<_>>().join(" "), names.collect())
}

/// Returns whether a help text explains this option, not only a longer one with this prefix.
fn explains(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == option)
}

#[test]
fn slow_commands_are_checked_by_help() {
    let (asking, options) =
        help_for("A=1 consort tune barrier --budget=5 --pes 2 -v > a.json # --x");
    let (_, without_program) = help_for("consort profile --json -- program --size 8");
    assert_eq!(without_program, ["--json"]);
    assert_eq!(asking, "A=1 consort tune barrier --help");
    assert_eq!(options, ["--budget", "--pes"]);
    assert!(explains("  --budget <SECONDS>  Time", "--budget"));
    assert!(explains("[--budget=<SECONDS>]", "--budget"));
    assert!(!explains("  --budget-bytes <BYTES>", "--budget"));
}

/// Runs a command line in a folder, with the `consort` that was built for this test.
fn shell(line: &str, folder: &Path) -> Output {
    let lab = built(env!("CARGO_BIN_EXE_consort"), "consort-lab");
    let built = lab.parent().expect("a folder").to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([built].into_iter().chain(env::split_paths(&others)));
    Command::new("timeout")
        .args([LIMIT_SECONDS, "bash", "-euo", "pipefail", "-c", line])
        .current_dir(folder)
        .env("PATH", path.expect("folders without a colon"))
        .env("CONSORT_WISDOM", folder.join("wisdom.toml"))
        .output()
        .expect("a shell starts")
}

/// Returns the error of a command line that must run, if any.
fn run(line: &Line, command: &str, folder: &Path) -> Option<String> {
    let (command, options) =
        if line.takes_long { help_for(command) } else { (command.to_owned(), Vec::new()) };
    let output = shell(&command, folder);
    let shown = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Some(format!("`{command}`: {}\n{shown}{said}", output.status));
    }
    let unknown: Vec<_> = options.into_iter().filter(|option| !explains(&shown, option)).collect();
    (!unknown.is_empty()).then(|| format!("`{command}` does not explain {unknown:?}"))
}

/// Returns the blocks of a Markdown text marked `text`, each with the commands before it.
fn shown_blocks(text: &str) -> Vec<(Vec<Line>, &str)> {
    let commands = command_lines(text);
    let mut blocks = Vec::new();
    let (mut from, mut rest) = (0, text);
    while let Some((before, after)) = rest.split_once("```text\n") {
        let (block, after) = after.split_once("```").expect("a block ends");
        let number = text[..text.len() - rest.len() + before.len()].lines().count();
        let is_since = |line: &&Line| !line.takes_long && (from..number).contains(&line.number);
        let since = commands.iter().filter(is_since);
        let since = since.map(|line| Line { text: line.text.clone(), ..*line }).collect();
        blocks.push((since, block));
        (from, rest) = (number, after);
    }
    blocks
}

/// A simulation prints the same everywhere, so a reader sees the output that the page shows.
#[test]
fn simulations_print_what_their_page_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulating.md");
    let page = fs::read_to_string(page).expect("the page");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let blocks = shown_blocks(&page);
    assert!(blocks.len() > 2);
    for (commands, block) in blocks {
        let outputs = commands.iter().map(|line| shell(&line.text, folder.path()).stdout);
        let printed = String::from_utf8(outputs.collect::<Vec<_>>().concat()).expect("a text");
        for line in block.lines().filter(|line| !["", "..."].contains(line)) {
            assert!(printed.lines().any(|one| one == line), "no `{line}` in\n{printed}");
        }
    }
}

/// Returns README.md and the documents in docs/.
pub(super) fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![root.join("README.md")];
    if let Ok(entries) = fs::read_dir(root.join("docs")) {
        documents.extend(entries.map(|entry| entry.expect("a readable entry").path()));
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    documents
}

#[test]
fn each_skipped_command_is_in_a_document() {
    let texts = documents().into_iter().map(|path| fs::read_to_string(path).expect("a document"));
    let lines: Vec<_> = texts.flat_map(|text| command_lines(&text)).collect();
    for start in SKIPPED {
        let is_used = lines.iter().any(|line| command_of(&line.text).starts_with(start));
        assert!(is_used, "no document has a command that starts with `{start}`");
    }
}

#[test]
fn the_commands_in_the_documents_work() {
    let mut commands = 0;
    let mut complaints = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", document.display()));
        let folder = tempfile::tempdir().expect("a temporary folder");
        if text.contains(RING) {
            shmem::library();
            let ring = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RING);
            fs::copy(ring, folder.path().join("ring.c")).expect("the program");
        }
        for line in command_lines(&text) {
            let complaint = match fate(&line.text) {
                Fate::Skip => None,
                Fate::Unknown => Some(format!("`{}` is neither run nor skipped", line.text)),
                Fate::Run(command) => {
                    commands += 1;
                    run(&line, &command, folder.path())
                }
            };
            let place = format!("{}:{}", document.display(), line.number);
            complaints.extend(complaint.map(|complaint| format!("{place}: {complaint}")));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(commands > 0, "no document shows a command");
}
