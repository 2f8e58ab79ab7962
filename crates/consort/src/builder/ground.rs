//! The memory that backs a process's segment.

use consort_fabric::Rank;
use consort_native::{Config, JobMemory, SharedFile};

use crate::Result;

/// The memory that backs a process's segment.
pub(super) enum Ground {
    /// Private memory.
    Own,
    /// A file that this process fills, and others find.
    Fills(SharedFile),
    /// A file that another process fills.
    Finds(SharedFile),
}

impl Ground {
    /// Returns the memory. `own` is this process's PE, if it has only one. All processes that share
    /// files synchronize in `barrier`, after they have filled their files and before they find
    /// those of others.
    pub(super) fn memory(
        self,
        config: Config,
        own: Option<Rank>,
        barrier: impl FnOnce() -> Result<()>,
    ) -> Result<JobMemory> {
        match self {
            Self::Own => Ok(JobMemory::reserve(config, own)?),
            Self::Fills(file) => {
                let memory = JobMemory::create(config, file, own);
                barrier()?;
                Ok(memory?)
            }
            Self::Finds(file) => {
                barrier()?;
                Ok(JobMemory::map(config, file, own)?)
            }
        }
    }
}
