//! The wisdom of a launch: found, checked, and compiled for its team.
//!
//! | the file was named by | there is no file | the file cannot be used |
//! | --- | --- | --- |
//! | nobody: the default path | the model, in silence | a warning, once, and the model |
//! | the program | an error | an error |
//!
//! A process reads a file once, and again only after it has changed. A launch looks for it once,
//! before its PEs start, so that all of them decide alike.

use std::{
    collections::BTreeMap,
    error::Error as _,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::SystemTime,
};

use consort_tuner::{Arrival, Entry, Table, Wisdom, WisdomError, default_path, read_file};

use crate::{Algorithms, Error, Result, fabric::Fabric};

/// The origin of the wisdom of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    /// The file that `CONSORT_WISDOM` names, or the one at the default path.
    #[default]
    Default,
    /// The file that the program names.
    Named(PathBuf),
    /// No wisdom: the model alone.
    Nothing,
}

/// The reason why nothing is kept of a team that lies on processes in another way than a world.
const OF_PART: &str = "wisdom is of teams that lie on the processes as a world does";

/// A file as it was when it was read.
struct Read {
    /// Its time of modification and its length.
    stamp: (Option<SystemTime>, u64),
    /// The wisdom in it, or the reason why it cannot be used.
    content: Result<Wisdom, String>,
    is_reported: bool,
    /// The compiled wisdom, by team size.
    tables: BTreeMap<u32, Arc<Table>>,
}

/// Files that were read, for whom. Valgrind reports what a static `HashMap` holds as lost, since its
/// pointer leads into the middle of its memory.
type Files = BTreeMap<(PathBuf, Arrival, Fabric, String), Read>;

static FILES: LazyLock<Mutex<Files>> = LazyLock::new(Mutex::default);

impl Source {
    /// The file for these algorithms, and whether the program names it; `None` if there is none.
    fn path(&self, algorithms: &Algorithms, arrival: Arrival) -> Option<(PathBuf, bool)> {
        match self {
            Self::Nothing => None,
            Self::Named(path) => Some((path.clone(), true)),
            // It is of teams that lie on processes as a world does.
            Self::Default if algorithms.is_of_part() => None,
            // Without a home directory there is no default path.
            Self::Default => {
                let path = default_path(arrival).ok()?;
                Some((algorithms.fabric().path_of_wisdom(path), false))
            }
        }
    }

    /// What is in the file; nothing if there is none.
    pub(crate) fn content(&self, algorithms: &Algorithms, arrival: Arrival) -> Vec<u8> {
        let path = self.path(algorithms, arrival);
        path.and_then(|(path, _)| read_file(&path).ok()).unwrap_or_default()
    }

    /// Where that is, for people.
    pub(crate) fn shown(&self, algorithms: &Algorithms, arrival: Arrival) -> String {
        match self.path(algorithms, arrival) {
            Some((path, _)) if path.exists() => path.display().to_string(),
            Some((path, _)) => format!("none in {}", path.display()),
            None => "none".to_owned(),
        }
    }

    /// Adds entries to the file, where it has none for their queries that is measured, or one with
    /// another choice. Returns how many, or the reason why none can be kept.
    pub(crate) fn keep(
        &self,
        algorithms: &Algorithms,
        arrival: Arrival,
        entries: Vec<Entry>,
    ) -> Result<usize, String> {
        let (path, is_named) = self.path(algorithms, arrival).ok_or_else(|| match self {
            Self::Nothing => "the job was launched without wisdom",
            _ if algorithms.is_of_part() => OF_PART,
            _ => "no home directory to keep wisdom in: set CONSORT_WISDOM to a file",
        })?;
        if algorithms.is_of_part() {
            return Err(OF_PART.to_owned()); // a file that is named is not of such teams either
        }
        let identity = algorithms.identity().clone().with(arrival);
        let _alone = lock_beside(&path);
        let mut wisdom = match Wisdom::load_to_extend(&path, &identity) {
            Ok(wisdom) => wisdom,
            Err(WisdomError::NotFound { .. }) if !is_named => Wisdom::new(identity),
            Err(error) => return Err(reason(&error)),
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
            wisdom.save(&path).map_err(|error| reason(&error))?;
        }
        Ok(kept)
    }

