//! Barriers: no PE leaves before all have entered. The registry of their algorithms.

use consort_fabric::{Candidate, Channel, Fabric, Op, Rank};

use crate::{Algorithm, Direction, PlanError, Setting, algorithm::registry};

registry! {
    central: Central,
    dissemination: Dissemination,
    knomial: Flat Knomial,
}

/// Any of the barriers, ready to run: the entry or exit barrier of an operation that all PEs enter,
/// or leave, together.
#[derive(Debug)]
pub enum Synchronizer {
    /// See [`Central`].
    Central(<Central as Algorithm>::Schedule),
    /// See [`Dissemination`].
    Dissemination(<Dissemination as Algorithm>::Schedule),
    /// See [`Flat`] and [`Knomial`].
    Tree(<Knomial as Algorithm>::Schedule),
    /// Of two PEs, the one that the data says nothing: it waits for a signal of the other.
    Waits(Channel),
    /// The other: the data that moves between them says the rest.
    Signals(Rank, Channel),
}

impl Synchronizer {
    /// The barrier that `candidate` names, in the channels and with the counter of `setting`, about
    /// an operation whose data moves in this direction.
    ///
    /// # Errors
    /// When there is none, or its parameters are wrong.
    pub fn new(
        setting: &Setting,
        candidate: &Candidate,
        direction: Direction,
    ) -> Result<Self, PlanError> {
        if setting.call.pes == 2 && direction != Direction::Neither {
            // Downwards the root must learn that the other has entered, and then that it has
            // received; upwards the other that the root has entered, and then that it is done.
            let (peer, channel) = (Rank(1 - setting.rank.0), setting.channel(0));
            let waits = (setting.rank == setting.call.root) == (direction == Direction::Down);
            return Ok(if waits { Self::Waits(channel) } else { Self::Signals(peer, channel) });
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
            Self::Waits(channel) => f.wait(*channel, 0).await,
            Self::Signals(peer, channel) => f.signal(*peer, *channel, 0).await,
        }
    }
}
