//! Launches the PEs of a session: threads of this process, or processes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use consort::{
    Error, Job, JobBuilder, Rank,
    error::LaunchError,
    launch::Fabric,
    tune::{Candidate, Collective},
};
use consort_machine::topology::Topology;
use serde::{Deserialize, Serialize};

use super::{
    member::Member,
    session::{Conditions, Session, SessionOutcome, Timing},
    shared::SessionState,
    started::{self, Task},
    work::Work,
};
use crate::{
    environment::Switches,
    peers::threads::{Peer, peers},
    query_json::optional,
};

/// How calls, including entry and exit barriers, choose their algorithms if the work names none.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AlgorithmChoice {
    /// Whether wisdom is used, if there is any, or only the model.
    pub wisdom: bool,
    /// The algorithm of barriers.
    #[serde(with = "optional")]
    pub barrier: Option<Candidate>,
}

impl AlgorithmChoice {
    /// The choices that programs make.
    pub const USUAL: Self = Self { wisdom: true, barrier: None };

    /// Creates choices that ignore wisdom and use `barrier` for barriers, if it is given.
    pub fn without_wisdom(barrier: Option<Candidate>) -> Self {
        Self { wisdom: false, barrier }
    }
}

/// The reason why a session has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The job cannot be launched, or failed.
    #[error(transparent)]
    Job(#[from] Error),
    /// The processes cannot be launched, or failed.
    #[error("PEs that are processes: {0}")]
    Processes(String),
}

/// The input of the processes of a session.
#[derive(Deserialize, Serialize)]
pub(super) struct SessionInput {
    session: Session,
    choices: AlgorithmChoice,
    conditions: Conditions,
}

impl Session {
    /// Measures until the budget is spent, with at least one block of every work, or until `stop`
    /// is set. Then threads end with the current block, and processes at once, without an outcome.
    ///
    /// # Errors
    /// If the job cannot be launched or fails.
    pub fn run(
        &self,
        choices: &AlgorithmChoice,
        conditions: &Conditions,
        stop: &AtomicBool,
    ) -> Result<SessionOutcome, SessionError> {
        if self.fabric == Fabric::Threads {
            let pes = Job::threads(self.pes as usize);
            return Ok(self.run_in(pes, choices, conditions, stop)?.1);
        }
        let order = SessionInput {
            session: self.clone(),
            choices: choices.clone(),
            conditions: *conditions,
        };
        let whole = (self.fabric, self.pes);
        let measured = started::outcome(whole, &Task::<_, ()>::Time(order), stop);
        // Relaxed: the flag publishes no other data.
        if measured.is_err() && stop.load(Relaxed) {
            return Ok(self.nothing());
        }
        measured.map_err(|error| SessionError::Processes(format!("{error:#}")))
    }

    /// Measures in a job of these PEs, whose number is the session's. The outcome is that of the
    /// first PE of this process, and is meaningful only if that is PE 0.
    fn run_in(
        &self,
        pes: JobBuilder,
        choices: &AlgorithmChoice,
        conditions: &Conditions,
        stop: &AtomicBool,
    ) -> Result<(Rank, SessionOutcome), Error> {
        let mut pes = pes.pinned().heap_bytes(self.heap_bytes(conditions));
        if !choices.wisdom {
            pes = pes.without_wisdom();
        }
        if let Some(barrier) = &choices.barrier {
            pes = pes.force(Collective::Barrier, barrier.clone());
        }
        if let Some(waiting) = self.waiting {
            pes = pes.waiting(waiting);
        }
        let libraries = self.libraries();
        // This must precede the binding of a PE to its core, because it may use only that core
        // then. PEs that an MPI starts do not share memory, or not all of them do, so no transfer
        // between cores can be timed there.
        let is_here = self.fabric.shape().is_none();
        let fits = is_here && Topology::discover().placement(self.pes as usize).is_some();
        let results = pes.run(|pe| {
            let shared = SessionState::new(pe, self.mode, fits)?;
            Member::new((self, conditions), &shared, &libraries, stop, pe).run(pe)
        })?;
        results.into_ranked().next().ok_or(LaunchError::NoPes.into())
    }

    /// Returns the thread libraries. Processes have none.
    fn libraries(&self) -> Vec<Box<dyn Peer>> {
        match self.fabric {
            // SAFETY: each PE passes its own rank, which is below `pes`. All PEs make the calls
            // that PE 0 decides, in the same order and on buffers of the same lengths.
            #[expect(unsafe_code, reason = "relies on callers to make matching calls")]
            Fabric::Threads => unsafe { peers(self.pes) },
            _ => Vec::new(),
        }
    }

    /// Returns the outcome of a session that was stopped before it had one.
    fn nothing(&self) -> SessionOutcome {
        SessionOutcome {
            timings: vec![Timing::default(); self.work.len()],
            waiting: self.waiting.unwrap_or_default(),
            switches: Switches::default(),
        }
    }

    /// Returns enough symmetric memory for the buffers of all works.
    fn heap_bytes(&self, conditions: &Conditions) -> usize {
        let buffers = |work: &Work| work.heap_bytes(self.pes, conditions.buffers);
        let shared = SessionState::heap_bytes(self.mode);
        self.work.iter().map(buffers).sum::<usize>() + shared + (1 << 20)
    }
}

impl SessionInput {
    /// Returns the PEs that the order is for.
    pub(super) fn whole(&self) -> (Fabric, u32) {
        (self.session.fabric, self.session.pes)
    }

    /// Takes part as one process; the process of PE 0 gets the outcome.
    ///
    /// # Errors
    /// If the job fails.
    pub(super) fn take_part(self) -> Result<Option<SessionOutcome>, Error> {
        let Self { session, choices, conditions } = self;
        let pes = started::pes((session.fabric, session.pes));
        let stop = AtomicBool::new(false);
        let (rank, measured) = session.run_in(pes, &choices, &conditions, &stop)?;
        Ok((rank == Rank(0)).then_some(measured))
    }
}