    /// The wisdom for teams of `pes` PEs with this arrival at calls; `None` if there is none.
    ///
    /// # Errors
    /// If the program named a file and it cannot be used.
    pub(crate) fn table(
        &self,
        algorithms: &'static Algorithms,
        pes: u32,
        arrival: Arrival,
    ) -> Result<Option<Arc<Table>>> {
        let Some((path, is_named)) = self.path(algorithms, arrival) else { return Ok(None) };
        let stamp = match fs::metadata(&path) {
            Ok(metadata) => (metadata.modified().ok(), metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => return Ok(None),
            Err(_) => (None, 0),
        };
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = (path.clone(), arrival, algorithms.fabric(), algorithms.shown_own());
        if files.get(&file).is_none_or(|read| read.stamp != stamp) {
            files.insert(file.clone(), read(algorithms, &path, stamp, arrival));
        }
        let Some(read) = files.get_mut(&file) else { return Ok(None) };
        match &read.content {
            Ok(wisdom) => {
                let compile = || Table::new(wisdom, algorithms, pes, algorithms.cores());
                let table = read.tables.entry(pes).or_insert_with(|| Arc::new(compile()));
                Ok(Some(Arc::clone(table)))
            }
            Err(message) if is_named => Err(Error::Wisdom(message.clone())),
            Err(message) => {
                if !read.is_reported {
                    tracing::warn!("wisdom is not used: {message}");
                    read.is_reported = true;
                }
                Ok(None)
            }
        }
    }
}

fn read(
    algorithms: &Algorithms,
    path: &Path,
    stamp: (Option<SystemTime>, u64),
    arrival: Arrival,
) -> Read {
    let identity = algorithms.identity().clone().with(arrival);
    let content = Wisdom::load(path, &identity).map_err(|error| reason(&error));
    if let Ok(wisdom) = &content
        && wisdom.outdated() > 0
    {
        let (outdated, path) = (wisdom.outdated(), path.display());
        tracing::warn!(
            "{path}: {outdated} of its entries are of algorithms that have changed and are not \
             used: run `consort tune` again"
        );
    }
    Read { stamp, content, is_reported: false, tables: BTreeMap::new() }
}

/// Keeps others out who would add to the wisdom at `path` meanwhile, in this process or another.
/// `None` where the file system has no locks.
fn lock_beside(path: &Path) -> Option<File> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory).ok()?;
    let directory = File::open(directory).ok()?;
    directory.lock().ok()?;
    Some(directory)
}

