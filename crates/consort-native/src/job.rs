//! What the PEs of a launch share: poison, parkers, message buffers and the symmetric heap.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
    time::Instant,
};

use consort_fabric::{Capabilities, Rank};

use crate::{
    deadlock::Deadlocks,
    engine::{Panic, panic_reason},
    forming::Forming,
    group::{Geometry, Group},
    heap::{Heap, HeapError},
    lending::Accessing,
    line::Line,
    machine::Queue,
    sync::AtomicBool,
    waiting::{Parker, Waiting},
};

/// Bits of the sequence number in a message's word; the fingerprint is above them.
///
/// 40 bits last 39 hours of barriers at 130 ns; 32 would begin again after 9 minutes.
pub const SEQUENCE_BITS: u32 = 40;
pub(crate) const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// Buffers that a PE may lend to a peer in one call.
pub(crate) const LOANS: u32 = 2;

/// Bytes of a PE's message buffer: two chunks that stay in a core's own caches.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// What a launch fixes.
#[derive(Clone, Debug)]
pub struct Config {
    /// PEs in the job.
    pub pes: u32,
    /// How they wait.
    pub waiting: Waiting,
    /// Usable cores.
    pub cores: u32,
    /// Bytes of symmetric memory a PE.
    pub heap_bytes: usize,
}

/// Why a job has failed. Kept once; what every PE's error is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A PE panicked, or returned an error of its own.
    Pe {
        /// Which.
        rank: Rank,
        /// What it said.
        reason: String,
    },
    /// Two PEs made different calls where the same was due.
    Mismatched {
        /// Calls that went well before this one, on this team.
        call: u64,
        /// One PE and what it called.
        one: (Rank, String),
        /// Another and what it called instead.
        other: (Rank, String),
        /// The team's PEs by their ranks in the world; none for the world.
        team: Vec<Rank>,
    },
    /// Two PEs of a varied collective do not say the same of the piece that goes from one to the
    /// other.
    Pieces {
        /// What they called, and in which team.
        call: String,
        /// The PE whose buffer the piece is copied to or from, and how long it says that it is, in
        /// bytes.
        lender: (Rank, usize),
        /// The PE that was to copy it, and how long that says that it is, in bytes.
        borrower: (Rank, usize),
    },
    /// A PE finished while others wait in a call that it never made.
    Finished {
        /// Who finished.
        rank: Rank,
        /// Who waits.
        waiting: Rank,
        /// In what.
        call: String,
        /// The team's PEs by their ranks in the world; none for the world.
        team: Vec<Rank>,
    },
    /// PEs wait for each other in calls of different teams, each of which another has not begun.
    Deadlock {
        /// One PE and the call that it waits in.
        one: (Rank, String),
        /// A PE that has not begun that call, and the one that it waits in.
        other: (Rank, String),
    },
}

/// The team in which something happened, where it is not the world; its first members.
struct In<'t>(&'t [Rank]);

/// PEs of a team that a message names.
const NAMED: usize = 16;

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(team) = self;
        let Some((first, rest)) = team.split_first() else { return Ok(()) };
        let plural = if rest.is_empty() { "" } else { "s" };
        write!(f, " in the team of PE{plural} {first}")?;
        for rank in rest.iter().take(NAMED - 1) {
            write!(f, ", {rank}")?;
        }
        if team.len() > NAMED { write!(f, ", ... ({} in all)", team.len()) } else { Ok(()) }
    }
}

/// A call by its name, and the team where it is not the world.
pub(crate) fn call_in(call: &str, team: &[Rank]) -> String {
    format!("{call}{}", In(team))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pe { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
            Self::Mismatched { call, one, other, team } => write!(
                f,
                "calls do not match at call {call}{}: PE {} called {}, PE {} called {}",
                In(team),
                one.0,
                one.1,
                other.0,
                other.1
            ),
            Self::Pieces { call, lender, borrower } => write!(
                f,
                "counts do not match in {call}: of the piece between PE {0} and PE {1}, PE {0} \
                 says that it has {2} bytes, PE {1} that it has {3}",
                lender.0, borrower.0, lender.1, borrower.1
            ),
            Self::Finished { rank, waiting, call, team } => {
                let team = In(team);
                write!(f, "PE {rank} finished while PE {waiting} waits for it in {call}{team}")
            }
            Self::Deadlock { one, other } => write!(
                f,
                "a deadlock between teams: PE {} waits in {}, which PE {} has not begun: it waits \
                 in {}; all PEs must call their teams in an order that all can follow",
                one.0, one.1, other.0, other.1
            ),
        }
    }
}

