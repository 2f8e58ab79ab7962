//! Creates a plan: selects a candidate, makes its algorithm create a schedule, and obtains a number
//! for the name of the call.

use std::{panic::Location, sync::Arc};

use consort_collectives::{PlanError, Setting, visit};
use consort_fabric::{CallSpec, Candidate, Rank};
use consort_native::{CallNumber, NumbersExhausted, Operands, message_name};
use consort_tuner::{Catalog, ChosenBy, Origin};

use super::{
    hold::Hold,
    making::{Maker, Outside},
    plans::{CallIdentity, Drivable, Ready},
    profiling::Kind,
};
use crate::{Error, Result, error::CallError};

impl Hold {
    /// Selects the candidate that serves a call.
    pub(crate) fn select(&self, call: &CallSpec) -> (Candidate, ChosenBy) {
        self.choices.borrow().select(call, self.may_be_own(call))
    }

    /// Returns whether an algorithm of the program may serve a call: not if a helper drives it.
    fn may_be_own(&self, call: &CallSpec) -> bool {
        !(call.nonblocking && self.endpoint.job().config().helpers)
    }

    /// Returns whether a named algorithm is chosen for a call, and can serve it.
    #[cold]
    pub(crate) fn is_served(&self, call: &CallSpec) -> bool {
        let candidate = self.select(call).0;
        let is_known = !self.choices.borrow().is_forced_outside(call.collective);
        is_known && self.choices.borrow().algorithms().serves(call, &candidate)
    }

    /// Returns the candidates that may serve a call. The first one serves it without refinement.
    pub(crate) fn contestants(&self, call: &CallSpec) -> Vec<Candidate> {
        self.choices.borrow().contestants(call, self.may_be_own(call))
    }

    /// Runs a barrier in a call named `what`. A PE that makes another call gets an error.
    #[cold]
    #[track_caller]
    pub(crate) fn agree(&self, what: &str) -> Result<()> {
        let ready = self.prepare_named(&CallSpec::barrier(self.endpoint.size()), what)?;
        self.run_new(&*ready, &Operands::NONE, Location::caller())
    }

    /// Plans a call.
    #[cold]
    pub(crate) fn prepare(&self, call: &CallSpec) -> Result<Arc<dyn Ready>> {
        self.prepare_by(call, &self.select(call).0)
    }

    /// Plans a call of this name that the library makes for itself.
    pub(crate) fn prepare_named(&self, call: &CallSpec, name: &str) -> Result<Arc<dyn Ready>> {
        let candidate = self.choices.borrow().select_within_library(call);
        let ready = self.prepare_as(call, &candidate, None, name)?;
        Ok(self.profiled(call, name, ready, || None))
    }

    /// Plans a call for `candidate`.
    pub(crate) fn prepare_by(
        &self,
        call: &CallSpec,
        candidate: &Candidate,
    ) -> Result<Arc<dyn Ready>> {
        let outside = self.choices.borrow().outside(call.collective, candidate);
        let name = call.to_string();
        let ready = self.prepare_as(call, candidate, outside, &name)?;
        let ready = self.profiled(call, &name, ready, || Some(self.origin(call, candidate)));
        Ok(match self.choices.borrow().recorder() {
            Some(recorder) if self.endpoint.rank() == Rank(0) => recorder.counted(call, ready),
            _ => ready,
        })
    }

    /// Plans a message of `len` elements, by an algorithm of the library that any call may use.
    #[cold]
    pub(crate) fn prepare_message(
        &self,
        call: &CallSpec,
        len: usize,
        candidate: &Candidate,
    ) -> Result<Arc<dyn Ready>> {
        let name = message_name(len, call.element_bytes, call.datatype);
        let ready = self.prepare_as(call, candidate, None, &name)?;
        Ok(self.profiled(call, &name, ready, || None))
    }

    /// Returns why `candidate` serves a call of the program.
    fn origin(&self, call: &CallSpec, candidate: &Candidate) -> Origin {
        match self.select(call) {
            (selected, _) if selected != *candidate => Origin::Refinement,
            (_, ChosenBy::Force) => Origin::Force,
            (_, ChosenBy::Wisdom) => Origin::Wisdom,
            (_, ChosenBy::Model) => Origin::Model,
        }
    }

    /// Returns the plan; if the job is profiled, with a profile of its calls. `origin` says why the
    /// program's call has this candidate; `None` for a call that the library makes for itself.
    fn profiled(
        &self,
        call: &CallSpec,
        name: &str,
        ready: Arc<dyn Drivable>,
        origin: impl FnOnce() -> Option<Origin>,
    ) -> Arc<dyn Ready> {
        match self.choices.borrow().profiler() {
            None => ready,
            Some(profiler) => {
                let kind = Kind {
                    name: name.to_owned(),
                    call: *call,
                    candidate: ready.candidate().clone(),
                    origin: origin(),
                };
                profiler.of_pe(&self.endpoint).profiled(kind, ready)
            }
        }
    }

    /// Plans a call of this name for `candidate`.
    fn prepare_as(
        &self,
        call: &CallSpec,
        candidate: &Candidate,
        outside: Option<Outside>,
        name: &str,
    ) -> Result<Arc<dyn Drivable>> {
        self.ensure_alive()?;
        let barrier = self.choices.borrow().select_around(call.pes);
        if let Some(outside) = outside
            && !self.may_be_own(call)
        {
            let why =
                "the job has helper threads, and its future may not be sent to another thread";
            return Err(PlanError::Incapable {
                algorithm: outside.description.name,
                why: why.into(),
            }
            .into());
        }
        let synchronizes = call.synchronizes();
        let within = if call.has_barrier() { format!(" within {barrier}") } else { String::new() };
        let of = outside.map_or_else(String::new, |outside| format!(" ({})", outside.type_name));
        let name = format!("{name} by {candidate}{of}{within}");
        let number = CallNumber::new(self.endpoint.job(), &name);
        let number = number.map_err(|NumbersExhausted { most }| match self.ensure_sound() {
            Ok(()) => Error::Call(CallError::TooManyCallKinds { most }),
            Err(failed) => failed,
        })?;
        let capabilities = self.choices.borrow().algorithms().capabilities(call);
        let setting = Setting::of(*call, capabilities).at(self.endpoint.rank());
        // The library vouches only for its own algorithms. After others, credits keep PEs close.
        let synchronizes = synchronizes && outside.is_none();
        let identity = CallIdentity { number, synchronizes, candidate: candidate.clone() };
        let maker = Maker { setting, barrier: &barrier, identity };
        match outside {
            Some(outside) => Ok((outside.plan)(maker)?),
            None => Ok(visit(call.collective, &candidate.algorithm, maker)??),
        }
    }
}
