//! The number of a call's name.

use std::{fmt, sync::Arc};

use super::job::Job;
use crate::{
    directory::{call_names::NumbersExhausted, lock::LockedDirectory},
    inbox::geometry::SEQUENCE_BITS,
};

/// The number of a call's name, held by a plan.
pub struct CallNumber {
    job: Arc<Job>,
    number: u64,
}

impl CallNumber {
    /// Acquires the number of a call's name. It is the same on all PEs while any PE holds it.
    ///
    /// # Errors
    /// When no number is free, or the job has failed.
    pub fn new(job: &Arc<Job>, name: &str) -> Result<Self, NumbersExhausted> {
        Ok(Self { job: Arc::clone(job), number: job.hold_name(name)? })
    }

    /// Returns the number.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.number
    }
}

impl Job {
    /// Passes the numbers of the recent calls of all PEs that share memory with this process to
    /// `note`.
    pub(crate) fn note_recent(&self, directory: &LockedDirectory<'_>, note: &mut dyn FnMut(u64)) {
        for (at, pes) in directory.groups() {
            // Errors do not show the names of a group that this process cannot map.
            let Some(group) = self.group_memory(at, pes) else { continue };
            let words = group.members().flat_map(|member| group.all_recent(member));
            words.for_each(|word| note(word >> SEQUENCE_BITS));
        }
    }
}

impl Drop for CallNumber {
    fn drop(&mut self) {
        self.job.release_name(self.number);
    }
}

impl fmt::Debug for CallNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallNumber").field(&self.number).finish()
    }
}
