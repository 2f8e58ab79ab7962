//! Wisdom of launches: used, rejected and saved.

use super::*;
use crate::{Job, launch::ProcessShape, tune::ChosenBy};
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
    let pes = Job::threads(2).wisdom(path);
    let all = pes.run(|pe| {
        let world = pe.world();
        world.barrier()?;
        assert_eq!(
            world.algorithms().served_by(Collective::Barrier),
            Some(world.algorithms().choice(Collective::Barrier, 0).0)
        );
        Ok(world.algorithms().choice(Collective::Barrier, 0))
    })?;
    assert_eq!(all[0], all[1]);
    Ok(all[0].clone())
}

#[test]
fn launch_uses_wisdom_and_notices_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.toml");
    save(&path, UNLIKELY);
    assert_eq!(chosen(&path), Ok((Candidate::new(UNLIKELY), ChosenBy::Wisdom)));
    save(&path, "flat");
    assert_eq!(chosen(&path), Ok((Candidate::new("flat"), ChosenBy::Wisdom)));
}

#[test]
fn named_wisdom_must_exist_and_match() {
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

/// Checks each entry's choice for the entry's own size and for sizes many times as large. Tries the
/// names of all algorithms, because a person may write any of them into a file.
#[test]
fn wisdom_of_terabytes_is_used_if_possible() {
    let folder = tempfile::tempdir().unwrap();
    let algorithms = Algorithms::here();
    let mut asked = 0;
    for (collective, pes) in Collective::EVERY.into_iter().flat_map(|one| [(one, 4), (one, 64)]) {
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
                Source::Named(path).table(algorithms, pes, Arrival::Together, true).unwrap();
            let table = table.unwrap();
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

/// Teams that save at the same time do not lose each other's entries.
#[test]
fn concurrent_saves_lose_nothing() {
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

/// Wisdom of worlds takes no entries of teams with another placement on processes.
#[test]
fn team_with_another_layout_saves_nothing() {
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

/// Entries that another program has registered and tuned stay in the file.
#[test]
fn algorithms_of_other_programs_keep_their_entries() {
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
    let by = Job::threads(2)
        .without_wisdom()
        .run(|pe| Ok(pe.world().algorithms().choice(Collective::Barrier, 0).1));
    assert_eq!(by.unwrap(), [ChosenBy::Model; 2]);
}
