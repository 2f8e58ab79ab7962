//! Registered algorithms of a program are chosen like those of the library.
//!
//! A registered algorithm stays registered until the process ends, and other tests run in the
//! process. So the algorithm here only serves scans of one unusual size.

use std::panic::catch_unwind;

use consort::{
    Job, Rank, Result, Team,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Algorithms, Candidate, ChosenBy, Collective, Query, register},
};
use consort_collectives::{Algorithm, Parameter, PlanError, Setting};
use consort_fabric::{CallSpec, Channel, MachineModel, Messages, Op, OperatorClass, Span};
use consort_tuner::{Catalog, Entry, Wisdom};

use crate::{data::count, jobs::pes_of};

/// The number of elements of the only scans that it serves.
const LEN: usize = 11;
const PES: usize = 3;

/// A scan from PE to PE.
struct Odd;

impl Algorithm for Odd {
    const NAME: &'static str = "odd";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "turns", values: &[1, 2], range: (1, 2) }];
    const REVISION: u32 = 7;
    type Schedule = (Rank, u32);

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<(Rank, u32), PlanError> {
        Self::check(candidate)?;
        let CallSpec { bytes, pes, .. } = setting.call;
        if (bytes, pes) != (LEN * 8, count(PES)) {
            return Err(Self::incapable("it is for one size alone"));
        }
        Ok((setting.rank, pes))
    }

    fn cost_ns(_: &Query, candidate: &Candidate, _: &MachineModel) -> f64 {
        candidate.parameter("turns").map_or(f64::INFINITY, |turns| turns as f64)
    }

    async fn run<F: Messages>(f: &F, &(rank, pes): &(Rank, u32)) -> Op {
        let (own, sum) = (Span::source(0, LEN * 8), Span::target(0, LEN * 8));
        match rank {
            Rank(0) => f.copy(sum, own).await?,
            // The sum so far is the left operand.
            _ => {
                f.receive(Channel::new(1), 0, sum).await?;
                f.combine(sum, sum, own).await?;
            }
        }
        if rank.0 + 1 < pes {
            f.send(Rank(rank.0 + 1), Channel::new(1), 0, sum).await?;
        }
        Ok(())
    }
}

/// Names that are taken, by another algorithm and by one of the library's, and a name that no
/// wisdom can contain.
const NAMES: [&str; 3] = ["odd", "linear", "from PE to PE"];

/// An algorithm with such a name.
struct Refused<const NAME: usize>;

impl<const NAME: usize> Algorithm for Refused<NAME> {
    const NAME: &'static str = NAMES[NAME];
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ();

    fn schedule(_: &Setting, _: &Candidate) -> Result<(), PlanError> {
        Err(Self::incapable("it is never asked"))
    }

    fn cost_ns(_: &Query, _: &Candidate, _: &MachineModel) -> f64 {
        0.0
    }

    async fn run<F: Messages>(_: &F, (): &()) -> Op {
        Ok(())
    }
}

fn odd(turns: u64) -> Candidate {
    Candidate::new("odd").with("turns", turns)
}

fn query() -> Query {
    Query {
        collective: Collective::Scan,
        sync: SyncModes::MINE,
        pes: count(PES),
        bytes: LEN as u64 * 8,
        operator: OperatorClass::Commutative,
        symmetric: false,
    }
}

/// Runs a scan of that size, and checks it.
fn scanned(world: &Team) -> Result<()> {
    let mut sum = [0_u64; LEN];
    world.slices(&[u64::from(world.rank().0) + 1; LEN], &mut sum).scan(Sum)?;
    assert_eq!(sum, [[1, 3, 6][world.rank().index()]; LEN]);
    Ok(())
}

#[test]
fn own_algorithm_is_chosen_or_forced() {
    register::<Odd>(Collective::Scan);
    register::<Odd>(Collective::Scan); // registering it again has no effect
    let candidates = Algorithms::here().candidates(&query());
    assert!(candidates.contains(&odd(1)) && candidates.contains(&odd(2)), "{candidates:?}");
    let larger = Algorithms::here().candidates(&Query { bytes: 96, ..query() });
    assert!(!larger.iter().any(|one| one.algorithm == "odd"), "{larger:?}");

    let by_model = |world: &Team| {
        scanned(world)?;
        assert_eq!(world.algorithms().served_by(Collective::Scan), Some(odd(1)));
        world.slices(&[1_u64; 12], &mut [0; 12]).scan(Sum)?;
        assert_ne!(world.algorithms().served_by(Collective::Scan), Some(odd(1)));
        assert_eq!(
            world.start(vec![1_u64; LEN]).scan(Sum)?.wait()?[0],
            1 + u64::from(world.rank().0)
        );
        assert_eq!(world.algorithms().served_by(Collective::Scan), Some(odd(1)));
        world.algorithms().force(Collective::Scan, Some(odd(2)));
        scanned(world)?;
        assert_eq!(world.algorithms().served_by(Collective::Scan), Some(odd(2)));
        let mut in_place = [u64::from(world.rank().0) + 1; LEN];
        world.in_place(&mut in_place).scan(Sum)?;
        assert_eq!(in_place[0], [1, 3, 6][world.rank().index()]);
        Ok(())
    };
    pes_of(PES).run(|pe| by_model(pe.world())).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wisdom.toml");
    let mut wisdom = Wisdom::new(Algorithms::here().identity().clone());
    wisdom.insert(Entry::alone(query(), odd(2), 10.0));
    wisdom.save(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"scan odd\" = 7"), "{text}");
    let by_wisdom = |world: &Team| {
        assert_eq!(
            world.algorithms().choice(Collective::Scan, LEN * 8),
            (odd(2), ChosenBy::Wisdom)
        );
        scanned(world)
    };
    Job::threads(PES).wisdom(&path).run(|pe| by_wisdom(pe.world())).unwrap();
}

/// A helper thread may not drive its future, which need not be `Send`: another one is chosen.
#[test]
fn helpers_drive_other_algorithms() {
    register::<Odd>(Collective::Scan);
    let run = pes_of(PES).helper_threads().run(|pe| {
        let world = pe.world();
        scanned(world)?;
        assert_eq!(world.algorithms().served_by(Collective::Scan), Some(odd(1)));
        let sum = world.start(vec![1_u64; LEN]).scan(Sum)?;
        assert_eq!(sum.wait()?, [u64::from(world.rank().0) + 1; LEN]);
        assert_ne!(world.algorithms().served_by(Collective::Scan), Some(odd(1)));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn name_is_registered_for_one_algorithm() {
    register::<Odd>(Collective::Scan);
    let message = |refused: std::thread::Result<()>| {
        let payload = refused.expect_err("refused");
        payload.downcast_ref::<String>().expect("a text").clone()
    };
    let other = message(catch_unwind(|| register::<Refused<0>>(Collective::Scan)));
    assert!(
        other.contains("Odd and ") && other.contains("Refused<0> are both a scan `odd`: use"),
        "{other}"
    );
    let ours = message(catch_unwind(|| register::<Refused<1>>(Collective::Scan)));
    assert_eq!(ours, "the library has a scan `linear`: use another name");
    let bad = message(catch_unwind(|| register::<Refused<2>>(Collective::Scan)));
    assert!(bad.contains("invalid candidate `from PE to PE`"), "{bad}");
}
