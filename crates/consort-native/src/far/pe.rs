//! A far PE, as the rest of the runtime uses it, and operations that are in progress.
//!
//! Puts and signals are packets. The PE's process executes them when it looks for packets. Gets and
//! atomics are requests. Longer data goes as a transfer. In a job that has failed, a get leaves its
//! target unchanged and an atomic operation returns 0.

#![expect(unsafe_code, reason = "stores addresses of memory that callers keep valid")]

use std::{mem, sync::atomic::Ordering::Relaxed};

use consort_fabric::{Atomic, Rank, Signal, VendorCall};

use super::{
    exposed::ExposedBuffer,
    link::Far,
    packet::{Exposure, FarMemory, Packet, Request, append_memory, memory_of},
    progress::PollBackoff,
    transfers::{LONG_GET, LONG_PUT, PendingGet},
    transport::{Transfer, TransferBuffer, TransportError},
};
use crate::{heap::word::Width, inbox::line::LineWord, launch::job::Job, memory::region::Memory};

/// A PE that shares no memory with this process.
#[derive(Clone, Copy)]
pub(crate) struct FarPe<'j> {
    pub(super) job: &'j Job,
    /// The rank in the world.
    pub(super) pe: Rank,
}

impl<'j> FarPe<'j> {
    fn far(self) -> &'j Far {
        self.job.far().expect("a job with a far PE has a link to it")
    }
}

/// The heap of a PE.
impl FarPe<'_> {
    fn heap(self, at: usize, bytes: usize) -> FarMemory {
        assert!(self.job.has_in_memory(at, bytes), "what is accessed must lie in the heap");
        FarMemory::Heap { pe: self.pe }
    }

    fn assert_word(self, word: usize, width: Width) {
        assert!(word.is_multiple_of(width.bytes()), "a word is aligned");
        self.heap(word, width.bytes());
    }

    /// Puts data at offset `at` of the heap.
    #[cold]
    pub(crate) fn put_to_heap(self, at: usize, source: Memory) {
        let place = self.heap(at, source.bytes);
        // SAFETY: the caller's memory stays valid until this returns.
        drop(unsafe { self.put(place, at, source) });
    }

    /// Gets parts of the heap: each from an offset, into some memory.
    #[cold]
    pub(crate) fn get_from_heap(self, parts: impl Iterator<Item = (usize, Memory)>) {
        let get = |(at, target): (usize, Memory)| {
            let place = self.heap(at, target.bytes);
            // SAFETY: the caller's memory stays valid until this returns.
            unsafe { self.get(place, at, target, false) }
        };
        let gets: Vec<FarGet<'_>> = parts.map(get).collect();
        gets.into_iter().for_each(FarGet::finish);
    }

    /// Changes a word of the heap.
    #[cold]
    pub(crate) fn signal(self, word: usize, width: Width, how: Signal) {
        self.assert_word(word, width);
        self.far().write(self.pe, &Packet::Signal { pe: self.pe, word, width, how }, |_| ());
        self.far().flush();
    }

    /// Performs an operation on a word of the heap. Returns the old value.
    #[cold]
    pub(crate) fn atomic(self, word: usize, width: Width, operation: Atomic) -> u64 {
        self.assert_word(word, width);
        let request = Request::Atomic { pe: self.pe, word, width, operation };
        let reply = self.job.request(self.far(), self.pe, request, |_| ());
        reply.and_then(|words| words.first().copied()).unwrap_or(0)
    }
}

/// Calls.
impl<'j> FarPe<'j> {
    /// Sends words of a group that were stored for the PE, from index `at` on.
    pub(crate) fn send_words(self, group: u64, at: usize, words: &[LineWord]) {
        let packet = Packet::Words { group, to: self.pe, at };
        let words = words.iter().map(|word| word.load(Relaxed));
        self.far().send(self.pe, &packet, |frame| frame.extend(words));
    }

    /// Requests the words that the PE, a member of a group, publishes, unless the reply to the
    /// previous request is still missing.
    pub(crate) fn request_published(self, group: u64, member: Rank) {
        let (process, mut link) = (self.far().process(self.pe), self.far().link());
        if let Some(id) = link.requests.begin_published(group, member) {
            let request = Request::Published { group, member };
            link.send(process, &Packet::Request { id, request }, |_| ());
        }
    }

