//! The registry of barriers, which no PE leaves before all have entered.

use consort_fabric::{Candidate, Channel, Fabric, Op, Rank};

use crate::{Algorithm, Direction, PlanError, Setting, Vendor, algorithm::registry};

registry! {
    central: Central,
    dissemination: Dissemination,
    knomial: Flat Knomial;
    use Vendor;
    Any of Barrier;
    two_level: TwoLevel,
}

/// A barrier that is ready to run, as the entry or exit barrier of another operation.
#[derive(Hash)]
pub enum Synchronizer {
    /// See [`Central`].
    Central(<Central as Algorithm>::Schedule),
    /// See [`Dissemination`].
    Dissemination(<Dissemination as Algorithm>::Schedule),
    /// See [`Flat`] and [`Knomial`].
    Tree(<Knomial as Algorithm>::Schedule),
    /// In a team of two: waits for the other PE's signal, because no data moves from the other PE
    /// to this one.
    Waits(Channel),
    /// In a team of two: signals the other PE, because no data moves from this PE to the other.
    Signals(Rank, Channel),
}

impl Synchronizer {
    /// Returns whether a barrier can be the entry or exit barrier of another operation. Barriers of
    /// several parts and those of the fabric itself cannot.
    #[must_use]
    pub fn can_be(candidate: &Candidate) -> bool {
        let names = [Central::NAME, Flat::NAME, Knomial::NAME, Dissemination::NAME];
        names.contains(&candidate.algorithm.as_str())
    }

    /// Returns the barrier that `candidate` names, in the channels and with the counter of
    /// `setting`, around an operation whose data moves in this direction.
    ///
    /// # Errors
    /// If there is no such barrier, or its parameters are wrong.
    pub fn new(
        setting: &Setting,
        candidate: &Candidate,
        direction: Direction,
    ) -> Result<Self, PlanError> {
        if setting.call.pes == 2 && direction != Direction::Neither {
            // Downwards the data reaches the other PE, so the root waits for a signal: at entry
            // until the other PE has entered, at exit until it has received. Upwards the data
            // reaches the root, so the other PE waits: at entry until the root has entered, at exit
            // until the root has the data.
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

    /// Runs this PE's part of the barrier.
    ///
    /// # Errors
    /// If the job has failed.
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
