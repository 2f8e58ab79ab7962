//! The barrier of a team.

use std::{panic::Location, sync::Arc};

use consort_fabric::CallSpec;
use consort_native::Operands;

use crate::{Result, Team};

/// # Barrier
impl Team {
    /// Waits until all PEs of the team have called this, in any mode. If PEs are threads of one
    /// process, all that they did before their calls happens before all that they do after them.
    ///
    /// # Errors
    /// See [`Team`].
    #[inline]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let state = &self.state;
        if let Some(ready) = &*state.barrier.borrow() {
            return state.run(&**ready, &Operands::NONE, Location::caller());
        }
        self.first_barrier()
    }

    /// Plans the barrier, keeps the plan, and runs it.
    #[cold]
    #[track_caller]
    fn first_barrier(&self) -> Result<()> {
        let ready = self.state.prepare(&CallSpec::barrier(self.pes()))?;
        *self.state.barrier.borrow_mut() = Some(Arc::clone(&ready));
        self.state.run_new(&*ready, &Operands::NONE, Location::caller())
    }
}
