//! What the memory of a process lies in.

use consort_fabric::Rank;
use consort_native::{Config, JobMemory, SharedFile};

use crate::Result;

/// What the memory of a process lies in.
pub(super) enum Ground {
    /// It is its own.
    Own,
    /// A file that it fills, and others find.
    Fills(SharedFile),
    /// A file that another process fills.
    Finds(SharedFile),
}

impl Ground {
    /// The memory. `own` is the PE that this process is, if it is one alone. All processes that
    /// share files synchronize in `barrier`, after they have filled their files and before they find
    /// what is filled.
    pub(super) fn memory(
        self,
        config: Config,
        own: Option<Rank>,
        barrier: impl FnOnce() -> Result<()>,
    ) -> Result<JobMemory> {
        match self {
            Self::Own => Ok(JobMemory::reserve(config, own)?),
            Self::Fills(file) => {
                let memory = JobMemory::fill(config, file, own);
                barrier()?;
                Ok(memory?)
            }
            Self::Finds(file) => {
                barrier()?;
                Ok(JobMemory::filled(config, file, own)?)
            }
        }
    }
}
