//! The shared-memory [`Notifications`] for asynchronous broadcasts.
//!
//! No PE is interrupted: a notification stays in its line until the receiver polls. All of this is
//! in one block of symmetric memory, so it costs nothing in a job without such broadcasts. For each
//! PE:
//!
//! | lines | content |
//! | --- | --- |
//! | 1 | word 0, the doorbell: the number of notifications sent to this PE |
//! | 1 for each peer | the peer's last notification: the payload, then its number, stored last |
//! | 1 for each peer | word 0: the number of this PE's last notification acknowledged by the peer |
//! | the rest | the buffer |
//!
//! An idle PE reads two words that change only when there is something to do: the doorbell (see
//! `doorbell`), and one peer's acknowledgement.

#![expect(unsafe_code, reason = "keeps notifications in symmetric memory")]

use std::{
    fmt,
    future::{Future, poll_fn, ready},
    sync::Arc,
    task::Poll,
};

use consort_fabric::{Event, Notification, Notifications, Op, Poisoned, Rank, Then};

use crate::{
    directory::blocks::{BLOCK_ALIGN, HeapError},
    endpoint::identity::Endpoint,
    heap::block::Block,
    inbox::{doorbell::Doorbell, geometry::LINE_WORDS, line::Line},
    launch::job::Job,
    memory::{extent::SharedExtent, region::Memory},
    team::group::Group,
};

const LINE_BYTES: usize = 8 * LINE_WORDS;

/// One PE's part in asynchronous broadcasts. Stays on its thread.
pub struct NotificationBuffers {
    job: Arc<Job>,
    group: Arc<Group>,
    rank: Rank,
    block: Block,
    buffer_bytes: usize,
    /// The listener's state: which notifications this PE has taken.
    received: Doorbell,
}

impl NotificationBuffers {
    /// Allocates this PE's part, with a buffer of `buffer_bytes` on each PE. The caller must run a
    /// barrier afterwards, so that no peer begins before all PEs have returned.
    ///
    /// # Errors
    /// When the heap has no room.
    ///
    /// # Panics
    /// When a peer requests another size.
    pub fn allocate(endpoint: &Endpoint, buffer_bytes: usize) -> Result<Self, HeapError> {
        let job = Arc::clone(endpoint.job());
        let pes = endpoint.size() as usize;
        let bytes = buffer_bytes.saturating_add(Self::buffer_at(pes));
        Ok(Self {
            block: Block::allocate(endpoint, bytes)?,
            group: Arc::clone(endpoint.group()),
            rank: endpoint.rank(),
            buffer_bytes,
            received: Doorbell::new(pes),
            job,
        })
    }

    /// Returns the offset of the buffer in the block.
    const fn buffer_at(pes: usize) -> usize {
        (1 + 2 * pes) * LINE_BYTES
    }

    /// Returns the address at offset `at` of the heap of `pe`.
    fn heap(&self, pe: Rank, at: usize) -> *mut u8 {
        self.job.heap(self.group.in_world(pe)).wrapping_add(at)
    }

    /// Returns line `index` of `pe`.
    fn line(&self, pe: Rank, index: usize) -> &Line {
        const { assert!(align_of::<Line>() <= BLOCK_ALIGN) };
        assert!(index < 1 + 2 * self.received.lines(), "a line before the buffer");
        let at = self.block.offset() + index * LINE_BYTES;
        let address = self.heap(pe, at).cast::<Line>();
        // SAFETY: aligned, because blocks are, and inside the block by the assertion above. The
        // heap lives as long as the job, which `self` holds. Shared memory is only accessed
        // atomically, and any words are a valid line.
        unsafe { &*address }
    }

    fn doorbell(&self, pe: Rank) -> &Line {
        self.line(pe, 0)
    }

    /// Returns the line of `to` with the last notification from `from`.
    fn notification(&self, to: Rank, from: usize) -> &Line {
        self.line(to, 1 + from)
    }

    /// Returns the line of `to` in which `by` acknowledges the notifications of `to`, in word 0.
    fn acknowledgement(&self, to: Rank, by: Rank) -> &Line {
        self.line(to, 1 + self.received.lines() + by.index())
    }