    /// Lets the PE access memory, until the exposures of the owner's call end.
    pub(crate) fn expose(self, exposure: Exposure, memory: Memory, is_target: bool) {
        self.far().link().exposures.add(exposure, ExposedBuffer { memory, is_target });
    }

    /// Detaches a buffer that the PE exposed in its call at a window position.
    pub(crate) fn detach(self, group: u64, owner: Rank, position: usize) {
        self.far().send(self.pe, &Packet::Detached { group, owner, position }, |_| ());
    }

    /// Begins to put data into memory of the PE. Returns the transfer if the data is long.
    ///
    /// # Safety
    /// The source must stay valid until the transfer is done or dropped.
    pub(crate) unsafe fn put(
        self,
        place: FarMemory,
        at: usize,
        source: Memory,
    ) -> Option<FarTransfer<'j>> {
        let (Self { job, pe }, far) = (self, self.far());
        let bytes = source.bytes;
        if bytes < LONG_PUT {
            let packet = Packet::Put { place, at, bytes };
            far.write(pe, &packet, |frame| append_memory(frame, source));
            return None;
        }
        let (process, mut link) = (far.process(pe), far.link());
        link.writes.count_long(process);
        let tag = link.transfers.tag(process, 1);
        link.send(process, &Packet::LongPut { place, at, bytes, tag }, |_| ());
        link.flush();
        // SAFETY: the caller's promise.
        let push = unsafe { link.transport.push(process, tag, TransferBuffer(source)) };
        Some(FarTransfer { job, far, transfer: link.keep_error(push) })
    }

    /// Begins to get memory of the PE for a target. If the bytes `are_kept`, the target does not
    /// change before the caller uses the bytes.
    ///
    /// # Safety
    /// The target must stay valid, and be writable, until the bytes have arrived or the get is
    /// dropped.
    pub(crate) unsafe fn get(
        self,
        place: FarMemory,
        at: usize,
        target: Memory,
        are_kept: bool,
    ) -> FarGet<'j> {
        let (Self { job, pe }, far) = (self, self.far());
        let (process, mut link, bytes) = (far.process(pe), far.link(), target.bytes);
        if bytes < LONG_GET {
            let id = link.request(process, Request::Get { place, at, bytes }, |_| ());
            return FarGet { job, far, source: GetSource::Reply(id), target, kept: Vec::new() };
        }
        let (mut kept, mut into) = (Vec::new(), target);
        if are_kept {
            kept = link.transfers.buffer(bytes.div_ceil(8));
            into = Memory::private(kept.as_mut_ptr().cast(), bytes);
        }
        let tag = link.transfers.tag(process, 0);
        // SAFETY: the caller's promise, and `kept` belongs to the get.
        let pull = unsafe { link.transport.pull(process, tag, TransferBuffer(into)) };
        let source = match link.keep_error(pull) {
            Some(transfer) => {
                link.send(process, &Packet::LongGet { place, at, bytes, tag }, |_| ());
                GetSource::Pulled(PendingGet { process, tag, transfer })
            }
            None => GetSource::Ended,
        };
        FarGet { job, far, source, target, kept }
    }
}

/// The source of a get's bytes.
enum GetSource {
    /// The reply to a request.
    Reply(u64),
    /// A transfer.
    Pulled(PendingGet),
    /// The bytes have arrived, or never will.
    Ended,
}

/// A get of memory of a far PE. Dropping it waits until nothing writes to its target.
pub(crate) struct FarGet<'j> {
    job: &'j Job,
    far: &'j Far,
    source: GetSource,
    target: Memory,
    /// The bytes, unless they are pulled into the target.
    kept: Vec<u64>,
}

