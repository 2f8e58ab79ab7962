//! State that the PEs of a session share in symmetric memory, because they may be processes.
//!
//! PE 0's decisions are in its part of the memory; each PE's spans and counts are in the PE's part.

#![expect(unsafe_code, reason = "views words of symmetric memory as a ping-pong")]

use std::time::Duration;

use consort::{Error, Pe, Rank, Result, Symmetric, Team, symmetric::Atomic};

use super::session::{Mode, block_time};
use crate::limits::PingPong;

/// Start and end, in nanoseconds.
pub(super) type Interval = (u64, u64);

/// The largest number of single calls in a block.
const MOST_SPANS: usize = 1 << 15;
/// The words of a ping-pong, aligned to two lines wherever they begin.
const PING_PONG_WORDS: usize = 2 * size_of::<PingPong>() / size_of::<u64>();

/// The words of a part that precede its ping-pong.
#[derive(Clone, Copy)]
enum PartWord {
    /// PE 0's last decision, and the one before it.
    Decisions,
    /// The start of the next call on the common clock.
    Go = 2,
    /// The number of spans of a PE's latest block.
    SpanCount,
    /// How often a PE has lost its processor.
    Switches,
    /// Whether it has lost its processor in its latest block: 0 or 1.
    IsDisturbed,
    PingPong = 16,
}

/// State that the PEs of a session share.
pub(super) struct SessionState {
    /// The intended time of a block.
    pub(super) block: Duration,
    /// Whether each PE has a core.
    pub(super) fits: bool,
    mode: Mode,
    rank: Rank,
    size: usize,
    words: Symmetric<u64>,
    /// Each PE's latest block: start and end of each call, or the local time of all calls as one
    /// span.
    spans: Symmetric<u64>,
}

impl SessionState {
    /// Creates the state; `fits` is whether each PE has a core. Collective.
    pub(super) fn new(pe: &Pe, mode: Mode, fits: bool) -> Result<Self> {
        let world = pe.world();
        Ok(Self {
            block: block_time(fits),
            fits,
            mode,
            rank: world.rank(),
            size: world.size(),
            words: world.symmetric(PartWord::PingPong as usize + PING_PONG_WORDS)?,
            spans: world.symmetric(2 * Self::most_spans(mode))?,
        })
    }

    pub(super) fn heap_bytes(mode: Mode) -> usize {
        (PartWord::PingPong as usize + PING_PONG_WORDS + 2 * Self::most_spans(mode))
            * size_of::<u64>()
    }

    fn most_spans(mode: Mode) -> usize {
        match mode {
            Mode::Throughput => 1,
            Mode::Latency => MOST_SPANS,
        }
    }

    /// Returns how many calls may be timed as one block at most.
    pub(super) fn most_calls(&self) -> u64 {
        match self.mode {
            Mode::Throughput => u64::MAX,
            Mode::Latency => MOST_SPANS as u64,
        }
    }

    /// Returns the ping-pong between PEs 0 and 1, if each PE has a core.
    pub(super) fn ping_pong(&self) -> Result<Option<&PingPong>> {
        if !self.fits || self.size < 2 {
            return Ok(None);
        }
        let first = self.words.address(Rank(0), PartWord::PingPong as usize)?;
        let first = first.wrapping_byte_add(first.align_offset(align_of::<PingPong>()) * 8);
        // SAFETY: the words hold a ping-pong at any alignment, and are valid while `self` has them.
        // They are zero at first, like a ping-pong that has not begun. All accesses are atomic.
        Ok(Some(unsafe { &*first.cast::<PingPong>() }))
    }

    /// Passes PE 0's decision `number` to all PEs. Two cells are used in turn: a cell is written
    /// again only after all PEs have passed the barrier of the next decision, and therefore have
    /// read this one.
    pub(super) fn agree(&self, world: &Team, number: usize, mine: u64) -> Result<u64> {
        let cell = PartWord::Decisions as usize + number % 2;
        if self.rank == Rank(0) {
            self.words.store(cell, mine)?;
        }
        world.barrier()?;
        let mut decided = [0];
        self.words.get(Rank(0), cell, &mut decided)?;
        Ok(decided[0])
    }

    pub(super) fn announce(&self, go_ns: u64) -> Result<()> {
        self.words.store(PartWord::Go as usize, go_ns)
    }

    /// Returns the start that was announced last.
    ///
    /// # Errors
    /// If the job has failed.
    pub(super) fn announced(&self) -> Result<u64> {
        self.words.atomic(Rank(0), PartWord::Go as usize, Atomic::Load)
    }

    /// Publishes the spans of this PE's latest block, and whether the PE lost its processor in it.
    pub(super) fn show(&self, spans: &[Interval], is_disturbed: bool) -> Result<()> {
        let flat: Vec<u64> = spans.iter().flat_map(|&(start, end)| [start, end]).collect();
        self.spans.put(self.rank, 0, &flat)?;
        self.words.store(PartWord::IsDisturbed as usize, is_disturbed.into())?;
        self.words.store(PartWord::SpanCount as usize, spans.len() as u64)
    }

    /// Returns whether a PE with its own core lost it during the latest block.
    pub(super) fn is_disturbed(&self) -> Result<bool> {
        let mut ranks = (0..self.size).map(Rank::new).filter(|_| self.fits);
        ranks.try_fold(false, |any, pe| Ok(any | (self.word(pe, PartWord::IsDisturbed)? > 0)))
    }

    /// Returns the spans of each PE's latest block.
    pub(super) fn all_spans(&self) -> Result<Vec<Vec<Interval>>> {
        let of = |pe| {
            let count = usize::try_from(self.word(pe, PartWord::SpanCount)?).unwrap_or(0);
            let mut flat = vec![0; 2 * count];
            self.spans.get(pe, 0, &mut flat)?;
            Ok(flat.chunks_exact(2).map(|span| (span[0], span[1])).collect())
        };
        (0..self.size).map(Rank::new).map(of).collect()
    }

    /// Adds up the counts of all PEs. Collective; only PE 0 gets the sum.
    pub(super) fn sum(&self, world: &Team, count: u64) -> Result<u64> {
        self.words.store(PartWord::Switches as usize, count)?;
        world.barrier()?;
        let mut sum = 0;
        if self.rank == Rank(0) {
            for pe in (0..self.size).map(Rank::new) {
                sum += self.word(pe, PartWord::Switches)?;
            }
        }
        world.barrier()?;
        Ok(sum)
    }

    fn word(&self, pe: Rank, word: PartWord) -> Result<u64, Error> {
        self.words.atomic(pe, word as usize, Atomic::Load)
    }
}
