//! The text of wisdom: TOML with a `[wisdom]` head, then one `[[entry]]` for each query.
//!
//! The head counts the entries, and each entry ends with a mandatory key, so a truncated file is
//! detected. Unknown keys, values out of range, and margins or confidences that contradict the
//! times are errors too, each with its line.

use std::fmt;

use super::{Entry, Identity, Revisions, RunnerUp, Wisdom};
use crate::{
    text::{read_query, write_query},
    toml::{self, TextValue, TomlTable, Writer},
};

/// The version of the file format that this library reads and writes.
pub const FORMAT: u64 = 3;
/// The largest difference between a margin in the text and the margin that its times give.
const MARGIN_TOLERANCE: f64 = 1e-3;

const PREFACE: &str = "\
# What tuning has taught Consort about this machine: the fastest algorithm for each query.
# Written by `consort tune`; `consort explain` says how an entry was won.

";

/// The reason why a text is not wisdom of this format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    /// An error at a line, counted from 1.
    Text { line: usize, message: String },
    /// The text is in another format.
    Format { theirs: u64, ours: u64 },
}

impl From<toml::Error> for FormatError {
    fn from(error: toml::Error) -> Self {
        let toml::Error { line, message } = error;
        Self::Text { line, message }
    }
}

const HEAD_KEYS: &[&str] = &["format", "library", "machine", "arrival", "entries", "algorithms"];

/// The keys of an entry. The last one is mandatory.
const ENTRY_KEYS: &[&str] = &[
    "collective",
    "sync",
    "pes",
    "bytes",
    "operator",
    "symmetric",
    "choice",
    "median_ns",
    "ci95_ns",
    "runner_up",
    "runner_up_ns",
    "margin",
    "contenders",
    "class",
    "undisturbed",
    "busy",
    "confidence",
    "rigour",
];

fn write_entry(entry: &Entry, file: &mut Writer) {
    file.table_of("entry");
    write_query(&entry.query, file);
    file.string("choice", &entry.choice);
    file.float("median_ns", entry.median_ns);
    if let Some((low, high)) = entry.ci95_ns {
        file.floats("ci95_ns", [low, high]);
    }
    if let Some(second) = &entry.runner_up {
        file.string("runner_up", &second.candidate);
        file.float("runner_up_ns", second.median_ns);
    }
    if let Some(margin) = entry.margin() {
        file.float("margin", (margin * 1e4).round() / 1e4);
    }
    if !entry.contenders.is_empty() {
        file.strings("contenders", &entry.contenders);
    }
    if let Some(class) = entry.class {
        file.string("class", class);
    }
    if entry.undisturbed < 1.0 {
        file.float("undisturbed", entry.undisturbed);
    }
    if let Some(busy) = &entry.busy {
        file.string("busy", busy);
    }
    file.string("confidence", entry.confidence);
    file.string("rigour", entry.rigour);
}

fn read_entry(table: &TomlTable) -> Result<Entry, toml::Error> {
    table.only(ENTRY_KEYS)?;
    let query = read_query(table)?;
    let TextValue(choice) = table.get("choice")?;
    let median_ns = table.get("median_ns")?;
    let ci95_ns = table.find("ci95_ns")?;
    let (second, second_ns) = (table.find("runner_up")?, table.find("runner_up_ns")?);
    let stated_margin = table.find::<f64>("margin")?;
    let contenders: Vec<TextValue<_>> = table.find("contenders")?.unwrap_or_default();
    let class = table.find("class")?.map(|TextValue(class)| class);
    let undisturbed = table.find("undisturbed")?.unwrap_or(1.0);
    let busy = table.find("busy")?;
    let TextValue(confidence) = table.get("confidence")?;
    let TextValue(rigour) = table.get("rigour")?;

    let flawed =
        |flaw| toml::Error { line: table.line(), message: format!("in this entry: {flaw}") };
    let runner_up = match (second, second_ns, stated_margin) {
        (Some(TextValue(candidate)), Some(median_ns), Some(_)) => {
            Some(RunnerUp { candidate, median_ns })
        }
        (None, None, None) => None,
        _ => return Err(flawed("runner_up, runner_up_ns and margin go together")),
    };
    let contenders = contenders.into_iter().map(|TextValue(one)| one).collect();
    let entry = Entry {
        query,
        choice,
        median_ns,
        ci95_ns,
        runner_up,
        contenders,
        class,
        confidence,
        rigour,
        undisturbed,
        busy,
    };
    if let Some(flaw) = entry.flaw() {
        return Err(flawed(flaw));
    }
    let agrees = match (entry.margin(), stated_margin) {
        (Some(derived), Some(stated)) => {
            (derived - stated).abs() <= MARGIN_TOLERANCE * (1.0 + derived)
        }
        _ => true,
    };
    if agrees { Ok(entry) } else { Err(flawed("margin must be runner_up_ns / median_ns - 1")) }
}

impl fmt::Display for Wisdom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { library, machine, arrival, revisions } = self.identity();
        let mut file = Writer::default();
        file.table(&["wisdom"]);
        file.plain("format", FORMAT);
        file.string("library", library);
        file.string("machine", machine);
        file.string("arrival", arrival);
        file.plain("entries", self.entries().len());
        // The revisions of the algorithms that the entries name.
        file.table(&["wisdom", "algorithms"]);
        for (name, revision) in revisions.only(&self.algorithms()) {
            file.plain(&name, revision);
        }
        self.entries().for_each(|entry| write_entry(entry, &mut file));
        f.write_str(PREFACE)?;
        f.write_str(&file.into_text())
    }
}

impl Wisdom {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let file = toml::read(bytes)?;
        let head = file.table("wisdom")?;
        // The format decides whether the rest can be read.
        let format = head.get("format")?;
        if format != FORMAT {
            return Err(FormatError::Format { theirs: format, ours: FORMAT });
        }
        file.only(&["wisdom", "entry"])?;
        head.only(HEAD_KEYS)?;
        let (library, machine) = (head.get("library")?, head.get("machine")?);
        let TextValue(arrival) = head.get("arrival")?;
        let revisions = Revisions::named(head.table("algorithms")?.values()?);
        let identity = Identity { machine, library, revisions, arrival };
        let (stated, rows) = (head.get::<usize>("entries")?, file.tables("entry")?);
        if stated != rows.len() {
            let found = rows.len();
            let message = format!("truncated: expected {stated} entries, found {found}");
            return Err(FormatError::Text { line: head.line(), message });
        }
        let mut wisdom = Self::new(identity);
        for row in rows {
            let entry = read_entry(row)?;
            if wisdom.entry(&entry.query).is_some() {
                let message = "a second entry for the same query".to_owned();
                return Err(FormatError::Text { line: row.line(), message });
            }
            wisdom.insert(entry);
        }
        Ok(wisdom)
    }
}
