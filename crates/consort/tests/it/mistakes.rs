//! Tests the compiler's messages about likely mistakes in programs with Consort.
//!
//! Each file of `tests/mistakes/` has one mistake, and compiles without it, with `--cfg right`. Its
//! comments state all messages of the compiler, in their order. Each comment states a part of a
//! message: our text, or text that new compilers do not change.
//!
//! | comment | a part of |
//! | --- | --- |
//! | `//~ error[CODE]: text` | the message itself, with the number of the error or the name of the warning |
//! | `//~ at: text` | the program: the whole text that the message points at |
//! | `//~ label: text` | the words below that text |
//! | `//~ note: text` | a note that follows |

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// The compiler of this test, and its arguments.
const COMPILER: &[&str] = consort_compiler::compiler!();

/// The arguments that say where libraries are, each followed by its value.
const LIBRARIES: [&str; 3] = ["-L", "--extern", "--target"];

/// Names that programs cannot use. The first message about a mistake does not contain them.
const PRIVATE: [&str; 6] = ["Makes<", "With<", "Combine<", "Nothing", "AsPod", "ThreadBoundPe"];

/// A message of the compiler, or what a file states about it.
#[derive(Debug, Default)]
struct Message {
    head: String,
    at: String,
    label: String,
    notes: Vec<String>,
}

impl Message {
    /// Reads a line of the compiler. Returns `None` for a summary, which is not about the program.
    fn said(line: &str, program: &str) -> Option<Self> {
        let said: Value = serde_json::from_str(line).expect("a message in JSON");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let spans = of(&said["spans"]);
        let span = spans.iter().find(|span| span["is_primary"] == true)?;
        let place = |end: &str| span[end].as_u64().and_then(|at| usize::try_from(at).ok());
        let (code, level) = (text(&said["code"]["code"]), text(&said["level"]));
        Some(Self {
            head: format!("{level}[{code}]: {}", text(&said["message"])),
            at: program[place("byte_start")?..place("byte_end")?].to_owned(),
            label: text(&span["label"]),
            notes: of(&said["children"]).iter().map(|note| text(&note["message"])).collect(),
        })
    }

    /// Returns what a file states about each message.
    fn stated(program: &str) -> Vec<Self> {
        let mut messages: Vec<Self> = Vec::new();
        for comment in program.lines().filter_map(|line| line.trim().strip_prefix("//~ ")) {
            let (key, text) = comment.split_once(": ").unwrap_or((comment, ""));
            if key.ends_with(']') {
                messages.push(Self { head: comment.to_owned(), ..Self::default() });
                continue;
            }
            let message = messages.last_mut().expect("a message before its parts");
            match key {
                "at" => text.clone_into(&mut message.at),
                "label" => text.clone_into(&mut message.label),
                "note" => message.notes.push(text.to_owned()),
                _ => panic!("unknown part `{key}`: use at, label or note"),
            }
        }
        messages
    }

    /// Returns whether this is what a file states.
    fn is(&self, stated: &Self) -> bool {
        let has_note = |part| self.notes.iter().any(|note| note.contains(part));
        let (code, text) = stated.head.split_once(": ").unwrap_or((&stated.head, ""));
        self.head.strip_prefix(code).is_some_and(|head| head.contains(text))
            && (stated.at.is_empty() || stated.at == self.at)
            && self.label.contains(&stated.label)
            && stated.notes.iter().all(|part| has_note(part.as_str()))
    }

    fn is_public(&self) -> bool {
        !PRIVATE.iter().any(|name| self.head.contains(name) || self.label.contains(name))
    }
}

/// Starts to compile a program with the libraries of this test.
fn compile(path: &Path, options: &[&str]) -> Child {
    let libraries = COMPILER.windows(2).filter(|pair| LIBRARIES.contains(&pair[0]));
    let mut command = Command::new(COMPILER[0]);
    command
        .args(libraries.flatten())
        .args(["--edition", "2024", "--crate-type", "lib", "--check-cfg", "cfg(right)"])
        .args(["--emit", "metadata=-", "--error-format", "json", "-Aunused", "-Wunused_must_use"])
        .args(options)
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().expect("the compiler starts")
}

/// Returns what the compiler said, and whether it succeeded.
fn messages(compiler: Child, program: &str) -> (Vec<Message>, bool) {
    let output = compiler.wait_with_output().expect("the compiler ends");
    let text = String::from_utf8(output.stderr).expect("text");
    let said = text.lines().filter_map(|line| Message::said(line, program));
    let mut said: Vec<_> = said.collect();
    // With some builds of the library, the compiler repeats a message about the same place.
    said.dedup_by(|later, earlier| later.head == earlier.head && later.at == earlier.at);
    (said, output.status.success())
}

/// Returns what is wrong with a file.
fn complaints(path: &Path) -> Vec<String> {
    let program = fs::read_to_string(path).expect("a text");
    let (wrong, right) = (compile(path, &[]), compile(path, &["--cfg", "right"]));
    let (said, _) = messages(wrong, &program);
    let stated = Message::stated(&program);
    let mut complaints = Vec::new();
    let are_stated = said.len() == stated.len()
        && said.iter().zip(&stated).all(|(message, stated)| message.is(stated));
    if said.is_empty() || !are_stated {
        complaints.push(format!("says {said:#?}\ninstead of {stated:#?}"));
    }
    if !said.first().is_none_or(Message::is_public) {
        complaints.push(format!("begins with a private name: {said:#?}"));
    }
    let (said, succeeds) = messages(right, &program);
    if !succeeds || !said.is_empty() {
        complaints.push(format!("does not compile without its mistake: {said:#?}"));
    }
    complaints
}

fn mistakes() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files = fs::read_dir(folder).expect("a folder");
    files.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn each_mistake_gets_its_message() {
    let mut all = Vec::new();
    for path in mistakes() {
        let of_file = complaints(&path).into_iter();
        all.extend(of_file.map(|complaint| format!("{}: {complaint}", path.display())));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
