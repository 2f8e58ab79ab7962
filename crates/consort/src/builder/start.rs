//! Starts a configured job, and everything else that its PEs need.

mod copies;

use std::{sync::Arc, time::Duration};

use consort_fabric::{Nodes, Rank};
use consort_machine::{Cores, Waiting, affinity::CpuId};
use consort_mpi::MpiProcess;
use consort_native::{Binding, Config, PeProcess};

use super::{JobBuilder, Pinning, Start, loopback::End, processes::Processes};
use crate::{
    Result,
    error::LaunchError,
    fabric::{Fabric, MOST_PES, ProcessShape, Sharing},
    ranks::{Placement, Ranks},
    rendezvous::Rendezvous,
    run::{
        heap_bytes_of_environment, memory_of_environment, pes_of_environment, shape_of_environment,
        sharing_of_environment,
    },
    runtime::selection::Choices,
    tune::Algorithms,
    warn::event,
};

/// The kind of PEs of a job.
enum Whole {
    /// Threads of this process.
    Threads,
    /// Processes; this is one of them.
    Processes(Arc<PeProcess>),
    /// Threads of this process, and PEs of other processes that an MPI has started.
    Mpi(Box<Processes>),
    /// Threads of this process that act as those of several processes.
    Loopback(End),
}

/// # Placement of PEs
impl JobBuilder {
    /// Sets the placement of PEs on an MPI's processes, for
    /// [`Job::from_env`](crate::Job::from_env), and overrides `CONSORT_PES_PER_PROCESS` and
    /// `CONSORT_PLACEMENT`. The same in all processes.
    #[must_use]
    pub fn on_processes(mut self, shape: ProcessShape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Sets which of an MPI's processes share memory, for [`Job::from_env`](crate::Job::from_env),
    /// and overrides `CONSORT_SHARING`. The default is the processes of one machine.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = Some(sharing);
        self
    }
}

impl JobBuilder {
    /// Returns the cores of the PEs, with PE 0 on `first` if given; `None` if the system decides.
    pub(super) fn place(&self, first: Option<CpuId>) -> Option<Arc<Placement>> {
        let topology = Algorithms::here().topology();
        let holds = match self.pinning {
            Pinning::System => return None,
            Pinning::Placed => false,
            Pinning::Pinned => true,
        };
        let cores = Cores::take(topology, self.pes, first)?;
        Some(Arc::new(Placement { cores, holds }))
    }

    /// Starts the job for a program: in several parts if PEs of this process share no memory.
    pub(super) fn start_program(self) -> Result<Vec<Arc<Ranks>>> {
        if let Some((forms, seed)) = self.loopback {
            let pes = self.count()?;
            let placement = self.place(None);
            let ends = End::all(pes, forms, seed)?;
            let start = |end| self.clone().start(placement.clone(), None, Whole::Loopback(end));
            return ends.into_iter().map(start).collect();
        }
        if let Some(started) = self.started()? {
            let mut pes = self;
            let processes = pes.begin_by_mpi(&started)?;
            return Ok(vec![pes.start_on(processes)?]);
        }
        Ok(vec![self.start_at(None)?])
    }

    /// Returns how an MPI has started this process; `None` if none has, or if the program
    /// configures the PEs.
    pub(super) fn started(&self) -> Result<Option<MpiProcess>> {
        Ok(match self.start {
            Start::Environment if self.member()?.is_none() => MpiProcess::here(),
            _ => None,
        })
    }

    /// Begins as one of the processes that an MPI has started.
    pub(super) fn begin_by_mpi(&mut self, started: &MpiProcess) -> Result<Processes> {
        let shape = self.shape.map_or_else(shape_of_environment, Ok)?;
        let sharing = self.sharing.map_or_else(sharing_of_environment, Ok)?;
        self.pes = (started.processes as usize).saturating_mul(shape.pes_each.max(1));
        let pes = self.count()?;
        // Find errors that all processes share before MPI begins, so that no process waits.
        self.read_environment(pes)?;
        let mut processes = Processes::begin(started, shape, sharing, self.statics.clone())?;
        processes.ensure_alike(self, sharing)?;
        copies::note_part_of_job();
        // The launcher of the MPI decides where processes run.
        self.pinning = Pinning::System;
        Ok(processes)
    }

    /// Reads the settings of the memory of `pes` PEs from the environment, unless the program has
    /// set them.
    pub(super) fn read_environment(&mut self, pes: u32) -> Result<()> {
        self.memory = Some(self.memory.map_or_else(memory_of_environment, Ok)?);
        let of_environment = || heap_bytes_of_environment(pes);
        self.heap_bytes = Some(self.heap_bytes.map_or_else(of_environment, Ok)?);
        Ok(())
    }

    /// Starts the job on the processes.
    pub(super) fn start_on(self, processes: Processes) -> Result<Arc<Ranks>> {
        self.start(None, None, Whole::Mpi(Box::new(processes)))
    }

    /// Returns this process's PE, if `consort run` started it; `None` if the program configures the
    /// PEs.
    pub(super) fn member(&self) -> Result<Option<Arc<PeProcess>>> {
        if self.is_of_environment() { Ok(PeProcess::here()?) } else { Ok(None) }
    }