impl FarGet<'_> {
    pub(crate) fn target(&self) -> Memory {
        self.target
    }

    /// Returns the bytes, once, after they have arrived. If they never arrive, the call has failed
    /// in another process, which will notify this process.
    pub(crate) fn poll(&mut self) -> Option<Memory> {
        let are_in_target = match &self.source {
            GetSource::Reply(id) => {
                self.kept = self.far.take_reply(*id)?;
                Some(false)
            }
            GetSource::Pulled(get) => {
                let has_arrived = self.far.link().poll_get(get)?;
                has_arrived.then_some(self.kept.is_empty())
            }
            GetSource::Ended => None,
        };
        self.source = GetSource::Ended;
        if are_in_target? { Some(self.target) } else { memory_of(&self.kept, self.target.bytes) }
    }

    /// Copies bytes of the get to the target, unless they were pulled into it.
    pub(crate) fn copy(&self, bytes: Memory) {
        if bytes.at != self.target.at {
            self.target.copy_from(bytes);
        }
    }

    /// Waits for the bytes. Leaves the target unchanged if they never arrive.
    fn finish(mut self) {
        let mut backoff = PollBackoff::default();
        while !matches!(self.source, GetSource::Ended) && !self.job.is_poisoned() {
            self.job.serve();
            match self.poll() {
                Some(bytes) => self.copy(bytes),
                None => backoff.pause(),
            }
        }
    }
}

impl Drop for FarGet<'_> {
    fn drop(&mut self) {
        match &self.source {
            GetSource::Reply(id) => self.far.forget_request(*id),
            GetSource::Pulled(get) => {
                self.job.await_link(self.far, |link| link.poll_get(get).is_some());
            }
            GetSource::Ended => {}
        }
        if self.kept.len() * size_of::<u64>() >= LONG_GET {
            self.far.link().transfers.recycle(mem::take(&mut self.kept));
        }
    }
}

/// A transfer in progress: bytes that are sent to a far PE, or a collective of the transport.
/// Dropping it waits until it is done.
pub(crate) struct FarTransfer<'j> {
    job: &'j Job,
    far: &'j Far,
    /// `None` after the transfer has ended, or if the process cannot be reached. The job then
    /// fails.
    transfer: Option<Transfer>,
}

impl FarTransfer<'_> {
    /// Returns, once, whether the transfer has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let mut link = self.far.link();
        let has_ended =
            |transfer: &mut Transfer| link.is_done(*transfer) && link.has_lost_nothing();
        self.transfer.take_if(has_ended).is_some()
    }
}

impl Drop for FarTransfer<'_> {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer {
            self.job.await_link(self.far, |link| link.is_done(transfer));
        }
    }
}

/// Requests that are sent only for their replies. When a reply arrives, everything that its process
/// sent before it has arrived. Dropping the requests forgets them.
pub(crate) struct PendingReplies<'j> {
    job: &'j Job,
    ids: Vec<u64>,
}

impl PendingReplies<'_> {
    /// Returns whether all replies have arrived.
    pub(crate) fn are_all_there(&mut self) -> bool {
        self.ids.retain(|&id| self.job.with_far(|far| far.take_reply(id)).is_none());
        self.ids.is_empty()
    }
}

impl Drop for PendingReplies<'_> {
    fn drop(&mut self) {
        self.ids.iter().for_each(|&id| self.job.with_far(|far| far.forget_request(id)));
    }
}

impl Job {
    /// Asks all far PEs to whose memory this process has written whether the writes are complete.
    #[cold]
    pub(crate) fn fence_writes(&self) -> PendingReplies<'_> {
        PendingReplies { job: self, ids: self.with_far(Far::request_fences) }
    }

    /// Requests a reply from the process of each far PE among these.
    #[cold]
    pub(crate) fn fence_pes(&self, pes: impl Iterator<Item = Rank>) -> PendingReplies<'_> {
        let ask = |far: &Far| {
            let ask = |pe| far.request(pe, Request::Fence {}, |_| ());
            let ids = pes.filter(|&pe| far.is_far(pe)).map(ask).collect();
            far.flush();
            ids
        };
        PendingReplies { job: self, ids: self.with_far(ask) }
    }

    /// Begins a collective of the transport.
    ///
    /// # Errors
    /// When the transport does not have the collective, or cannot begin it.
    ///
    /// # Safety
    /// Both regions must stay valid, and the target writable, until the transfer has ended or is
    /// dropped.
    #[cold]
    pub(crate) unsafe fn begin_collective(
        &self,
        call: &VendorCall,
        source: Memory,
        target: Memory,
    ) -> Result<FarTransfer<'_>, TransportError> {
        let far = self.far().expect("only a transport provides collectives");
        let (source, target) = (TransferBuffer(source), TransferBuffer(target));
        let mut link = far.link();
        link.flush();
        // SAFETY: the caller's promise.
        let transfer = unsafe { link.transport.collect(call, source, target) }?;
        Ok(FarTransfer { job: self, far, transfer: Some(transfer) })
    }
}
