//! Finds the wisdom of a launch, checks it, and compiles it for its team.
//!
//! | the file was named by | there is no file | the file cannot be used |
//! | --- | --- | --- |
//! | no one: the default path | the model, without a warning | a warning and the model |
//! | `CONSORT_WISDOM` | a warning and the model | a warning and the model |
//! | the program | an error | an error |
//!
//! One process of a job prints the warnings, once for each file. It also warns if another user
//! could have written the file, but uses it, because it is only data.
//!
//! A process reads a file once, and again only after the file has changed. A launch looks for the
//! file once, before its PEs start, so that all PEs make the same decisions.

#![expect(clippy::disallowed_types, reason = "file times")]

use std::{
    error::Error as _,
    fs::{self, File},
    io, mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use consort_fabric::{
    environment::variable,
    files::{self, FileLock},
};
use consort_machine::fork_safe::Mutex;
use consort_tuner::{Arrival, Entry, Table, Wisdom, WisdomError, default_path};

use crate::{Error, Result, algorithms::Algorithms, fabric::Fabric, warn::warn};

/// The origin of the wisdom of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    /// The file that `CONSORT_WISDOM` names, or the one at the default path.
    #[default]
    Default,
    /// The file that the program names.
    Named(PathBuf),
    /// No wisdom: only the model.
    Nothing,
}

/// The environment variable that names the default wisdom.
const VARIABLE: &str = "CONSORT_WISDOM";
/// The reason why nothing is saved for a team that is placed differently from a world.
const OF_PART: &str =
    "there is no wisdom for a team whose placement on processes differs from a world's";

/// How a file was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedBy {
    Nobody,
    Environment,
    Program,
}

/// A file at the time when it was read.
struct Read {
    /// The time of the last modification, and the length.
    stamp: (Option<SystemTime>, u64),
    /// The file's wisdom, or the reason why it cannot be used.
    content: Result<Arc<Wisdom>, String>,
    /// The warnings about it that have not been printed.
    warnings: Vec<String>,
    /// The compiled wisdom, by team size.
    tables: Vec<(u32, Arc<Table>)>,
}

impl Read {
    /// Takes the warnings. The caller prints or drops them. A program that named an unusable file
    /// gets an error instead, and the warnings stay for other launches.
    fn take_warnings(&mut self, by: NamedBy) -> Vec<String> {
        if self.content.is_err() && by == NamedBy::Program {
            return Vec::new();
        }
        mem::take(&mut self.warnings)
    }

    /// Returns the compiled wisdom for teams of `pes` PEs.
    fn table(&self, pes: u32) -> Option<Arc<Table>> {
        let (_, table) = self.tables.iter().find(|(of, _)| *of == pes)?;
        Some(Arc::clone(table))
    }
}

/// A file, and the job for which it was read.
type Key = (PathBuf, Arrival, Fabric, String);

static FILES: Mutex<Vec<(Key, Read)>> = Mutex::new(Vec::new());

/// Returns what was read from a file.
fn find<'f>(files: &'f mut [(Key, Read)], file: &Key) -> Option<&'f mut Read> {
    files.iter_mut().find(|(known, _)| known == file).map(|(_, read)| read)
}

impl Source {
    /// Returns the file for these algorithms, and how it was named; `None` if there is none.
    fn path(&self, algorithms: &Algorithms, arrival: Arrival) -> Option<(PathBuf, NamedBy)> {
        match self {
            Self::Nothing => None,
            Self::Named(path) => Some((path.clone(), NamedBy::Program)),
            // Wisdom is for teams that are placed on processes like a world.
            Self::Default if algorithms.is_of_part() => None,
            // Without a home directory, there is no default path.
            Self::Default => {
                let path = default_path(arrival).ok()?;
                let variable = variable(VARIABLE);
                let by = variable.map_or(NamedBy::Nobody, |_| NamedBy::Environment);
                Some((algorithms.fabric().path_of_wisdom(path), by))
            }
        }
    }

    /// Returns the content of the file; nothing if there is none.
    pub(crate) fn content(&self, algorithms: &Algorithms, arrival: Arrival) -> Vec<u8> {
        let path = self.path(algorithms, arrival);
        path.and_then(|(path, _)| files::read(&path).ok()).unwrap_or_default()
    }

    /// Returns the path of the file, for people.
    pub(crate) fn shown(&self, algorithms: &Algorithms, arrival: Arrival) -> String {
        match self.path(algorithms, arrival) {
            Some((path, _)) if path.exists() => path.display().to_string(),
            Some((path, _)) => format!("none in {}", path.display()),
            None => "none".to_owned(),
        }
    }

