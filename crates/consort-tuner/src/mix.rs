//! The mix of collectives that programs call: programs record it, and the tuner tunes for it.
//!
//! A file is TOML like wisdom, with a table `[[calls]]` for each kind of call. Jobs append their
//! tables. So each table has the version of the format, and ends with a mandatory key; if the key
//! is missing, the file was cut off there. Sizes are the powers of two for which wisdom has
//! entries.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use consort_fabric::{Collective, OperatorClass, Query, files};

use crate::{
    query::{MAX_BYTES, canonical},
    text::{read_query, write_query},
    toml::{self, Writer},
};

/// The version of the tables that this library reads and writes.
const FORMAT: u64 = 1;
/// The beginning of a file, after empty lines, unless it was edited.
const BEGINNING: &[u8] = b"[[calls]]\nformat = 1\n";
const LEAST_BYTES: u64 = 8;
/// The largest number of calls that the file can hold.
const MOST_CALLS: u64 = i64::MAX as u64;

/// How often each query was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    calls: BTreeMap<Query, u64>,
}

/// The reason why a file of recorded calls cannot be read or written.
#[derive(Debug)]
pub enum MixError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The file cannot be written.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// The path is a folder, a pipe or a device.
    Irregular {
        /// The path.
        path: PathBuf,
    },
    /// No calls are recorded in the file.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A table is of another format.
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The format of the table.
        theirs: u64,
    },
    /// The file contains something other than recorded calls, or only a part of a record.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error, and what was expected.
        message: String,
    },
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => {
                write!(f, "cannot read {}: {reason}", path.display())
            }
            Self::Unwritable { path, reason } => {
                write!(f, "cannot write {}: {reason}", path.display())
            }
            Self::Irregular { path } => write!(
                f,
                "{} is not a regular file: name a file that does not exist yet, or one of recorded \
                 calls",
                path.display()
            ),
            Self::Empty { path } => {
                let path = path.display();
                write!(
                    f,
                    "{path} has no recorded calls: run a program with CONSORT_RECORD={path} first"
                )
            }
            Self::OtherFormat { path, line, theirs } => write!(
                f,
                "{}:{line}: calls recorded in format {theirs}, and this version reads format \
                 {FORMAT}: record them again, into another file",
                path.display()
            ),
            Self::Damaged { path, line, message } => write!(
                f,
                "{}:{line}: not a file of recorded calls: {message}; remove it, or record into \
                 another file",
                path.display()
            ),
        }
    }
}

impl Error for MixError {}

/// The keys of a table. The last one is mandatory.
const KEYS: &[&str] =
    &["format", "collective", "sync", "pes", "bytes", "operator", "symmetric", "calls"];

impl Mix {
    /// Returns the query under which calls like `query` are recorded: canonical, with the nearest
    /// power of two on a logarithmic scale as its size, at least 8 bytes. For calls of vector
    /// variants, the lengths are unknown and recorded as 0.
    #[must_use]
    pub fn recorded_as(query: &Query) -> Query {
        let query = canonical(query);
        if query.collective == Collective::Barrier || query.collective.is_vector() {
            return Query { bytes: 0, ..query };
        }
        let bytes = query.bytes.clamp(LEAST_BYTES, MAX_BYTES);
        let below = 1 << bytes.ilog2();
        // Above the geometric mean of the two powers, the upper one is nearer.
        let is_nearer_above = u128::from(bytes).pow(2) > 2 * u128::from(below).pow(2);
        Query { bytes: if is_nearer_above { 2 * below } else { below }, ..query }
    }

    /// Adds calls.
    pub fn add(&mut self, query: &Query, calls: u64) {
        let all = self.calls.entry(Self::recorded_as(query)).or_default();
        *all = all.saturating_add(calls).min(MOST_CALLS);
    }

    /// Adds the calls of another mix.
    pub fn merge(&mut self, other: &Self) {
        other.calls().for_each(|(query, calls)| self.add(&query, calls));
    }

