//! Makes plans of algorithms: those of the registry and the program's own.

use std::{any::type_name, sync::Arc};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor};
use consort_fabric::Candidate;
use consort_native::CallNumber;

use super::plans::{Prepared, Ready};
use crate::Result;

/// An algorithm of the program, which is not in the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(super) name: &'static str,
    pub(super) type_name: &'static str,
    pub(super) plan: fn(Maker<'_>) -> Result<Arc<dyn Ready>, PlanError>,
}

impl Outside {
    pub(crate) fn of<A: Algorithm>() -> Self {
        Self { name: A::NAME, type_name: type_name::<A>(), plan: |maker| maker.visit::<A>() }
    }
}

/// Makes a plan for an algorithm.
pub(crate) struct Maker<'m> {
    pub(super) setting: Setting,
    pub(super) candidate: &'m Candidate,
    pub(super) barrier: &'m Candidate,
    pub(super) number: CallNumber,
    pub(super) synchronizes: bool,
}

impl Visitor for Maker<'_> {
    type Output = Result<Arc<dyn Ready>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        Ok(Arc::new(Prepared::<A> {
            plan: Plan::new(&self.setting, self.candidate, self.barrier)?,
            number: self.number,
            synchronizes: self.synchronizes,
            candidate: self.candidate.clone(),
        }))
    }
}
