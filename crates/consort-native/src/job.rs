//! What the PEs of a launch share: poison, parkers, histories, lines and the symmetric heap.

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
    heap::{Heap, HeapError},
    lending::Accessing,
    line::Line,
    machine::Queue,
    sync::{AtomicBool, AtomicU64},
    waiting::{Parker, Waiting},
};

/// Bits of the sequence number in a message's word; the fingerprint is above them.
///
/// 40 bits last 39 hours of barriers at 130 ns; 32 would begin again after 9 minutes.
pub const SEQUENCE_BITS: u32 = 40;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// Buffers that a PE may lend to a peer in one call.
pub(crate) const LOANS: u32 = 2;

/// Bytes of a PE's message buffer: two chunks that stay in a core's own caches.
const BUFFER_BYTES: usize = 64 << 10;

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
    },
    /// A PE finished while others wait in a call that it never made.
    Finished {
        /// Who finished.
        rank: Rank,
        /// Who waits.
        waiting: Rank,
        /// In what.
        call: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pe { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
            Self::Mismatched { call, one, other } => write!(
                f,
                "calls do not match at call {call}: PE {} called {}, PE {} called {}",
                one.0, one.1, other.0, other.1
            ),
            Self::Finished { rank, waiting, call } => {
                write!(f, "PE {rank} finished while PE {waiting} waits for it in {call}")
            }
        }
    }
}

/// What one PE shows to the others, on lines of its own.
#[repr(align(128))]
pub(crate) struct PeState {
    /// Raised while the PE copies memory that a peer has lent.
    pub(crate) accessing: Accessing,
    /// Word 0: leases given back to this PE; word 1: leases it has made. Both only grow.
    pub(crate) leases: Line,
    /// The word of each recent call, eight a line; see [`PeState::history`].
    history: Box<[Line]>,
    /// The sequence number after the last call, once the PE has finished; else `u64::MAX`.
    pub(crate) finished: AtomicU64,
    pub(crate) parker: Parker,
    /// Word 0 of line `r`: credits that PE `r` has given to this one.
    pub(crate) credits: Box<[Line]>,
    pub(crate) queue: Queue,
    /// What peers lend to this PE: a line for each call of the window, lender and loan.
    pub(crate) loans: Box<[Line]>,
    /// The message buffer. Read and written by whole copies of shared memory only.
    buffer: Box<[Line]>,
}

impl PeState {
    /// Where the word of a call is kept, by its number modulo the window. On lines of this PE
    /// alone: it is written in every call.
    #[inline(always)]
    pub(crate) fn history(&self, turn: usize) -> &AtomicU64 {
        self.history[turn / 8].counter(turn % 8)
    }

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
    pub(crate) states: Box<[PeState]>,
    pub(crate) geometry: Geometry,
    /// When the clock common to all PEs began.
    pub(crate) epoch: Instant,
    /// The inboxes of all PEs, one after the other.
    inboxes: Box<[Line]>,
}

/// The shape of an inbox: first the lines of long messages, call by call, then the cells of short
/// ones, slot by slot.
///
/// A cell is two words: the payload of a message of 8 bytes, or a signal beside the first, and the
/// sequence word. Four successive calls' cells of one slot share a line, so that what a PE sends in
/// a row of calls travels together.
///
/// Last come the words of meetings, slot by slot: those of both PEs, in the inbox of the lower one,
/// four successive calls on a line. Whoever gets the line sees that the other is at the call before
/// its own, and leaves that call and enters the next before it loses the line again. (Measured, two
/// PEs far apart, in transfers: 1.06 a barrier; with the words on lines of their own 1.25 to 1.6.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Calls that may be under way at once: PEs differ by at most this.
    pub(crate) window: usize,
    /// Lines of one call.
    pub(crate) lines: usize,
    /// Lines from one call's to the next's: one more, so that equal slots of successive calls fall
    /// into different cache sets.
    pub(crate) stride: usize,
    /// The first word of cells.
    pub(crate) first_cell: usize,
    /// The first word of meetings.
    pub(crate) first_meeting: usize,
    /// Words of a PE.
    pub(crate) per_pe: usize,
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Words of a cell.
pub(crate) const CELL_WORDS: usize = 2;
/// Words of a meeting: one of each PE.
pub(crate) const MEETING_WORDS: usize = 2;

impl Geometry {
    /// Small teams get room for long messages, large ones a line a peer and a shorter window.
    fn of(pes: usize) -> Self {
        let lines = (4 * pes).max(256);
        let window = if pes <= 64 { 64 } else { 16 };
        let stride = lines + 1;
        let first_cell = stride * window * LINE_WORDS;
        // Regions of different PEs differ in the low 12 bits of their addresses: a PE that stores
        // into a peer's slot and then loads from its own equal one would otherwise be held up,
        // since processors compare just these bits first. (Measured: 2 ns of a near barrier of 80.)
        let apart = 17 * LINE_WORDS;
        let first_meeting = first_cell + lines * window * CELL_WORDS;
        let per_pe = first_meeting + lines * window * MEETING_WORDS + apart;
        Self { window, lines, stride, first_cell, first_meeting, per_pe }
    }

    /// The place of a call in the window.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
    pub(crate) fn turn(&self, call: u64) -> usize {
        call as usize & (self.window - 1)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            inbox_lines: u32::try_from(self.lines).unwrap_or(u32::MAX),
            scratch_bytes: self.lines * size_of::<Line>(),
            buffer_bytes: BUFFER_BYTES,
            lending: true,
            buffered: true,
        }
    }
}