    /// Adds entries to the file if it has no measured entry for their queries, or one with another
    /// choice. Returns the number of entries added, or the reason why none can be stored.
    pub(crate) fn keep(
        &self,
        algorithms: &Algorithms,
        arrival: Arrival,
        entries: Vec<Entry>,
    ) -> Result<usize, String> {
        let (path, by) = self.path(algorithms, arrival).ok_or_else(|| match self {
            Self::Nothing => "the job was launched without wisdom",
            _ if algorithms.is_of_part() => OF_PART,
            _ => "no home directory to keep wisdom in: set CONSORT_WISDOM to a file",
        })?;
        if algorithms.is_of_part() {
            return Err(OF_PART.to_owned()); // a named file is not for such teams either
        }
        let identity = algorithms.identity().clone().with(arrival);
        let _alone = lock_folder_of(&path);
        let mut wisdom = match Wisdom::load_to_extend(&path, &identity) {
            Ok(wisdom) => wisdom,
            Err(WisdomError::NotFound { .. }) if by != NamedBy::Program => Wisdom::new(identity),
            Err(error) => return Err(reason(&error, algorithms.fabric())),
        };
        let mut kept = 0;
        for entry in entries {
            let is_known = wisdom
                .entry(&entry.query)
                .is_some_and(|own| own.is_measured() && own.choice == entry.choice);
            if !is_known {
                wisdom.insert(entry);
                kept += 1;
            }
        }
        if kept > 0 {
            wisdom.save(&path).map_err(|error| reason(&error, algorithms.fabric()))?;
        }
        Ok(kept)
    }

    /// Returns the wisdom for teams of `pes` PEs with this arrival at calls; `None` if there is
    /// none. Prints warnings about it if this process `warns` for the job.
    ///
    /// # Errors
    /// When the program named a file and it cannot be used.
    pub(crate) fn table(
        &self,
        algorithms: &'static Algorithms,
        pes: u32,
        arrival: Arrival,
        warns: bool,
    ) -> Result<Option<Arc<Table>>> {
        let Some((path, by)) = self.path(algorithms, arrival) else { return Ok(None) };
        let stamp = match fs::metadata(&path) {
            Ok(metadata) => (metadata.modified().ok(), metadata.len()),
            // A home such as /dev/null has no files either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) && by == NamedBy::Nobody =>
            {
                return Ok(None);
            }
            Err(_) => (None, 0),
        };
        let file = (path.clone(), arrival, algorithms.fabric(), algorithms.shown_own());
        let known = || {
            let mut files = FILES.lock();
            let read = find(&mut files, &file).filter(|read| read.stamp == stamp)?;
            let warnings = read.take_warnings(by);
            Some((read.content.clone(), read.table(pes), warnings))
        };
        // Forks wait for the lock, so release it while files are read, tables are built, and a
        // subscriber handles warnings.
        let (content, table, warnings) = known().unwrap_or_else(|| {
            let mut read = read(algorithms, &path, stamp, arrival);
            let (warnings, content) = (read.take_warnings(by), read.content.clone());
            let mut files = FILES.lock();
            match find(&mut files, &file) {
                Some(known) => *known = read,
                None => files.push((file.clone(), read)),
            }
            (content, None, warnings)
        });
        if let Err(message) = &content
            && by == NamedBy::Program
        {
            return Err(Error::Wisdom(message.clone()));
        }
        for warning in warnings.iter().filter(|_| warns) {
            warn(warning);
        }
        let Ok(wisdom) = content else { return Ok(None) };
        if table.is_some() {
            return Ok(table);
        }
        let table = Arc::new(Table::new(&wisdom, algorithms, pes, algorithms.cores()));
        let mut files = FILES.lock();
        if let Some(read) = find(&mut files, &file).filter(|read| read.stamp == stamp)
            && read.table(pes).is_none()
        {
            read.tables.push((pes, Arc::clone(&table)));
        }
        Ok(Some(table))
    }
}

fn read(
    algorithms: &Algorithms,
    path: &Path,
    stamp: (Option<SystemTime>, u64),
    arrival: Arrival,
) -> Read {
    let identity = algorithms.identity().clone().with(arrival);
    let content =
        Wisdom::load(path, &identity).map_err(|error| reason(&error, algorithms.fabric()));
    let content = content.map(Arc::new);
    let mut warnings = Vec::new();
    match &content {
        Ok(wisdom) => {
            let (outdated, shown) = (wisdom.outdated(), path.display());
            if outdated > 0 {
                warnings.push(format!(
                    "{shown}: {outdated} of its entries are not used, because their algorithms \
                     have changed: run `consort tune` again"
                ));
            }
            if let Err(why) = files::resolve_trusted(path) {
                warnings.push(format!("{shown}: another user could have written it: {why}"));
            }
        }
        Err(message) => warnings.push(format!("wisdom is not used: {message}")),
    }
    Read { stamp, content, warnings, tables: Vec::new() }
}

/// Excludes other writers of the wisdom at `path`, in this process or another. `None` if the
/// folder cannot be opened.
fn lock_folder_of(path: &Path) -> Option<FileLock> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    // A folder, which is locked and not read, by the user of this process.
    files::create_folders(directory).ok()?;
    Some(FileLock::new(File::open(directory).ok()?))
}

/// Returns the message of an error on one line, with the system's reason or a remedy.
fn reason(error: &WisdomError, fabric: Fabric) -> String {
    match (error, error.source()) {
        (WisdomError::NotFound { path }, _) if fabric != Fabric::Threads => {
            format!("{} does not exist: `consort tune --fabric {fabric}` makes it", path.display())
        }
        (WisdomError::NotWisdom { .. }, _) => {
            format!("{error}; move it away and run `consort tune`")
        }
        (_, Some(source)) => format!("{error}: {source}"),
        (_, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
