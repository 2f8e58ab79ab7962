//! Rendezvous: private buffers that PEs expose to their peers.
//!
//! A PE, the owner, passes the place of its buffer to a peer. The owner must not return before the
//! peer has detached the buffer or can no longer access it:
//!
//! | | owner | peer |
//! | --- | --- | --- |
//! | normally | waits until each exposure is detached | copies, detaches |
//! | once the job has failed | waits until no peer is accessing | does not begin to copy |
//!
//! `state::access_flag` implements the second row. A private buffer is passed by its address, which
//! is only valid within the process. Shared memory is passed by its offset in the segment.
//!
//! PEs of other processes that share memory with this process cannot access a private buffer. They
//! get a copy in shared memory, in the segment or in an extent (`heap::staging`). A peer maps an
//! extent when it first attaches a buffer in it. A buffer in the heap of its PE, such as a view of
//! symmetric memory in another language, needs no copy.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::{Relaxed, Release},
};

use consort_fabric::{Local, Op, Place, Poisoned, Rank, Rendezvous, Span};

use super::{
    operands::Buffer,
    remote::{Remote, RemoteKind},
    view::{CallView, NO_WORD, SOURCE, STAGED, SYMMETRIC, TARGET, UNDER_WAY},
};
use crate::{
    heap::staging::{CallKey, StagedBlock, StagedBuffer, Staging},
    inbox::{
        geometry::LINE_WORDS,
        line::{Line, PAYLOAD_WORDS},
    },
    launch::failure::Failure,
    memory::{extent::SharedExtent, region::Memory},
    segment::memory_error::MemoryError,
    state::access_flag::AccessFlag,
};

/// The sequence word of an exposure that has been attached. No call has this word.
const TAKEN: u64 = 0;
/// The word of an exposure to a far PE.
const FAR: u64 = RemoteKind::Far as u64;
/// The word of an exposure of a copy in an extent.
const IN_EXTENT: u64 = u64::MAX;