impl Job {
    /// Sets up what `config` describes. The caller starts the threads.
    ///
    /// # Errors
    /// When the system gives no memory for the symmetric heap.
    pub fn new(config: Config) -> Result<Arc<Self>, HeapError> {
        let pes = config.pes as usize;
        let geometry = Geometry::of(pes);
        let window = geometry.window;
        let states = (0..pes)
            .map(|_| PeState {
                accessing: Accessing::default(),
                leases: Line::default(),
                history: Line::array(window.div_ceil(8)),
                finished: AtomicU64::new(u64::MAX),
                parker: Parker::default(),
                credits: Line::array(pes),
                queue: Queue::default(),
                loans: Line::array(window * pes * LOANS as usize),
                buffer: Line::array(BUFFER_BYTES / size_of::<Line>()),
            })
            .collect();
        Ok(Arc::new(Self {
            heap: Heap::new(pes, config.heap_bytes)?,
            config,
            poisoned: Poison(AtomicBool::new(false)),
            failure: Mutex::new(None),
            signatures: Mutex::new(HashMap::new()),
            states,
            inboxes: Line::array(pes * geometry.per_pe / LINE_WORDS),
            geometry,
            epoch: Instant::now(),
        }))
    }

    /// What the launch fixed.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Calls that may be under way at once.
    pub fn window(&self) -> u64 {
        self.geometry.window as u64
    }

    /// What the fabric can do.
    pub fn capabilities(&self) -> Capabilities {
        self.geometry.capabilities()
    }

    /// What the fabric can do in a job of `pes` PEs.
    #[must_use]
    pub fn capabilities_of(pes: u32) -> Capabilities {
        Geometry::of(pes as usize).capabilities()
    }

    /// The words of all inboxes.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        Line::words(&self.inboxes)
    }

    /// Whether waits must be woken.
    #[inline(always)]
    pub(crate) fn parks(&self) -> bool {
        matches!(self.config.waiting, Waiting::SpinYieldPark)
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

    fn name_of(&self, word: u64) -> String {
        let known = self.signatures().get(&(word >> SEQUENCE_BITS)).cloned();
        known.unwrap_or_else(|| "an unknown call".to_owned())
    }

    /// Whether every PE but `rank` has finished: nobody is left to send it anything.
    pub(crate) fn is_alone(&self, rank: Rank) -> bool {
        let others = self.states.iter().enumerate().filter(|&(pe, _)| pe != rank.index());
        let mut finished = others.map(|(_, state)| state.finished.load(Acquire) != u64::MAX);
        self.states.len() > 1 && finished.all(|finished| finished)
    }

    /// Fails the job since `rank` waits for something that nobody is left to send.
    #[cold]
    pub(crate) fn abandon(&self, rank: Rank) {
        let peer = if rank.0 == 0 { 1 } else { 0 };
        let call = "a wait for a message or a word".to_owned();
        self.poison(Failure::Finished { rank: Rank(peer), waiting: rank, call });
    }

    /// Looks for the first of the last calls of `rank`, of which it has begun `calls` in all, that
    /// a peer has made otherwise, and for a peer that has finished without the last one; poisons
    /// the job if there is any.
    #[cold]
    pub(crate) fn check_peers(&self, rank: Rank, calls: u64) {
        for call in calls.saturating_sub(self.window())..calls {
            let turn = self.geometry.turn(call);
            let word = self.states[rank.index()].history(turn).load(Relaxed);
            for (peer, state) in self.others(rank) {
                let theirs = state.history(turn).load(Acquire);
                if theirs & SEQUENCE_MASK == word & SEQUENCE_MASK && theirs != word {
                    let mut both = [(rank, self.name_of(word)), (peer, self.name_of(theirs))];
                    both.sort_by_key(|(rank, _)| *rank);
                    let [one, other] = both;
                    return self.poison(Failure::Mismatched { call, one, other });
                }
            }
        }
        let Some(last) = calls.checked_sub(1) else { return };
        let word = self.states[rank.index()].history(self.geometry.turn(last)).load(Relaxed);
        for (peer, state) in self.others(rank) {
            if state.finished.load(Acquire) <= word & SEQUENCE_MASK {
                let call = self.name_of(word);
                return self.poison(Failure::Finished { rank: peer, waiting: rank, call });
            }
        }
    }

    /// Looks for a peer that has finished after more calls than `rank`, whose sequence number is
    /// `end`; poisons the job if there is one.
    #[cold]
    pub(crate) fn check_finished(&self, rank: Rank, end: u64) {
        for (peer, state) in self.others(rank) {
            let finished = state.finished.load(Acquire);
            if finished != u64::MAX && finished > end {
                let words = (0..self.geometry.window).map(|turn| state.history(turn).load(Acquire));
                let call = self.name_of(words.max_by_key(|word| word & SEQUENCE_MASK).unwrap_or(0));
                return self.poison(Failure::Finished { rank, waiting: peer, call });
            }
        }
    }

    /// All PEs but `rank`.
    fn others(&self, rank: Rank) -> impl Iterator<Item = (Rank, &PeState)> {
        (0..).map(Rank).zip(&self.states).filter(move |(peer, _)| *peer != rank)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("config", &self.config).finish_non_exhaustive()
    }
}
