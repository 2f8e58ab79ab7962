//! What the PEs of a launch share: poison, parkers, and the segment with its directory.
//!
//! | part of the segment | what |
//! | --- | --- |
//! | the directory | who has what; see `directory` |
//! | a message buffer for each PE | two chunks |
//! | a heap for each PE | symmetric memory |
//! | the rest | groups: inboxes, and what members show |

use std::{
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
    directory::{self, Directory, HeapError, Locked, NoNumber, Place},
    engine::{Panic, panic_reason},
    group::Geometry,
    lending::Accessing,
    machine::Queue,
    segment::{PAGE, Segment},
    sync::AtomicBool,
    waiting::{Parker, Waiting},
};

/// Bits of the sequence number in a message's word; what tells calls apart is above them.
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
    /// The sequence number of the first step, from 1 on. Tests of what happens when numbers begin
    /// again begin close to that.
    pub first_step: u64,
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
}

#[repr(align(128))]
struct Poison(AtomicBool);

/// Groups as large as the world that there is room for, at least: it is only reserved.
const WORLDS: usize = 1024;
/// The most bytes that are reserved for groups.
const MOST_GROUND: usize = 1 << 40;

/// Where the parts of a job's segment begin.
#[derive(Clone, Copy, Debug)]
struct Parts {
    buffers: usize,
    heaps: usize,
    /// From one PE's heap to the next's.
    heap_stride: usize,
    ground: usize,
}

impl Parts {
    fn of(pes: usize, heap_bytes: usize) -> Option<Self> {
        let buffers = directory::BYTES;
        let heaps = buffers + pes * BUFFER_BYTES;
        // A page more, so that equal offsets of different PEs fall into different cache sets.
        let heap_stride = heap_bytes.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
        let ground = heap_stride.checked_mul(pes)?.checked_add(heaps)?;
        Some(Self { buffers, heaps, heap_stride, ground })
    }

    /// The segment, with room for many groups of which the largest has so many bytes, or, where the
    /// system does not reserve as much, for fewer.
    fn reserve(&self, group_bytes: usize) -> Option<Segment> {
        let most = group_bytes.saturating_mul(WORLDS).min(MOST_GROUND);
        reserve_sparingly(group_bytes, most, |room| {
            self.ground.checked_add(room).and_then(Segment::reserve)
        })
    }
}

/// Reserves `most`, or, where there is not so much, about a quarter of what there is, since threads
/// and other jobs need some too; at least `least`.
fn reserve_sparingly<R>(
    least: usize,
    most: usize,
    reserve: impl Fn(usize) -> Option<R>,
) -> Option<R> {
    let whole = most.max(least);
    if let Some(reserved) = reserve(whole) {
        return Some(reserved);
    }
    let mut halves = std::iter::successors(Some(whole / 2), |room| Some(room / 2));
    let room = halves.find(|&room| room <= least || reserve(room).is_some())?;
    reserve((room / 4).max(least)).or_else(|| reserve(least))
}

/// A launch. Lives until its last PE, buffer and handle is gone.
pub struct Job {
    config: Config,
    poisoned: Poison,
    failure: Mutex<Option<Failure>>,
    pub(crate) segment: Arc<Segment>,
    parts: Parts,
    directory: Directory,
    /// By rank in the world.
    pub(crate) states: Box<[PeState]>,
    /// The group of all PEs.
    pub(crate) world: Place,
    pub(crate) deadlocks: Deadlocks,
    /// When the clock common to all PEs began.
    pub(crate) epoch: Instant,
}