/// What one PE shows to the others, on lines of its own, whatever team they meet in.
#[repr(align(128))]
pub(crate) struct PeState {
    /// Raised while the PE copies memory that a peer has lent: in its blocking call, and in its
    /// flights, which another thread may drive meanwhile.
    pub(crate) accessing: [Accessing; 2],
    pub(crate) parker: Parker,
    pub(crate) queue: Queue,
    /// The message buffer. Read and written by whole copies of shared memory only.
    buffer: Box<[Line]>,
}

impl PeState {
    /// The first byte of the message buffer.
    pub(crate) fn buffer(&self) -> *mut u8 {
        self.buffer.as_ptr().cast_mut().cast()
    }
}

#[repr(align(128))]
struct Poison(AtomicBool);

/// A launch. Lives until its last PE, buffer and handle is gone.
pub struct Job {
    config: Config,
    poisoned: Poison,
    failure: Mutex<Option<Failure>>,
    signatures: Mutex<HashMap<u64, String>>,
    pub(crate) heap: Heap,
    /// By rank in the world.
    pub(crate) states: Box<[PeState]>,
    world: Arc<Group>,
    /// Teams that are being made.
    pub(crate) forming: Forming,
    pub(crate) deadlocks: Deadlocks,
    /// When the clock common to all PEs began.
    pub(crate) epoch: Instant,
}

impl Job {
    /// Sets up what `config` describes. The caller starts the threads.
    ///
    /// # Errors
    /// When the system gives no memory for the symmetric heap.
    pub fn new(config: Config) -> Result<Arc<Self>, HeapError> {
        let pes = config.pes as usize;
        let states = (0..pes)
            .map(|_| PeState {
                accessing: Default::default(),
                parker: Parker::default(),
                queue: Queue::default(),
                buffer: Line::array(BUFFER_BYTES / size_of::<Line>()),
            })
            .collect();
        Ok(Arc::new(Self {
            heap: Heap::new(pes, config.heap_bytes)?,
            world: Arc::new(Group::new(0, (0..config.pes).map(Rank).collect())),
            config,
            poisoned: Poison(AtomicBool::new(false)),
            failure: Mutex::new(None),
            signatures: Mutex::new(HashMap::new()),
            states,
            forming: Forming::default(),
            deadlocks: Deadlocks::new(pes),
            epoch: Instant::now(),
        }))
    }

    /// What the launch fixed.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// All PEs.
    pub(crate) fn world(&self) -> &Arc<Group> {
        &self.world
    }

    /// What the fabric can do in a team of `pes` PEs.
    #[must_use]
    pub fn capabilities_of(pes: u32) -> Capabilities {
        Geometry::of(pes as usize).capabilities()
    }

    /// Whether waits must be woken.
    #[inline(always)]
    pub(crate) fn parks(&self) -> bool {
        matches!(self.config.waiting, Waiting::SpinYieldPark)
    }

    /// Wakes a PE, by its rank in the world, after the store that it may wait for.
    #[inline(always)]
    pub(crate) fn wake(&self, pe: Rank) {
        if self.parks() {
            self.states[pe.index()].parker.wake();
        }
    }

    /// Whether the job has failed.
    #[inline(always)]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.0.load(Relaxed)
    }

    /// The flag that says so.
    #[inline(always)]
    pub(crate) fn poison_flag(&self) -> &AtomicBool {
        &self.poisoned.0
    }

    /// Fails the job for good, for the first reason given, and wakes everybody.
    #[cold]
    pub fn poison(&self, failure: Failure) {
        self.failure_slot().get_or_insert(failure);
        // Release: pairs with the acquire in `failure`, through the mutex as well.
        self.poisoned.0.store(true, Release);
        for state in &self.states {
            state.parker.wake();
        }
    }

    /// Fails the job since a PE has panicked.
    #[cold]
    pub fn fail(&self, rank: Rank, panic: &Panic) {
        self.poison(Failure::Pe { rank, reason: panic_reason(&**panic) });
    }

    fn failure_slot(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the job has failed, if it has.
    pub fn failure(&self) -> Option<Failure> {
        self.poisoned.0.load(Acquire).then(|| self.failure_slot().clone()).flatten()
    }

    fn signatures(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        self.signatures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint of a call, which is remembered by this description.
    pub fn fingerprint(&self, call: &str) -> u64 {
        // FNV-1a, folded to the bits that a word has for it.
        let hash = call.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let fingerprint = (hash ^ (hash >> 24)) >> SEQUENCE_BITS;
        self.signatures().entry(fingerprint).or_insert_with(|| call.to_owned());
        fingerprint
    }

    /// The name of the call whose fingerprint a word has.
    pub(crate) fn name_of(&self, word: u64) -> String {
        let known = self.signatures().get(&(word >> SEQUENCE_BITS)).cloned();
        known.unwrap_or_else(|| "an unknown call".to_owned())
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("config", &self.config).finish_non_exhaustive()
    }
}