    /// Returns the job of several processes of this machine that another launcher has started, if
    /// the environment decides and no MPI takes part.
    pub(super) fn met_by_environment(&self) -> Result<Option<(Rank, usize, Rendezvous)>> {
        if !self.is_of_environment() || self.member()?.is_some() || MpiProcess::here().is_some() {
            return Ok(None);
        }
        Ok(Rendezvous::environment()?.filter(|(_, size, _)| *size > 1))
    }

    fn is_of_environment(&self) -> bool {
        matches!(self.start, Start::Environment)
    }

    /// Starts the job on this process's PE, on processes that meet, or on threads.
    pub(super) fn start_at(mut self, joining: Option<Duration>) -> Result<Arc<Ranks>> {
        if let Some((rank, size, rendezvous)) = self.met_by_environment()? {
            self.pes = size;
            self.start = Start::Processes(rank, rendezvous);
        }
        let member = match self.start.clone() {
            Start::Processes(rank, rendezvous) => Some(self.meet(rank, &rendezvous, joining)?),
            _ => self.member()?,
        };
        if let Some(member) = member {
            self.pes = member.pes() as usize;
            self.pinning = match (member.binding(), self.pinning) {
                (Binding::Placed, own) => own,
                (Binding::Core, _) => Pinning::Pinned,
                (Binding::None, _) => Pinning::System,
            };
            let placement = self.place(None);
            return self.start(placement, joining, Whole::Processes(member));
        }
        if self.is_of_environment()
            && let Some(pes) = pes_of_environment()?
        {
            self.pes = pes as usize;
        }
        let placement = if joining.is_none() { self.place(None) } else { None };
        self.start(placement, joining, Whole::Threads)
    }

    /// Starts the job as threads of this process.
    pub(super) fn start_threads(self, placement: Option<Arc<Placement>>) -> Result<Arc<Ranks>> {
        self.start(placement, None, Whole::Threads)
    }

    /// Returns the number of PEs, if a job may have this many.
    pub(super) fn count(&self) -> Result<u32> {
        match self.pes {
            0 => Err(LaunchError::NoPes.into()),
            1..=MOST_PES => Ok(Rank::new(self.pes).0),
            requested => Err(LaunchError::TooManyPes { requested, most: MOST_PES }.into()),
        }
    }

    /// Creates the job, and everything else that its PEs need. Its PEs wait for `joining` for
    /// threads that join it; if this is `None`, its threads exist already.
    fn start(
        self,
        placement: Option<Arc<Placement>>,
        joining: Option<Duration>,
        whole: Whole,
    ) -> Result<Arc<Ranks>> {
        let pes = self.count()?;
        if !self.is_of_environment() && matches!(whole, Whole::Threads) {
            copies::warn_once();
        }
        let topology = Algorithms::here().topology();
        let algorithms = match &whole {
            Whole::Threads => Algorithms::here(),
            Whole::Processes(_) => Algorithms::of(Fabric::Processes),
            Whole::Mpi(processes) => processes.algorithms(),
            Whole::Loopback(end) => end.algorithms(pes),
        };
        // All processes decide by one number, even if they may use different processors.
        let processors = match &whole {
            Whole::Processes(member) => member.processors() as usize,
            Whole::Mpi(processes) => processes.processors,
            _ => topology.processors(),
        };
        let waiting = self.waiting.unwrap_or_default();
        let cores = topology.usable_cores().min(processors);
        if waiting == Waiting::Spin && self.pes > cores {
            event(&format!(
                "{} PEs spin on {cores} usable cores: each waits whole time slices for the others; \
                 use spin-yield-park",
                self.pes
            ));
        }
        let [processors, cores] =
            [processors, cores].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let Self {
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
        let heap_bytes = heap_bytes.map_or_else(|| heap_bytes_of_environment(pes), Ok)?;
        let here = if let Whole::Mpi(processes) = &whole { processes.here } else { pes };
        let warns = match &whole {
            Whole::Threads | Whole::Loopback(_) => true,
            Whole::Processes(member) => member.rank() == Rank(0),
            Whole::Mpi(processes) => processes.is_first(),
        };
        let config = Config {
            pes,
            here,
            nodes: Nodes::One,
            waiting,
            processors,
            cores,
            heap_bytes,
            heap_align,
            statics_bytes,
            names_places,
            places: self.pinning != Pinning::System,
            memory,
            first_step,
            helpers,
            joining,
            name,
        };
        let job = match whole {
            Whole::Threads => consort_native::Job::new(config)?,
            Whole::Processes(member) => consort_native::Job::of_processes(config, &member)?,
            Whole::Mpi(processes) => processes.job(config)?,
            Whole::Loopback(end) => end.job(config)?,
        };
        let mut choices = Choices::new(algorithms, self.wisdom, self.arrival, pes, warns)?;
        if let Some(share) = self.online {
            choices.refine(share);
        }
        for (collective, candidate) in &self.forced {
            choices.force(*collective, Some(candidate.clone()));
        }
        Ok(Arc::new(Ranks::new(job, placement, choices)))
    }
}