impl CallView<'_> {
    /// Fails the job because the owner of a block and this PE disagree on its length.
    #[cold]
    fn disagree(&self, owner: Rank, theirs: usize, own: usize) -> Poisoned {
        let world = |rank| self.group.in_world(rank);
        let call = self.group.name_of_own(self.word);
        self.job.poison(&Failure::Counts {
            call: format!("{call}{}", self.group.team()),
            owner: (world(owner), theirs),
            peer: (world(self.rank), own),
        });
        Poisoned
    }

    /// Exposes a buffer to a peer in a line that `write` fills, and marks that this call has
    /// exposed a buffer of this kind.
    #[inline(always)]
    fn publish_exposure(
        &self,
        to: Rank,
        wakes: bool,
        exposure: u32,
        mark: u32,
        write: impl FnOnce(&Line),
    ) {
        self.marks.store(self.marks.load(Relaxed) | mark, Relaxed);
        // Only this function writes such lines, and it rewrites a line only after the peer has
        // detached the previous exposure. So the peer always reads a complete exposure.
        let line_at = self.group.exposure_at(to, self.rank, self.position, exposure);
        let line = self.group.line_at(line_at);
        self.group.count_exposure(to, self.position, exposure, self.word);
        write(line);
        line.publish(self.word);
        if wakes || self.job.is_far(self.group.in_world(to)) {
            self.notify(to, line_at, LINE_WORDS);
        }
    }

    /// Exposes a buffer to a peer, and wakes it if `wakes`.
    #[inline(always)]
    fn expose_now(&self, to: Rank, wakes: bool, exposure: u32, span: Span) -> Op {
        if let Some(staging) = self.staging_for(to, span) {
            return self.expose_staged(staging, to, wakes, exposure, span);
        }
        let memory = self.resolve(span);
        let (kind, mark) = match span.place {
            Place::Source if !memory.is_shared() => (RemoteKind::Source, SOURCE),
            Place::Target if !self.operands.target.symmetric => {
                let is_receiving = self.receiving.load(Relaxed) != 0;
                assert!(!is_receiving, "a target is not exposed during a receive");
                (RemoteKind::Target, TARGET)
            }
            Place::Source | Place::Target | Place::Heap | Place::Buffer => {
                (RemoteKind::Symmetric, SYMMETRIC)
            }
            Place::Accumulator | Place::Incoming => panic!("scratch memory is never exposed"),
        };
        self.publish_exposure(to, wakes, exposure, mark, |line| {
            // Shared memory has different addresses in different processes, so its offset is sent.
            let (kind, place) = match kind {
                _ if self.expose_far(to, exposure, memory, kind) => (RemoteKind::Far, 0),
                RemoteKind::Source | RemoteKind::Target => (kind, memory.at.expose_provenance()),
                _ => (kind, self.job.segment.offset_of(memory.at)),
            };
            line.write(0, place as u64);
            line.write(1, memory.bytes as u64);
            line.write(2, kind as u64);
            if kind == RemoteKind::Target {
                SharedExtent::exposed(self.operands.target.at, self.operands.target.bytes)
                    .show(line, 3);
            }
        });
        Ok(())
    }

    /// Detaches a peer's buffer, and wakes the peer if `wakes`.
    #[inline(always)]
    fn detach_now(&self, remote: &Remote, wakes: bool) {
        if remote.kind == RemoteKind::Far {
            self.detach_far(remote);
        } else if !matches!(remote.kind, RemoteKind::Reached | RemoteKind::FarHeap) {
            assert!(
                (remote.job, remote.group) == (self.job.number(), self.group.number()),
                "a remote buffer is detached in its own team"
            );
            let detached = self.group.detached_at(remote.owner, remote.position);
            // Release: pairs with the acquire in `await_detached`.
            self.group.line_at(detached).counter(0).fetch_add(1, Release);
            if wakes {
                self.job.wake(self.group.in_world(remote.owner));
            }
        }
    }

    /// Waits until no peer can access the buffers that this PE has exposed. The job must have
    /// failed.
    #[cold]
    fn drain(&self) {
        let peers = (0..self.size()).map(Rank).filter(|&peer| peer != self.rank);
        peers.flat_map(|peer| &self.state(peer).access_flags).for_each(AccessFlag::drain);
    }

    /// Ends the exposures of a call. If a buffer is still attached, fails the job and waits for
    /// accesses to end.
    #[cold]
    fn end_exposures(&self) {
        if self.marks.load(Relaxed) >= UNDER_WAY {
            self.job.end_forgotten(self.group.in_world(self.rank));
        }
        let exposed = self.group.exposed(self.position);
        let detached = self.group.detached_at(self.rank, self.position);
        let are_detached = self.group.line_at(detached).word_at(0) == exposed;
        if !are_detached {
            if !self.job.is_poisoned() {
                let reason = "left a call while its buffers were exposed".to_owned();
                self.job.poison(&Failure::Pe { rank: self.group.in_world(self.rank), reason });
            }
            self.drain();
        }
        self.job.end_far_exposures(self.group.number(), self.rank, self.position);
        self.job.flush();
        if let Some(staging) = self.staging() {
            self.unstage(staging, are_detached);
        }
    }
}

