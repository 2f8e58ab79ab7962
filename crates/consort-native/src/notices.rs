//! Broadcasts that only their source calls, between threads: the shared-memory [`Interrupts`].
//!
//! Nobody is interrupted here: a notice lies in its place until the PE looks. All of it is one
//! block of symmetric memory, so a job without such broadcasts pays nothing. For each PE:
//!
//! | lines | content |
//! | --- | --- |
//! | one | word 0, the bell: notices that have been given to this PE |
//! | one a peer | the notice that it has given last: payload, and its number stored last |
//! | one a peer | word 0: the number of the own notice that it has acknowledged last |
//! | the rest | the buffer |
//!
//! A PE that has nothing to do reads two words that change only when there is something: the bell,
//! and one peer's acknowledgement. Whoever has counted fewer notices than the bell looks for the
//! others, from the peer after the last one on, so that none is forgotten for the sake of another.

#![expect(unsafe_code, reason = "keeps notices in symmetric memory")]

use std::{
    cell::Cell,
    fmt,
    future::{Future, poll_fn, ready},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::Poll,
};

use consort_fabric::{Heard, Interrupts, Notice, Op, Poisoned, Rank, Then};

use crate::{
    endpoint::Endpoint,
    heap::HeapError,
    job::{Job, LINE_WORDS},
    line::PAYLOAD_WORDS,
    memory::Memory,
    symmetric::Block,
};

/// Bytes of a line.
const LINE_BYTES: usize = 8 * LINE_WORDS;

/// One PE's part in broadcasts that only their source calls. Stays on its thread.
pub struct NoticeBoard {
    job: Arc<Job>,
    rank: Rank,
    block: Block,
    buffer_bytes: usize,
    /// The number of the last notice of each peer that was taken.
    seen: Box<[Cell<u64>]>,
    /// Notices that were taken.
    taken: Cell<u64>,
    /// Where the next search begins.
    next: Cell<u32>,
}

impl NoticeBoard {
    /// This PE's part, with a buffer of so many bytes a PE. The caller sees to it that no peer
    /// begins before all are here (a barrier).
    ///
    /// # Errors
    /// When the heap has no room, or a peer asked for another size.
    pub fn allocate(endpoint: &Endpoint, buffer_bytes: usize) -> Result<Self, HeapError> {
        let job = Arc::clone(endpoint.job());
        let pes = job.config().pes as usize;
        let bytes = buffer_bytes.saturating_add(Self::buffer_at(pes));
        Ok(Self {
            block: Block::allocate(endpoint, bytes)?,
            rank: endpoint.rank(),
            buffer_bytes,
            seen: (0..pes).map(|_| Cell::new(0)).collect(),
            taken: Cell::new(0),
            next: Cell::new(0),
            job,
        })
    }

    /// Where the buffer begins in the block.
    const fn buffer_at(pes: usize) -> usize {
        (1 + 2 * pes) * LINE_BYTES
    }

    /// A word of a line of `pe`.
    fn word(&self, pe: Rank, line: usize, index: usize) -> &AtomicU64 {
        assert!(line < 1 + 2 * self.seen.len() && index < LINE_WORDS, "a line before the buffer");
        let at = self.block.offset() + line * LINE_BYTES + 8 * index;
        let address = self.job.heap.base(pe.index()).wrapping_add(at).cast::<u64>();
        // SAFETY: aligned, and inside the block by the line above; the heap lives as long as the
        // job, which `self` holds; shared memory is only accessed atomically.
        unsafe { AtomicU64::from_ptr(address) }
    }

    fn bell(&self, pe: Rank) -> &AtomicU64 {
        self.word(pe, 0, 0)
    }

    /// A word of the notice that `from` gives to `to`.
    fn notice(&self, to: Rank, from: Rank, index: usize) -> &AtomicU64 {
        self.word(to, 1 + from.index(), index)
    }

    /// Where `by` acknowledges the notices of `to`.
    fn acknowledgement(&self, to: Rank, by: Rank) -> &AtomicU64 {
        self.word(to, 1 + self.seen.len() + by.index(), 0)
    }

    /// The beginning of a PE's buffer.
    fn buffer(&self, pe: Rank, bytes: usize) -> Memory {
        assert!(bytes <= self.buffer_bytes, "a chunk fits the buffer");
        let at = self.block.offset() + Self::buffer_at(self.seen.len());
        Memory { at: self.job.heap.base(pe.index()).wrapping_add(at), bytes, shared: true }
    }

    fn wake(&self, pe: Rank) {
        if self.job.parks() {
            self.job.states[pe.index()].parker.wake();
        }
    }

