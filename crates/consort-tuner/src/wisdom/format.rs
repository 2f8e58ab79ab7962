//! The text of wisdom: TOML with a `[wisdom]` head, then one `[[entry]]` for each query.
//!
//! The head counts the entries, and each entry ends with a mandatory key, so a truncated file is
//! noticed. Unknown keys, values out of range, and margins or confidences that contradict the times
//! are errors too, each with its line.

use std::{collections::BTreeMap, fmt};

use consort_fabric::{Candidate, Collective, OperatorClass, Query, SyncModes};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Entry, Identity, Revisions, RunnerUp, Wisdom};
use crate::{
    Arrival, Confidence, Rigour, TransferClass,
    text::{Text, line_at},
};

/// The version of the file format that this library reads and writes.
pub const FORMAT: u64 = 3;
/// The largest difference of a margin in the text from the one that its times give.
const MARGIN_TOLERANCE: f64 = 1e-3;

const PREFACE: &str = "\
# What tuning has taught Consort about this machine: the fastest algorithm for each query.
# Written by `consort tune`; `consort explain` says how an entry was won.

";

/// The reason why a text is not wisdom of this format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// An error at a line, counted from 1.
    Text { line: usize, message: String },
    /// The text is in another format.
    Format { theirs: u64, ours: u64 },
}

/// The part of a file that is read first: its format decides whether the rest can be read.
#[derive(Deserialize)]
struct FirstSight {
    wisdom: FirstSightHead,
}

#[derive(Deserialize)]
struct FirstSightHead {
    format: u64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u64,
    library: String,
    machine: String,
    arrival: Text<Arrival>,
    entries: usize,
    /// The revisions of the algorithms that the entries name.
    algorithms: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    wisdom: Spanned<Head>,
    #[serde(default)]
    entry: Vec<Spanned<Row>>,
}

#[derive(Serialize)]
struct WrittenFile {
    wisdom: Head,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entry: Vec<Row>,
}

/// An entry in the text. Its last key is mandatory.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    collective: Text<Collective>,
    sync: Text<SyncModes>,
    pes: u32,
    bytes: u64,
    operator: Text<OperatorClass>,
    symmetric: bool,
    choice: Text<Candidate>,
    median_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ci95_ns: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up: Option<Text<Candidate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner_up_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contenders: Vec<Text<Candidate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Text<TransferClass>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<String>,
    confidence: Text<Confidence>,
    rigour: Text<Rigour>,
}

impl From<&Entry> for Row {
    fn from(entry: &Entry) -> Self {
        let Query { collective, sync, pes, bytes, operator, symmetric } = entry.query;
        Self {
            collective: Text(collective),
            sync: Text(sync),
            pes,
            bytes,
            operator: Text(operator),
            symmetric,
            choice: Text(entry.choice.clone()),
            median_ns: entry.median_ns,
            ci95_ns: entry.ci95_ns,
            runner_up: entry.runner_up.as_ref().map(|second| Text(second.candidate.clone())),
            runner_up_ns: entry.runner_up.as_ref().map(|second| second.median_ns),
            margin: entry.margin().map(|margin| (margin * 1e4).round() / 1e4),
            contenders: entry.contenders.iter().cloned().map(Text).collect(),
            class: entry.class.map(Text),
            busy: entry.busy.clone(),
            confidence: Text(entry.confidence),
            rigour: Text(entry.rigour),
        }
    }
}

impl Row {
    fn into_entry(self) -> Result<Entry, &'static str> {
        let query = Query {
            collective: self.collective.0,
            sync: self.sync.0,
            pes: self.pes,
            bytes: self.bytes,
            operator: self.operator.0,
            symmetric: self.symmetric,
        };
        let runner_up = match (self.runner_up, self.runner_up_ns, self.margin) {
            (Some(Text(candidate)), Some(median_ns), Some(_)) => {
                Some(RunnerUp { candidate, median_ns })
            }
            (None, None, None) => None,
            _ => return Err("runner_up, runner_up_ns and margin go together"),
        };
        let entry = Entry {
            query,
            choice: self.choice.0,
            median_ns: self.median_ns,
            ci95_ns: self.ci95_ns,
            runner_up,
            contenders: self.contenders.into_iter().map(|one| one.0).collect(),
            class: self.class.map(|class| class.0),
            confidence: self.confidence.0,
            rigour: self.rigour.0,
            busy: self.busy,
        };
        if let Some(flaw) = entry.flaw() {
            return Err(flaw);
        }
        let agrees = match (entry.margin(), self.margin) {
            (Some(derived), Some(stated)) => {
                (derived - stated).abs() <= MARGIN_TOLERANCE * (1.0 + derived)
            }
            _ => true,
        };
        if agrees { Ok(entry) } else { Err("margin must be runner_up_ns / median_ns - 1") }
    }
}

impl fmt::Display for Wisdom {
    /// Writes the text of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity();
        let file = WrittenFile {
            wisdom: Head {
                format: FORMAT,
                library: identity.library.clone(),
                machine: identity.machine.clone(),
                arrival: Text(identity.arrival),
                entries: self.entries().len(),
                algorithms: identity.revisions.only(&self.algorithms()),
            },
            entry: self.entries().map(Row::from).collect(),
        };
        f.write_str(PREFACE)?;
        f.write_str(&toml::to_string(&file).map_err(|_| fmt::Error)?)
    }
}

impl Wisdom {
    /// Parses the content of a file.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Flaw> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = line_at(bytes, error.valid_up_to());
            Flaw::Text { line, message: "expected text in UTF-8".to_owned() }
        })?;
        let at = |offset, message: String| Flaw::Text { line: line_at(bytes, offset), message };
        let broken = |error: toml::de::Error| {
            let offset = error.span().map_or(bytes.len(), |span| span.start);
            at(offset, error.message().to_owned())
        };

        let FirstSightHead { format } = toml::from_str::<FirstSight>(text).map_err(broken)?.wisdom;
        if format != FORMAT {
            return Err(Flaw::Format { theirs: format, ours: FORMAT });
        }
        let file: ReadFile = toml::from_str(text).map_err(broken)?;
        let head_offset = file.wisdom.span().start;
        let head = file.wisdom.into_inner();
        if head.entries != file.entry.len() {
            let (stated, found) = (head.entries, file.entry.len());
            let message = format!("truncated? {stated} entries are announced, {found} found");
            return Err(at(head_offset, message));
        }
        let Head { machine, library, arrival: Text(arrival), algorithms, .. } = head;
        let revisions = Revisions::named(algorithms);
        let identity = Identity { machine, library, revisions, arrival };
        let mut wisdom = Self::new(identity);
        for row in file.entry {
            let offset = row.span().start;
            let entry = row
                .into_inner()
                .into_entry()
                .map_err(|flaw| at(offset, format!("in this entry: {flaw}")))?;
            if wisdom.entry(&entry.query).is_some() {
                return Err(at(offset, "a second entry for the same query".to_owned()));
            }
            wisdom.insert(entry);
        }
        Ok(wisdom)
    }
}