/// Private buffers in memory that peers of other processes can access.
impl CallView<'_> {
    /// Returns the memory in which this PE exposes private buffers to near PEs of other processes.
    fn staging(&self) -> Option<&Staging> {
        self.job.staging(self.group.in_world(self.rank))
    }

    /// Returns the staging for a span that this PE exposes to a peer, if the span must be staged. A
    /// private target must always be staged, because its owner and all peers use it in one place.
    fn staging_for(&self, to: Rank, span: Span) -> Option<&Staging> {
        let staging = self.staging().filter(|_| self.is_private(span))?;
        let is_read = span.place == Place::Source;
        (!is_read || self.job.is_apart(self.group.in_world(to))).then_some(staging)
    }

    fn call_key(&self) -> CallKey {
        (self.group.number(), self.position)
    }

    fn whole_target(&self) -> Span {
        Span { place: Place::Target, at: 0, bytes: self.operands.target.bytes }
    }

    fn staged_memory(staged: &StagedBuffer) -> Memory {
        let bytes = staged.span.bytes;
        Memory { at: staged.block.at(bytes), bytes, shared: Some(SharedExtent::WORDS) }
    }

    fn is_private(&self, span: Span) -> bool {
        match span.place {
            Place::Source => !self.operands.source.symmetric,
            Place::Target => !self.operands.target.symmetric,
            _ => false,
        }
    }

    /// Fails the job because the system has refused memory for a copy.
    #[cold]
    fn has_no_room(&self, reason: &MemoryError) -> Poisoned {
        let reason = format!("{reason}, or use symmetric memory in calls");
        self.job.poison(&Failure::Pe { rank: self.group.in_world(self.rank), reason });
        Poisoned
    }

    /// Returns the memory in shared memory and the block of a part of a private buffer that lies in
    /// this PE's heap.
    fn in_own_heap(&self, span: Span) -> Option<(Memory, StagedBlock)> {
        let memory = self.resolve(span);
        let block = self.job.heap_block(self.group.in_world(self.rank), memory.at, memory.bytes)?;
        Some((Memory { shared: Some(SharedExtent::WORDS), ..memory }, block))
    }

    /// Returns the place at which a part of a private buffer is exposed: in a staged copy, unless
    /// peers can access the buffer itself.
    #[cold]
    fn stage(
        &self,
        staging: &Staging,
        span: Span,
    ) -> Result<(Memory, StagedBlock), Box<MemoryError>> {
        if let Some(place) = self.in_own_heap(span) {
            if span.place == Place::Target {
                self.marks.store(self.marks.load(Relaxed) | TARGET, Relaxed);
            }
            return Ok(place);
        }
        // The owner of a target uses the copy too, so it is a copy of the whole target.
        let whole = if span.place == Place::Target { self.whole_target() } else { span };
        let staged = match staging.find(self.call_key(), whole) {
            Some(staged) => staged,
            None => self.stage_first(staging, whole)?,
        };
        let at = Self::staged_memory(&staged).at.wrapping_add(span.at - staged.span.at);
        Ok((Memory { at, bytes: span.bytes, shared: Some(SharedExtent::WORDS) }, staged.block))
    }

    fn stage_first(
        &self,
        staging: &Staging,
        whole: Span,
    ) -> Result<StagedBuffer, Box<MemoryError>> {
        let is_target = whole.place == Place::Target;
        let is_receiving = self.receiving.load(Relaxed) != 0;
        assert!(!(is_target && is_receiving), "a target is not exposed during a receive");
        let private = self.resolve(whole);
        let staged = staging.stage(self.call_key(), whole)?;
        Self::staged_memory(&staged).stage_from(private);
        if is_target {
            self.marks.store(self.marks.load(Relaxed) | STAGED, Relaxed);
        }
        Ok(staged)
    }

    /// Exposes a copy of a part of a private buffer.
    #[cold]
    #[inline(never)]
    fn expose_staged(
        &self,
        staging: &Staging,
        to: Rank,
        wakes: bool,
        exposure: u32,
        span: Span,
    ) -> Op {
        let staged = self.stage(staging, span);
        let (memory, block) = staged.map_err(|reason| self.has_no_room(&reason))?;
        self.publish_exposure(to, wakes, exposure, SYMMETRIC, |line| {
            let kind = match block.file_at {
                _ if self.expose_far(to, exposure, memory, RemoteKind::Symmetric) => FAR,
                None => RemoteKind::Symmetric as u64,
                Some(file_at) => {
                    line.write(3, file_at);
                    line.write(4, block.segment_bytes() as u64);
                    IN_EXTENT
                }
            };
            line.write(0, block.offset_of(memory.at) as u64);
            line.write(1, memory.bytes as u64);
            line.write(2, kind);
        });
        Ok(())
    }

    /// Returns the address of the copy in an extent that a line exposes. If this process cannot map
    /// the extent, the job fails, and the wait for the line then reports that.
    #[cold]
    #[inline(never)]
    fn attach_staged(&self, line: &Line) -> Option<*mut u8> {
        let [place, bytes, _, file_at, extent_bytes] = [0, 1, 2, 3, 4].map(|at| line.read(at));
        // All words except the file's offset were written from a `usize`.
        let size = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        match self.job.extents.find(file_at, size(extent_bytes)) {
            Ok(segment) => Some(segment.at(size(place), size(bytes))),
            Err(reason) => {
                self.has_no_room(&reason);
                None
            }
        }
    }

    /// Returns the place of an exposed private target: the target itself, or its staged copy.
    #[cold]
    #[inline(never)]
    pub(super) fn exposed_target(&self) -> (*mut u8, usize, Option<SharedExtent>) {
        let Buffer { at, bytes, .. } = self.operands.target;
        if self.marks.load(Relaxed) & STAGED == 0 {
            // Peers of other processes know a target in the heap only as a part of the heap.
            let own = self.staging().map(|_| self.group.in_world(self.rank));
            let is_in_heap = own.is_some_and(|own| self.job.heap_block(own, at, bytes).is_some());
            let exposed =
                if is_in_heap { SharedExtent::WORDS } else { SharedExtent::exposed(at, bytes) };
            return (at, bytes, Some(exposed));
        }
        let find = |staging: &Staging| staging.find(self.call_key(), self.whole_target());
        let staged = self.staging().and_then(find).expect("it is marked as staged");
        (Self::staged_memory(&staged).at, bytes, Some(SharedExtent::WORDS))
    }

    /// Frees the staged copies, which no peer uses any more. If all peers have detached a target,
    /// it is copied back, even if the job has failed since then, because the call may still return
    /// successfully.
    #[cold]
    fn unstage(&self, staging: &Staging, are_detached: bool) {
        self.marks.store(self.marks.load(Relaxed) & !STAGED, Relaxed);
        staging.release(self.call_key(), |staged| {
            if are_detached {
                self.resolve(staged.span).copy_from(Self::staged_memory(staged));
            }
        });
    }
}