    fn give(&self, to: Rank, notice: &Notice) {
        let then = match notice.then {
            Then::More => 0,
            Then::Message => 1,
            Then::Nothing => 2,
        };
        let payload = [
            u64::from(notice.source.0),
            notice.message,
            notice.at as u64,
            notice.bytes as u64,
            then,
        ];
        for (index, word) in payload.into_iter().enumerate() {
            self.notice(to, self.rank, index).store(word, Relaxed);
        }
        // Release: pairs with the first acquire of the number in `take`.
        self.notice(to, self.rank, PAYLOAD_WORDS).store(notice.number, Release);
        self.bell(to).fetch_add(1, Release); // pairs with the acquire in `take`
        self.wake(to);
    }

    /// Takes a notice, if one is there.
    fn take(&self) -> Option<Notice> {
        // Acquire: pairs with the release in `give`; whoever sees a count finds what was counted.
        if self.bell(self.rank).load(Acquire) == self.taken.get() {
            return None;
        }
        let pes = self.size();
        let mut peers = (0..pes).map(|step| Rank((self.next.get() + step) % pes));
        let (from, number) = peers.find_map(|peer| {
            // Acquire: pairs with the release in `give`.
            let number = self.notice(self.rank, peer, PAYLOAD_WORDS).load(Acquire);
            (number != self.seen[peer.index()].get()).then_some((peer, number))
        })?;
        self.seen[from.index()].set(number);
        self.taken.set(self.taken.get() + 1);
        self.next.set(from.0 + 1);
        let word = |index| self.notice(self.rank, from, index).load(Relaxed);
        // All come from a `u32` or a `usize`.
        let size = |index| usize::try_from(word(index)).unwrap_or(usize::MAX);
        Some(Notice {
            from,
            number,
            source: Rank(u32::try_from(word(0)).unwrap_or(u32::MAX)),
            message: word(1),
            at: size(2),
            bytes: size(3),
            then: match word(4) {
                0 => Then::More,
                1 => Then::Message,
                _ => Then::Nothing,
            },
        })
    }

    /// Whether `by` has acknowledged the own notice of this number.
    fn has_acknowledged(&self, by: Rank, number: u64) -> bool {
        // Acquire: pairs with the release in `acknowledge`: the buffer is read.
        self.acknowledgement(self.rank, by).load(Acquire) >= number
    }

    /// `value`, unless the job has failed.
    fn alive<T>(&self, value: T) -> Op<T> {
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(value) }
    }
}

/// All of some bytes of this PE's own.
fn private(data: *mut u8, bytes: usize) -> Memory {
    Memory { at: data, bytes, shared: false }
}

impl Interrupts for NoticeBoard {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.job.config().pes
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn buffer_is_near(&self) -> bool {
        false
    }

    fn fill(&self, _: &Notice, data: &[u8]) -> impl Future<Output = Op> {
        let source = private(data.as_ptr().cast_mut(), data.len());
        self.buffer(self.rank, data.len()).copy_from(source);
        ready(self.alive(()))
    }

    fn relay(&self, from: Rank, bytes: usize) -> impl Future<Output = Op> {
        self.buffer(self.rank, bytes).copy_from(self.buffer(from, bytes));
        ready(self.alive(()))
    }

    fn fetch(&self, from: Rank, data: &mut [u8]) -> impl Future<Output = Op> {
        let bytes = data.len();
        private(data.as_mut_ptr(), bytes).copy_from(self.buffer(from, bytes));
        ready(self.alive(()))
    }

    fn interrupt(&self, to: &[Rank], notice: Notice) -> impl Future<Output = Op> {
        for &peer in to {
            self.give(peer, &notice);
        }
        ready(self.alive(()))
    }

    fn acknowledge(&self, to: Rank, number: u64) -> impl Future<Output = Op> {
        // Release: pairs with the acquire in `has_acknowledged`.
        self.acknowledgement(to, self.rank).store(number, Release);
        self.wake(to);
        ready(self.alive(()))
    }

    fn is_acknowledged(&self, by: Rank, number: u64) -> impl Future<Output = Op<bool>> {
        ready(self.alive(self.has_acknowledged(by, number)))
    }

    fn look(&self) -> impl Future<Output = Op<Option<Notice>>> {
        ready(self.alive(()).map(|()| self.take()))
    }

    fn listen(&self, of: Option<(Rank, u64)>) -> impl Future<Output = Op<Heard>> {
        poll_fn(move |_| {
            if let Err(poisoned) = self.alive(()) {
                return Poll::Ready(Err(poisoned));
            }
            if let Some(notice) = self.take() {
                return Poll::Ready(Ok(Heard::Notice(notice)));
            }
            match of {
                Some((by, number)) if self.has_acknowledged(by, number) => {
                    Poll::Ready(Ok(Heard::Acknowledged))
                }
                _ => Poll::Pending,
            }
        })
    }
}

impl fmt::Debug for NoticeBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeBoard").field("rank", &self.rank).finish_non_exhaustive()
    }
}
