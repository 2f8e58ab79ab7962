//! Creates plans of algorithms: those of the registry and the program's own.

use std::{any::type_name, sync::Arc};

use consort_collectives::{Algorithm, Description, Plan, PlanError, Setting, Visitor, check_of};
use consort_fabric::{Candidate, MachineModel, Query};

use super::plans::{CallIdentity, Drivable, Prepared};
use crate::Result;

/// An algorithm of the program, which is not in the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(crate) description: Description,
    pub(crate) type_name: &'static str,
    pub(crate) cost_ns: fn(&Query, &Candidate, &MachineModel) -> f64,
    check: fn(&Setting, &Candidate) -> Result<(), PlanError>,
    pub(super) plan: fn(Maker<'_>) -> Result<Arc<dyn Drivable>, PlanError>,
}

impl Outside {
    pub(crate) fn of<A: Algorithm>() -> Self {
        Self {
            description: A::DESCRIPTION,
            type_name: type_name::<A>(),
            cost_ns: A::cost_ns,
            check: check_of::<A>,
            plan: |maker| maker.visit::<A>(),
        }
    }

    pub(crate) fn serves(&self, setting: &Setting, candidate: &Candidate) -> bool {
        setting.is_addressable() && (self.check)(setting, candidate).is_ok()
    }
}

/// Creates a plan for an algorithm.
pub(crate) struct Maker<'m> {
    pub(super) setting: Setting,
    pub(super) barrier: &'m Candidate,
    pub(super) identity: CallIdentity,
}

impl Visitor for Maker<'_> {
    type Output = Result<Arc<dyn Drivable>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Self { setting, barrier, identity } = self;
        let plan = Plan::new(&setting, &identity.candidate, barrier)?;
        let may_replace_source = A::may_replace_source(&setting);
        Ok(Arc::new(Prepared::<A> { plan, identity, may_replace_source }))
    }
}