    /// Returns the queries and how often each was called.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = (Query, u64)> + '_ {
        self.calls.iter().map(|(query, calls)| (*query, *calls))
    }

    /// Returns the same calls under the queries that selection uses: wisdom of commutative
    /// operators serves all operators. Vector variants are left out: PEs know different lengths, so
    /// their queries have none.
    #[must_use]
    pub fn tunable(&self) -> Self {
        let mut tunable = Self::default();
        for (query, calls) in self.calls().filter(|(query, _)| !query.collective.is_vector()) {
            tunable.add(&Query { operator: OperatorClass::Commutative, ..query }, calls);
        }
        tunable
    }

    /// Opens `path` for appending, and creates it if necessary. A file with other content is left
    /// unchanged.
    ///
    /// # Errors
    /// If the file cannot be written, is not a regular file, or contains something other than
    /// complete recorded calls of this format.
    pub fn open(path: &Path) -> Result<File, MixError> {
        // Checked before opening, because opening a pipe waits for its other end.
        match fs::metadata(path) {
            Ok(file) if !file.is_file() => {
                return Err(MixError::Irregular { path: path.to_owned() });
            }
            Ok(file) if file.len() > 0 && !begins_as_written(path) => match Self::load(path) {
                Ok(_) | Err(MixError::Empty { .. }) => {}
                Err(error) => return Err(error),
            },
            // If the metadata is unavailable, opening the file reports the reason.
            Ok(_) | Err(_) => {}
        }
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|reason| MixError::Unwritable { path: path.to_owned(), reason })
    }

    /// Appends all calls to the file at `path` in one write, so that several jobs may append to it.
    ///
    /// # Errors
    /// As [`Mix::open`].
    pub fn append(&self, path: &Path) -> Result<(), MixError> {
        let unwritable = |reason| MixError::Unwritable { path: path.to_owned(), reason };
        let text = self.text();
        // The last line of the file may be unterminated.
        Self::open(path)?.write_all(format!("\n{text}").as_bytes()).map_err(unwritable)
    }

    fn text(&self) -> String {
        let mut file = Writer::default();
        for (query, calls) in self.calls() {
            file.table_of("calls");
            file.plain("format", FORMAT);
            write_query(&query, &mut file);
            file.plain("calls", calls);
        }
        file.into_text()
    }

    /// Reads the calls that jobs have appended to the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, has no calls, is damaged, or has calls in another format.
    pub fn load(path: &Path) -> Result<Self, MixError> {
        let path = path.to_owned();
        let text = match files::read(&path) {
            Ok(bytes) => bytes,
            Err(reason) => return Err(MixError::Unreadable { path, reason }),
        };
        match Self::parse(&text) {
            Ok(mix) if mix.calls.is_empty() => Err(MixError::Empty { path }),
            Ok(mix) => Ok(mix),
            Err((line, ParseError::Format(theirs))) => {
                Err(MixError::OtherFormat { path, line, theirs })
            }
            Err((line, ParseError::Text(message))) => {
                Err(MixError::Damaged { path, line, message })
            }
        }
    }

    /// Returns the calls in the content of a file, or the line and the reason of an error.
    fn parse(bytes: &[u8]) -> Result<Self, (usize, ParseError)> {
        let file = toml::read(bytes)?;
        let tables = file.tables("calls")?;
        // The format decides whether the rest can be read.
        for table in tables {
            let format = table.get("format")?;
            if format != FORMAT {
                return Err((table.line(), ParseError::Format(format)));
            }
        }
        file.only(&["calls"])?;
        let mut mix = Self::default();
        for table in tables {
            table.only(KEYS)?;
            let query = read_query(table)?;
            let calls = table.get("calls")?;
            if query.pes == 0 || calls == 0 {
                let expected = "pes and calls must be at least 1".to_owned();
                return Err((table.line(), ParseError::Text(expected)));
            }
            mix.add(&query, calls);
        }
        Ok(mix)
    }
}

/// Returns whether a file begins with calls of this format, so that a long one need not be read.
fn begins_as_written(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = files::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && head.trim_ascii_start().starts_with(BEGINNING)
}

/// The reason why a file cannot be read.
enum ParseError {
    Format(u64),
    Text(String),
}

impl From<toml::Error> for (usize, ParseError) {
    fn from(error: toml::Error) -> Self {
        (error.line, ParseError::Text(error.message))
    }
}
