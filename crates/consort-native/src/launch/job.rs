//! A job: the segment with everything that its PEs share, as one process sees it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use consort_fabric::{Capabilities, Nodes, Rank};

use super::{
    children::ChildFailure,
    config::Config,
    failure::Failure,
    form::{self, SegmentForm},
    layout::SegmentLayout,
    memory::{JobMemory, STATICS},
    reason,
    sites::Sites,
};
use crate::{
    directory::{
        blocks::HeapError,
        groups::GroupPlace,
        lock::{Directory, LockedDirectory},
    },
    far::{link::Net, transport::Transport},
    heap::staging::{Staging, StagingExtents},
    inbox::geometry::Geometry,
    processes::pe_process::{BeginError, JoinError, JoinedLaunch, PeProcess},
    progress::event::ParkingSlot,
    segment::{
        backing::Backing,
        memory_error::MemoryError,
        origin::Origin,
        reservation::Segment,
        slice::{SegmentRef, SegmentSlice},
    },
    state::{
        header::{Header, PeState},
        poison::PoisonFlag,
    },
};
use consort_machine::{
    panic::{Panic, panic_reason},
    sync::futex::Scope,
    system::clock,
    token::ProcessToken,
};

/// A launch. It lives until the last PE, buffer and handle is dropped.
pub struct Job {
    _child_failure: ChildFailure,
    process: ProcessToken,
    config: Config,
    pub(crate) segment: Arc<Segment>,
    pub(super) layout: SegmentLayout,
    pub(super) header: SegmentRef<Header>,
    /// The states of the PEs, by rank in the world.
    pub(crate) states: SegmentSlice<PeState>,
    directory: Directory,
    /// The group of all PEs.
    pub(crate) world: GroupPlace,
    pub(crate) sites: Sites,
    number: u64,
    /// The launch that the PEs are in, if they are processes.
    pub(super) joined: Option<JoinedLaunch>,
    /// For each PE of this process, the memory in which it exposes private buffers. Only if PEs of
    /// other processes are near.
    staging: Box<[Option<Staging>]>,
    /// The link to other processes, if a transport connects them.
    pub(crate) net: Net,
    /// The extents in which PEs of several processes expose private buffers.
    pub(crate) extents: Arc<StagingExtents>,
}

/// The reason why a process has no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    /// There is no memory for the job.
    Memory(HeapError),
    /// The process cannot take part in the job.
    Join(JoinError),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => fmt::Display::fmt(error, f),
            Self::Join(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => error.source(),
            Self::Join(error) => error.source(),
        }
    }
}

impl From<HeapError> for JobError {
    fn from(error: HeapError) -> Self {
        Self::Memory(error)
    }
}

impl From<JoinError> for JobError {
    fn from(error: JoinError) -> Self {
        Self::Join(error)
    }
}