    /// Returns the first `bytes` of a PE's buffer.
    fn buffer(&self, pe: Rank, bytes: usize) -> Memory {
        assert!(bytes <= self.buffer_bytes, "a chunk fits the buffer");
        let at = self.block.offset() + Self::buffer_at(self.received.lines());
        Memory { at: self.heap(pe, at), bytes, shared: Some(SharedExtent::WORDS) }
    }

    fn wake(&self, pe: Rank) {
        self.job.wake(self.group.in_world(pe));
    }

    fn give(&self, to: Rank, notification: &Notification) {
        let then = match notification.then {
            Then::More => 0,
            Then::Message => 1,
            Then::Nothing => 2,
        };
        let payload = [
            u64::from(notification.source.0),
            notification.message,
            notification.at as u64,
            notification.bytes as u64,
            then,
        ];
        Doorbell::give(
            self.doorbell(to),
            self.notification(to, self.rank.index()),
            &payload,
            notification.number,
        );
        self.wake(to);
    }

    fn take(&self) -> Option<Notification> {
        let notification = |from| self.notification(self.rank, from);
        let (from, number) = self.received.take(self.doorbell(self.rank), notification)?;
        let word = |index| notification(from).read(index);
        // Each of these words was written from a `u32` or a `usize`.
        let size = |index| usize::try_from(word(index)).unwrap_or(usize::MAX);
        Some(Notification {
            from: Rank(u32::try_from(from).unwrap_or(u32::MAX)),
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

    /// Returns whether `by` has acknowledged this PE's notification `number`.
    fn has_acknowledged(&self, by: Rank, number: u64) -> bool {
        // Acquire: pairs with the release in `acknowledge`. By then the peer has read the buffer.
        self.acknowledgement(self.rank, by).word_at(0) >= number
    }

    /// Returns `value`, or an error if the job has failed.
    fn alive<T>(&self, value: T) -> Op<T> {
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(value) }
    }
}

impl Notifications for NotificationBuffers {
    fn rank(&self) -> Rank {
        self.rank
    }

    #[expect(clippy::cast_possible_truncation, reason = "ranks are 32 bits wide")]
    fn size(&self) -> u32 {
        self.group.ranks().len() as u32
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn fill(&self, _: &Notification, data: &[u8]) -> impl Future<Output = Op> {
        let source = Memory::private(data.as_ptr().cast_mut(), data.len());
        self.buffer(self.rank, data.len()).copy_from(source);
        ready(self.alive(()))
    }

    fn relay(&self, from: Rank, bytes: usize) -> impl Future<Output = Op> {
        self.buffer(self.rank, bytes).copy_from(self.buffer(from, bytes));
        ready(self.alive(()))
    }

    fn fetch(&self, from: Rank, data: &mut [u8]) -> impl Future<Output = Op> {
        let bytes = data.len();
        Memory::private(data.as_mut_ptr(), bytes).copy_from(self.buffer(from, bytes));
        ready(self.alive(()))
    }

    fn notify(&self, to: &[Rank], notification: Notification) -> impl Future<Output = Op> {
        for &peer in to {
            self.give(peer, &notification);
        }
        ready(self.alive(()))
    }

    fn acknowledge(&self, to: Rank, number: u64) -> impl Future<Output = Op> {
        // Release: pairs with the acquire in `has_acknowledged`.
        self.acknowledgement(to, self.rank).publish_at(0, number);
        self.wake(to);
        ready(self.alive(()))
    }

    fn is_acknowledged(&self, by: Rank, number: u64) -> impl Future<Output = Op<bool>> {
        ready(self.alive(self.has_acknowledged(by, number)))
    }

    fn poll(&self) -> impl Future<Output = Op<Option<Notification>>> {
        ready(self.alive(()).map(|()| self.take()))
    }

    fn wait(&self, of: Option<(Rank, u64)>) -> impl Future<Output = Op<Event>> {
        poll_fn(move |_| {
            if let Err(poisoned) = self.alive(()) {
                return Poll::Ready(Err(poisoned));
            }
            if let Some(notification) = self.take() {
                return Poll::Ready(Ok(Event::Notification(notification)));
            }
            match of {
                Some((by, number)) if self.has_acknowledged(by, number) => {
                    Poll::Ready(Ok(Event::Acknowledged))
                }
                _ => Poll::Pending,
            }
        })
    }
}

impl fmt::Debug for NotificationBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationBuffers").field("rank", &self.rank).finish_non_exhaustive()
    }
}