impl Drop for CallView<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.marks.load(Relaxed) != 0 {
            self.end_exposures();
        }
    }
}

impl Rendezvous for CallView<'_> {
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        ready(self.expose_now(to, true, exposure, span))
    }

    fn expose_without_wake(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        ready(self.expose_now(to, false, exposure, span))
    }

    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<Remote>> {
        let line_at = self.group.exposure_at(self.rank, from, self.position, exposure);
        let line = self.group.line_at(line_at);
        let (word, position) = (self.word, self.position);
        let (job, group) = (self.job.number(), self.group.number());
        assert!(word != TAKEN, "buffers are attached in calls");
        // Both words were written from a `usize`.
        let size = |word: u64| usize::try_from(word).unwrap_or(0);
        let segment = &self.job.segment;
        self.when_word(line_at + PAYLOAD_WORDS, move |seen| {
            if seen == word {
                let (place, bytes) = (size(line.read(0)), size(line.read(1)));
                let kind = match line.read(2) {
                    0 => RemoteKind::Source,
                    1 => RemoteKind::Target,
                    FAR => RemoteKind::Far,
                    _ => RemoteKind::Symmetric,
                };
                let at = match kind {
                    RemoteKind::Source | RemoteKind::Target => {
                        std::ptr::with_exposed_provenance_mut(place)
                    }
                    RemoteKind::Far => std::ptr::null_mut(),
                    _ if line.read(2) == IN_EXTENT => self.attach_staged(line)?,
                    _ => segment.at(place, bytes),
                };
                let extent = SharedExtent::shown(line, 3);
                line.publish(TAKEN); // an exposure is attached once
                // This wait and the next one for this line may see the same word. They count as two
                // waits all the same.
                if self.watched.load(Relaxed) == line_at + PAYLOAD_WORDS {
                    self.watched.store(NO_WORD, Relaxed);
                }
                return Some(Remote {
                    at,
                    bytes,
                    owner: from,
                    kind,
                    extent,
                    job,
                    group,
                    position,
                    exposure,
                });
            }
            None
        })
    }

    fn check_length(&self, remote: &Remote, bytes: usize) -> impl Future<Output = Op> {
        self.check_stated_length(remote.owner, remote.bytes, bytes)
    }

    fn check_stated_length(
        &self,
        owner: Rank,
        theirs: usize,
        own: usize,
    ) -> impl Future<Output = Op> {
        ready(if theirs == own { Ok(()) } else { Err(self.disagree(owner, theirs, own)) })
    }

    fn detach(&self, remote: Remote) -> impl Future<Output = Op> {
        self.detach_now(&remote, true);
        ready(Ok(()))
    }

    fn detach_without_wake(&self, remote: Remote) -> impl Future<Output = Op> {
        self.detach_now(&remote, false);
        ready(Ok(()))
    }

    fn await_detached(&self) -> impl Future<Output = Op> {
        let (group, position) = (self.group, self.position);
        self.when_word(group.detached_at(self.rank, position), move |detached| {
            // A peer detaches only an exposure that it has attached, so all numbers are free again.
            let is_over = detached == group.exposed(position);
            is_over.then(|| {
                group.free_exposures(position);
                self.job.end_far_exposures(group.number(), self.rank, position);
                if let Some(staging) = self.staging() {
                    self.unstage(staging, true);
                }
            })
        })
    }
}