/// The number of the process's next job.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Job {
    /// Sets up the shared state of a launch. The caller starts the threads.
    ///
    /// # Errors
    /// When the system provides no memory.
    pub fn new(config: Config) -> Result<Arc<Self>, HeapError> {
        let own = Some(Rank(0)).filter(|_| config.pes == 1);
        Self::over(JobMemory::reserve(config, own)?, None, None)
    }

    /// Like [`Job::new`], in one of several processes with a transport between them, from the
    /// placement of the PEs on the processes and on nodes. All PEs of a process must be on one
    /// node. The caller starts the threads of this process's PEs.
    ///
    /// # Errors
    /// Same as [`Job::new`].
    pub fn linked(
        memory: JobMemory,
        transport: Box<dyn Transport>,
        placements: [Nodes; 2],
    ) -> Result<Arc<Self>, HeapError> {
        Self::over(memory, None, Some((transport, placements)))
    }

    /// Returns the state of this process's next launch. The launcher's other processes share it,
    /// and the first of them sets it up. The caller runs the PE of this process.
    ///
    /// # Errors
    /// When the system provides no memory, or the launch cannot begin.
    pub fn of_processes(config: Config, member: &Arc<PeProcess>) -> Result<Arc<Self>, JobError> {
        let config =
            Config { pes: member.pes(), here: member.pes(), memory: Origin::Shared, ..config };
        let form = SegmentForm::of(&config, true)?;
        form.ensure_room(&config, 1).map_err(|reason| form::refused(&config, reason))?;
        let placement = form.placement(&config, Some(member.rank()));
        let begun = member.begin(&config, form.layout.bytes, placement, |segment, joined| {
            form.fill(&config, segment, &Backing::File(joined))
        });
        let (segment, joined) = begun.map_err(|error| match error {
            BeginError::Join(error) => JobError::Join(error),
            BeginError::Heap(error) => error.into(),
            BeginError::Memory(reason) => form::refused(&config, reason).into(),
        })?;
        form.advise(&config, &segment);
        let backing = Backing::File(Arc::new(joined.again()));
        let mut memory = JobMemory { config, form, segment, backing };
        for (pe, file) in member.take_statics() {
            memory.place_statics(pe, &file).map_err(|error| {
                let reason = MemoryError::of("mmap", STATICS, memory.config.statics_bytes, &error);
                form::refused(&memory.config, reason)
            })?;
        }
        let job = Self::over(memory, Some(joined), None)?;
        // The launcher fails the jobs that it finds. If a process ended before the launcher could
        // find this job, fail it here.
        if let Some((rank, reason)) = job.joined.as_ref().and_then(JoinedLaunch::missed) {
            job.poison(&Failure::Pe { rank, reason });
        }
        Ok(job)
    }

    /// Returns the job in a segment that has been filled.
    fn over(
        memory: JobMemory,
        joined: Option<JoinedLaunch>,
        transport: Option<(Box<dyn Transport>, [Nodes; 2])>,
    ) -> Result<Arc<Self>, HeapError> {
        let JobMemory { config, form, segment, backing } = memory;
        let SegmentForm { layout, heap_bytes, .. } = form;
        let header = SegmentRef::<Header>::new(&segment, 0);
        let extents = Arc::new(StagingExtents::new(backing.clone(), config.fits()));
        let arena = form.arena(backing);
        let directory = Directory::new(&segment, layout.directory, heap_bytes, arena);
        let locked = directory.lock(header.poison.flag()).ok_or(HeapError::Failed)?;
        let world = locked.group_place(0).ok_or(HeapError::Failed)?;
        drop(locked);
        let net = Net::new(transport, config.pes);
        let staging = |pe: Rank| {
            let place = config.nodes.place(pe.0) as usize;
            let at = layout.staging + place * layout.staging_bytes;
            let is_here = match &joined {
                Some(joined) => joined.member.rank() == pe,
                None => net.is_own(pe),
            };
            is_here.then(|| Staging::new(&segment, at..at + layout.staging_bytes, &extents))
        };
        let staged = if layout.staging_bytes > 0 { config.pes } else { 0 };
        let staging = (0..staged).map(Rank).map(staging).collect();
        Ok(Arc::new(Self {
            _child_failure: ChildFailure::new(&segment, layout.states, config.pes as usize),
            process: ProcessToken::current(),
            states: SegmentSlice::new(&segment, layout.states, config.pes as usize),
            config: Config { heap_bytes, ..config },
            layout,
            header,
            segment,
            directory,
            world,
            sites: Sites::default(),
            number: NEXT.fetch_add(1, Relaxed),
            joined,
            staging,
            net,
            extents,
        }))
    }

    /// Returns whether this process made the job and is not a child that was forked later.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.process.is_current()
    }

    /// Returns the memory in which a PE of this process exposes private buffers, if PEs of other
    /// processes are near.
    #[inline]
    pub(crate) fn staging(&self, pe: Rank) -> Option<&Staging> {
        self.staging.get(pe.index())?.as_ref()
    }

    /// Returns this process's PE, if the PEs are processes.
    #[must_use]
    pub fn own(&self) -> Option<Rank> {
        self.joined.as_ref().map(|joined| joined.member.rank())
    }

    pub(super) fn wake_all(&self) {
        self.states.iter().for_each(|state| state.parker.wake(self.scope()));
    }

    /// Returns the nanoseconds since the job began, on a clock that all its PEs share.
    pub(crate) fn now_ns(&self) -> u64 {
        clock::now_ns().saturating_sub(self.header.epoch_ns.load(Relaxed))
    }

    pub(crate) fn region(&self) -> u64 {
        self.header.region.number.load(Relaxed)
    }

    /// Begins the parallel region of this number, which is greater than those of earlier ones. All
    /// PEs must have ended the previous one, and must learn of this one only after the caller has
    /// called this.
    pub fn begin_region(&self, number: u64) {
        self.header.region.number.store(number, Relaxed);
    }

    /// Returns the job's number among the jobs of this process.
    #[inline(always)]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the segment that contains the memory of the group at `at`, and its offset in that
    /// segment.
    ///
    /// # Errors
    /// When this process cannot map the segment.
    pub(crate) fn find_group(&self, at: usize) -> Result<(Arc<Segment>, usize), Box<MemoryError>> {
        self.directory.find_group(at)
    }

    /// Returns the locked directory. `None` only if the job has failed.
    pub(crate) fn directory(&self) -> Option<LockedDirectory<'_>> {
        self.directory.lock(self.poison_flag())
    }

    /// Returns the launch's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the fabric's capabilities in a team of `pes` PEs.
    #[must_use]
    pub fn capabilities_of(pes: u32) -> Capabilities {
        Geometry::of(pes as usize, Nodes::One).capabilities(Nodes::One)
    }

    #[inline(always)]
    pub(crate) fn scope(&self) -> Scope {
        self.config.memory.scope()
    }

    /// Wakes a PE, by its rank in the world, after a store for which it may wait.
    #[inline(always)]
    pub(crate) fn wake(&self, pe: Rank) {
        if self.must_notify() {
            self.wake_now(pe);
        }
    }

    /// Returns whether a PE must be notified of a store: some thread of the job sleeps, or PEs are
    /// far.
    #[inline(always)]
    pub(crate) fn must_notify(&self) -> bool {
        self.header.sleepers.any()
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn wake_now(&self, pe: Rank) {
        self.states[pe.index()].parker.wake(self.scope());
    }

    /// Returns the place where threads sleep until a PE is woken.
    pub(crate) fn parking_slot(&self, pe: Rank) -> ParkingSlot<'_> {
        ParkingSlot {
            parker: &self.states[pe.index()].parker,
            sleepers: &self.header.sleepers,
            senders_fence: self.config.senders_fence(),
            scope: self.scope(),
            threads: self.config.here,
        }
    }

    /// Returns whether the job has failed.
    #[inline(always)]
    pub fn is_poisoned(&self) -> bool {
        self.poison_flag().is_raised()
    }

    #[inline(always)]
    pub(crate) fn poison_flag(&self) -> &PoisonFlag {
        self.header.poison.flag()
    }

    /// Fails the job permanently and wakes all PEs. Only the first failure is recorded.
    #[cold]
    pub fn poison(&self, failure: &Failure) {
        let reason = reason::encode(failure);
        if self.claim(&reason) {
            self.announce_failure(&reason);
        }
    }

    /// Fails the job in this process, unless it has already failed. Returns whether this call
    /// failed it.
    #[cold]
    pub(crate) fn claim(&self, reason: &[u64]) -> bool {
        let is_first = self.header.poison.claim(reason);
        if is_first {
            self.wake_all();
        }
        is_first
    }

    /// Fails the job because a PE has panicked.
    #[cold]
    pub fn fail(&self, rank: Rank, panic: &Panic) {
        self.poison(&Failure::Pe { rank, reason: panic_reason(&**panic) });
    }

    /// Returns why the job has failed; `None` if it has not, or if the reason was never written.
    pub fn failure(&self) -> Option<Failure> {
        self.header.poison.reason().and_then(|words| reason::decode(&words))
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("config", &self.config).finish_non_exhaustive()
    }
}