impl Job {
    /// Sets up what `config` describes. The caller starts the threads.
    ///
    /// # Errors
    /// When the system gives no memory.
    pub fn new(config: Config) -> Result<Arc<Self>, HeapError> {
        let pes = config.pes as usize;
        let system = HeapError::System { heap: config.heap_bytes, pes };
        let group_bytes = Geometry::of(pes).bytes().next_multiple_of(PAGE);
        let heap_bytes = config.heap_bytes.checked_next_multiple_of(directory::BLOCK_ALIGN);
        let heap_bytes = heap_bytes.ok_or(system)?;
        let parts = Parts::of(pes, heap_bytes).ok_or(system)?;
        let segment = Arc::new(parts.reserve(group_bytes).ok_or(system)?);
        segment.keep_pages_small(0..parts.heaps);
        segment.keep_pages_small(parts.ground..segment.bytes());
        if config.pes > config.cores {
            // So many PEs share a machine that a large page for each would be too much.
            segment.keep_pages_small(parts.heaps..parts.ground);
        }
        let directory = Directory::new(&segment, heap_bytes, parts.ground);
        let poisoned = Poison(AtomicBool::new(false));
        let locked = directory.lock(&poisoned.0).ok_or(system)?;
        let world = locked.found_group(pes, group_bytes).map_err(|_| system)?;
        drop(locked);
        let state = || PeState {
            accessing: Default::default(),
            parker: Parker::default(),
            queue: Queue::default(),
        };
        Ok(Arc::new(Self {
            config: Config { heap_bytes, ..config },
            poisoned,
            failure: Mutex::new(None),
            segment,
            parts,
            directory,
            states: (0..pes).map(|_| state()).collect(),
            world,
            deadlocks: Deadlocks::new(pes),
            epoch: Instant::now(),
        }))
    }

    /// The beginning of a PE's symmetric heap, by its rank in the world.
    #[inline(always)]
    pub(crate) fn heap(&self, pe: Rank) -> *mut u8 {
        let Parts { heaps, heap_stride, .. } = self.parts;
        self.segment.at(heaps + pe.index() * heap_stride, self.config.heap_bytes)
    }

    /// Bytes of a PE's symmetric heap.
    #[inline(always)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.config.heap_bytes
    }

    /// The beginning of a PE's message buffer, by its rank in the world.
    #[inline(always)]
    pub(crate) fn buffer(&self, pe: Rank) -> *mut u8 {
        self.segment.at(self.parts.buffers + pe.index() * BUFFER_BYTES, BUFFER_BYTES)
    }

    /// What the PEs have to agree on, for this one alone until it is dropped. `None` only in a job
    /// that has failed.
    pub(crate) fn directory(&self) -> Option<Locked<'_>> {
        self.directory.lock(self.poison_flag())
    }

    /// Whether teams have been made besides the world.
    pub(crate) fn has_made_teams(&self) -> bool {
        self.directory.has_made_teams()
    }

    /// What the launch fixed.
    pub fn config(&self) -> &Config {
        &self.config
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

    /// The name of the call whose number a word has.
    pub(crate) fn name_of(&self, word: u64) -> String {
        let name = self.directory().and_then(|directory| directory.name(word >> SEQUENCE_BITS));
        name.unwrap_or_else(|| "an unknown call".to_owned())
    }

    /// The number of a call by its name, the same on all PEs, for as long as it is held.
    ///
    /// # Errors
    /// When there are as many different calls as can be told apart, or the job has failed.
    pub fn number(self: &Arc<Self>, name: &str) -> Result<CallNumber, NoNumber> {
        let directory = self.directory().ok_or(NoNumber { most: 0 })?;
        let recent = |note: &mut dyn FnMut(u64)| {
            for (at, pes) in directory.groups() {
                Geometry::of(pes).recent_words(self, at, |word| note(word >> SEQUENCE_BITS));
            }
        };
        let number = directory.hold_name(name, recent)?;
        drop(directory);
        Ok(CallNumber { job: Arc::clone(self), number })
    }
}

/// The number of a call, held by a plan.
pub struct CallNumber {
    job: Arc<Job>,
    number: u64,
}

impl CallNumber {
    /// The number.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.number
    }
}

impl Drop for CallNumber {
    fn drop(&mut self) {
        if let Some(directory) = self.job.directory() {
            directory.release_name(self.number);
        }
    }
}

impl fmt::Debug for CallNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallNumber").field(&self.number).finish()
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_memory_is_short_most_of_it_is_left() {
        let reserve = |least, most, there: usize| {
            reserve_sparingly(least, most, |room| (room <= there).then_some(room))
        };
        assert_eq!(reserve(10, 1000, 1000), Some(1000));
        assert_eq!(reserve(10, 5, 10), Some(10));
        for there in 10..1000 {
            let reserved = reserve(10, 1000, there).expect("the least is there");
            assert!(reserved == 10 || reserved <= there / 4, "{reserved} of {there}");
            assert!(reserved >= 10 && reserved >= there / 8 - 1, "{reserved} of {there}");
        }
        assert_eq!(reserve(10, 1000, 9), None);
    }
}
