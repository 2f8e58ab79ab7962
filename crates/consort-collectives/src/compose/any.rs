//! Parts of compositions, each with any algorithm of its collective.

use consort_fabric::{Candidate, Collective, Fabric, Op, Place};

use super::{
    default_candidate,
    part::PartFabric,
    sub::{Buffer, Sub},
};
use crate::{PlanError, algorithm::AnySchedule};

/// Returns the candidate of a part of `algorithm`, by its index among the parts that exist. It is
/// the default one if the candidate names none.
pub(crate) fn part_of(
    algorithm: &'static str,
    parts: [Option<Collective>; 3],
    candidate: &Candidate,
    index: usize,
) -> Result<Candidate, PlanError> {
    let parts: Vec<Collective> = parts.into_iter().flatten().collect();
    if candidate.parts.is_empty() {
        return Ok(default_candidate(parts[index]));
    }
    let part = candidate.parts.get(index).filter(|_| candidate.parts.len() == parts.len());
    part.cloned().ok_or_else(|| {
        let parts: Vec<String> =
            parts.iter().map(|part| format!("an algorithm of {part}")).collect();
        let why = format!("its parts are {}", parts.join(", ")).into();
        PlanError::Incapable { algorithm, why }
    })
}

impl Buffer {
    /// Returns a buffer that begins at the same offset on each PE.
    pub(crate) const fn new(place: Place, first: usize) -> Self {
        Self { place, first, apart: 0 }
    }

    /// Returns whether it lies in memory that no peer reaches.
    pub(crate) const fn is_scratch(self) -> bool {
        matches!(self.place, Place::Accumulator | Place::Incoming)
    }
}

/// One PE's share of a part of a call: its view, and its schedule.
#[derive(Hash)]
pub(crate) struct PartSchedule<S> {
    pub(crate) sub: Sub,
    pub(crate) schedule: S,
}

impl<S: AnySchedule> PartSchedule<S> {
    pub(crate) async fn run<F: Fabric>(&self, f: &F) -> Op {
        self.schedule.run(&PartFabric::new(f, self.sub)).await
    }
}
