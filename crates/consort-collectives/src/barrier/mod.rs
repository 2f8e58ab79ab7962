//! Barriers: no PE leaves before all have entered. The registry of their algorithms.

use consort_fabric::{Candidate, Fabric, Op, Rank, Slot};

use crate::{Algorithm, Direction, PlanError, Setting, algorithm::registry};

registry! {
    central: Central,
    dissemination: Dissemination,
    flat: Flat,
    knomial: Knomial,
}

/// Any of the barriers, ready to run: what brackets an operation that all PEs enter, or leave,
/// together.
#[derive(Debug)]
pub enum Synchronizer {
    /// See [`Central`].
    Central(<Central as Algorithm>::Schedule),
    /// See [`Dissemination`].
    Dissemination(<Dissemination as Algorithm>::Schedule),
    /// See [`Flat`] and [`Knomial`].
    Tree(<Knomial as Algorithm>::Schedule),
    /// Of two PEs, the one that the data says nothing: it waits for a signal of the other.
    Hears(Slot),
    /// The other: the data that moves between them says the rest.
    Tells(Rank, Slot),
}

impl Synchronizer {
    /// The barrier that `candidate` names, in the slots and with the counter of `setting`, about an
    /// operation whose data moves in this direction.
    ///
    /// # Errors
    /// When there is none, or its parameters are wrong.
    pub fn new(
        setting: &Setting,
        candidate: &Candidate,
        direction: Direction,
    ) -> Result<Self, PlanError> {
        if setting.pes == 2 && direction != Direction::Neither {
            // Downwards the root must learn that the other has entered, and then that it has
            // received; upwards the other that the root has entered, and then that it is done.
            let (peer, slot) = (Rank(1 - setting.rank.0), setting.slot(0));
            let hears = (setting.rank == setting.root) == (direction == Direction::Down);
            return Ok(if hears { Self::Hears(slot) } else { Self::Tells(peer, slot) });
        }
        match candidate.algorithm.as_str() {
            Central::NAME => Central::schedule(setting, candidate).map(Self::Central),
            Flat::NAME => Flat::schedule(setting, candidate).map(Self::Tree),
            Knomial::NAME => Knomial::schedule(setting, candidate).map(Self::Tree),
            Dissemination::NAME => {
                Dissemination::schedule(setting, candidate).map(Self::Dissemination)
            }
            name => Err(PlanError::UnknownAlgorithm {
                collective: consort_fabric::Collective::Barrier,
                name: name.to_owned(),
                known: NAMES.join(", "),
            }),
        }
    }

    /// Waits until all PEs are here.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn run<F: Fabric>(&self, f: &F) -> Op {
        match self {
            Self::Central(schedule) => Central::run(f, schedule).await,
            Self::Dissemination(schedule) => Dissemination::run(f, schedule).await,
            Self::Tree(schedule) => Knomial::run(f, schedule).await,
            Self::Hears(slot) => f.wait(*slot, 0).await,
            Self::Tells(peer, slot) => f.signal(*peer, *slot, 0).await,
        }
    }
}
