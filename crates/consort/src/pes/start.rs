//! Starts what is configured: the job, and all else that its PEs begin with.

use std::{sync::Arc, time::Duration};

use consort_native::{Binding, Config, Cores, Member, Waiting, affinity::CpuId};

use super::{MOST_PES, Pes, Pinning};
use crate::{
    Algorithms, Error, Result,
    algorithms::Fabric,
    launch::{memory_of_environment, pes_of_environment},
    ranks::{Placement, Ranks},
    runtime::selection::Choices,
};

impl Pes {
    /// The cores of the PEs, that of PE 0 if it is given; none if the system places them.
    pub(super) fn place(&self, first: Option<CpuId>) -> Option<Arc<Placement>> {
        let topology = Algorithms::here().topology();
        let holds = match self.pinning {
            Pinning::System => return None,
            Pinning::Placed => false,
            Pinning::Pinned => true,
        };
        let cores = Cores::take(topology, self.pes as usize, first)?;
        Some(Arc::new(Placement { cores, holds }))
    }

    pub(super) fn start_program(self) -> Result<Arc<Ranks>> {
        self.start_at(None)
    }

    /// This process as one of the PEs, if it is to be and is.
    pub(super) fn member(&self) -> Result<Option<Arc<Member>>> {
        if self.from_env { Ok(Member::here()?) } else { Ok(None) }
    }

    /// Starts it as what the environment says, if it is to be that.
    pub(super) fn start_at(mut self, joining: Option<Duration>) -> Result<Arc<Ranks>> {
        if let Some(member) = self.member()? {
            self.pes = member.pes();
            self.pinning = match (member.binding(), self.pinning) {
                (Binding::Placed, own) => own,
                (Binding::Core, _) => Pinning::Pinned,
                (Binding::None, _) => Pinning::System,
            };
            let placement = self.place(None);
            return self.start(placement, joining, Some(&member));
        }
        if self.from_env
            && let Some(pes) = pes_of_environment()?
        {
            self.pes = pes;
        }
        let placement = if joining.is_none() { self.place(None) } else { None };
        self.start(placement, joining, None)
    }

    /// Makes the job, and all else that its PEs begin with. Its PEs wait for `joining` for threads
    /// that join it; without that its threads are there. `member` is this process, if the PEs are
    /// processes.
    pub(super) fn start(
        self,
        placement: Option<Arc<Placement>>,
        joining: Option<Duration>,
        member: Option<&Arc<Member>>,
    ) -> Result<Arc<Ranks>> {
        if self.pes == 0 {
            return Err(Error::NoPes);
        }
        if self.pes > MOST_PES {
            return Err(Error::TooManyPes { asked: self.pes, most: MOST_PES });
        }
        let topology = Algorithms::here().topology();
        let algorithms = Algorithms::of(match member {
            None => Fabric::Threads,
            Some(_) => Fabric::Processes,
        });
        // All processes decide by one number, whatever each of them may use.
        let cores = member.map_or(topology.usable_cores(), |member| member.cores() as usize);
        let waiting = self.waiting.unwrap_or_default();
        if waiting == Waiting::Spin && self.pes as usize > cores {
            tracing::warn!(
                pes = self.pes,
                cores,
                "PEs outnumber the usable cores and spin: each waits whole time slices for the \
                 others; use spin-yield-park"
            );
        }
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        let Self {
            pes,
            heap_bytes,
            heap_align,
            statics_bytes,
            first_step,
            helpers,
            names_places,
            name,
            ..
        } = self;
        let memory = self.memory.map_or_else(memory_of_environment, Ok)?;
        let config = Config {
            pes,
            waiting,
            cores,
            heap_bytes,
            heap_align,
            statics_bytes,
            names_places,
            memory,
            first_step,
            helpers,
            joining,
            name,
        };
        let job = match member {
            Some(member) => consort_native::Job::of_processes(config, member)?,
            None => consort_native::Job::new(config)?,
        };
        let mut choices = Choices::new(algorithms, self.wisdom, self.arrival, self.pes)?;
        if let Some(share) = self.online {
            choices.refine(share);
        }
        for (collective, candidate) in &self.forced {
            choices.force(*collective, Some(candidate.clone()));
        }
        Ok(Arc::new(Ranks::new(job, placement, choices)))
    }
}