/// The message of an error on one line, with the system's reason or with a remedy.
fn reason(error: &WisdomError) -> String {
    match (error, error.source()) {
        (WisdomError::NotWisdom { .. }, _) => {
            format!("{error}; move it away and run `consort tune`")
        }
        (_, Some(source)) => format!("{error}: {source}"),
        (_, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChosenBy, Pes, ProcessShape};
    use consort_fabric::{CallSpec, Candidate, Collective, Nodes, OperatorClass, Query, SyncModes};
    use consort_tuner::{Catalog, Entry, Identity};

    /// A barrier that the model would not choose for two PEs on two cores or more.
    const UNLIKELY: &str = "central";

    fn save(path: &Path, barrier: &str) {
        let mut wisdom = Wisdom::new(Algorithms::here().identity().clone());
        let query = Query {
            collective: Collective::Barrier,
            sync: SyncModes::STRICT,
            pes: 2,
            bytes: 0,
            operator: OperatorClass::Commutative,
            symmetric: true,
        };
        wisdom.insert(Entry::alone(query, Candidate::new(barrier), 10.0));
        wisdom.save(path).unwrap();
    }

    fn chosen(path: &Path) -> Result<(Candidate, ChosenBy)> {
        let pes = Pes::threads(2).wisdom(path);
        let all = pes.run(|pe| {
            let world = pe.world();
            world.barrier()?;
            assert_eq!(
                world.served_by(Collective::Barrier),
                Some(world.choice(Collective::Barrier, 0).0)
            );
            Ok(world.choice(Collective::Barrier, 0))
        })?;
        assert_eq!(all[0].1, all[1].1);
        Ok(all[0].1.clone())
    }

    #[test]
    fn a_launch_goes_by_wisdom_and_sees_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wisdom.toml");
        save(&path, UNLIKELY);
        assert_eq!(chosen(&path), Ok((Candidate::new(UNLIKELY), ChosenBy::Wisdom)));
        save(&path, "flat");
        assert_eq!(chosen(&path), Ok((Candidate::new("flat"), ChosenBy::Wisdom)));
    }

    #[test]
    fn wisdom_that_is_named_must_be_there_and_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wisdom.toml");
        let refused = || match chosen(&path) {
            Err(Error::Wisdom(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(refused().contains("does not exist: `consort tune` makes it"));
        fs::write(&path, "[wisdom").unwrap();
        assert!(refused().contains("not wisdom"));
        save(&path, UNLIKELY);
        let text = fs::read_to_string(&path).unwrap();
        let here = &Algorithms::here().identity().machine;
        fs::write(&path, text.replace(here, "Niagara2")).unwrap();
        assert!(refused().contains("made on machine `Niagara2`"));
    }

    /// Checks each entry's choice for the entry's own size and for sizes many times as large. It
    /// tries the names of all algorithms, since a person may write any of them into a file.
    #[test]
    fn wisdom_of_terabytes_is_gone_by_where_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let algorithms = Algorithms::here();
        let mut asked = 0;
        for (collective, pes) in Collective::EVERY.into_iter().flat_map(|one| [(one, 4), (one, 64)])
        {
            let is_barrier = collective == Collective::Barrier;
            let of = |bytes| Query {
                collective,
                sync: SyncModes::STRICT,
                pes,
                bytes: if is_barrier { 0 } else { bytes },
                operator: OperatorClass::Commutative,
                symmetric: is_barrier,
            };
            let query = of(1 << 40);
            for candidate in algorithms.candidates(&of(1 << 12)) {
                let mut wisdom = Wisdom::new(algorithms.identity().clone());
                wisdom.insert(Entry::alone(query, candidate.clone(), 1e9));
                asked += 1;
                let path = folder.path().join(format!("{asked}.toml"));
                wisdom.save(&path).unwrap();
                let table =
                    Source::Named(path).table(algorithms, pes, Arrival::Together).unwrap().unwrap();
                let expected =
                    algorithms.serves(&CallSpec::from(&query), &candidate).then_some(&candidate);
                assert_eq!(table.look_up(&query), expected, "{query:?}");
            }
        }
        assert!(asked > 100, "{asked} entries");
    }

    fn found(pes: u32, bytes: u64, choice: &str) -> Entry {
        let query = Query {
            collective: Collective::Broadcast,
            sync: SyncModes::MINE,
            pes,
            bytes,
            operator: OperatorClass::Commutative,
            symmetric: false,
        };
        Entry::alone(query, Candidate::new(choice), 10.0)
    }

    /// Teams that save at the same time lose nothing of each other.
    #[test]
    fn what_teams_keep_at_once_is_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wisdom.toml");
        save(&path, UNLIKELY);
        let source = Source::Named(path.clone());
        std::thread::scope(|scope| {
            for team in 0..8 {
                let source = &source;
                scope.spawn(move || {
                    for bytes in 0..8 {
                        let entries = vec![found(3 + team, 1 << bytes, "flat")];
                        let kept = source.keep(Algorithms::here(), Arrival::Together, entries);
                        assert_eq!(kept, Ok(1));
                    }
                });
            }
        });
        let wisdom = Wisdom::load(&path, Algorithms::here().identity()).unwrap();
        assert_eq!(wisdom.entries().len(), 1 + 8 * 8);
    }

    /// A team on processes in another way has nothing to say to wisdom of worlds, whoever names it.
    #[test]
    fn nothing_is_kept_of_parts_of_a_world_that_lie_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wisdom.toml");
        let shape = ProcessShape { pes_each: 2, in_turn: false };
        let world = Algorithms::of(Fabric::Mpi(shape));
        Wisdom::new(world.identity().clone()).save(&path).unwrap();
        let source = Source::Named(path);
        let keep = |of| source.keep(of, Arrival::Together, vec![found(4, 8, "flat")]);
        assert_eq!(keep(world.on(Nodes::Blocks(1), 4)), Err(OF_PART.to_owned()));
        assert_eq!(keep(world), Ok(1));
    }

    /// What another program has registered and tuned stays there for it.
    #[test]
    fn entries_of_algorithms_of_other_programs_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wisdom.toml");
        let ours = Algorithms::here().identity().clone();
        let revisions = ours.revisions.clone().and(Collective::Broadcast, "theirs", 3);
        let theirs = Identity { revisions, ..ours };
        let mut wisdom = Wisdom::new(theirs.clone());
        wisdom.insert(found(4, 8, "theirs"));
        wisdom.save(&path).unwrap();
        let keep = |entry| {
            Source::Named(path.clone()).keep(Algorithms::here(), Arrival::Together, vec![entry])
        };
        assert_eq!(keep(found(4, 64, "flat")), Ok(1));
        wisdom.insert(found(4, 64, "flat"));
        assert_eq!(Wisdom::load(&path, &theirs).unwrap().to_string(), wisdom.to_string());
    }

    #[test]
    fn without_wisdom_the_model_chooses() {
        let by = Pes::threads(2)
            .without_wisdom()
            .run(|pe| Ok(pe.world().choice(Collective::Barrier, 0).1));
        assert_eq!(by.unwrap()[0].1, ChosenBy::Model);
    }
}
