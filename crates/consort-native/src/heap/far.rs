//! One-sided operations on the heaps of far PEs.
//!
//! Puts and signals are packets. The PE's process carries them out when it looks for packets. Gets
//! and atomics are requests, and the caller waits for the reply. In a job that has failed, a get
//! leaves its target unchanged and an atomic returns 0.
//!
//! For languages whose operands are addresses, there are puts and gets of bytes at any address.

#![expect(unsafe_code, reason = "stores addresses of memory that callers keep valid")]

use consort_fabric::{Atomic, Rank, Signal};

use super::{one_sided::OneSided, word::Width};
use crate::{
    far::{
        dispatch::{append_memory, memory_of},
        link::Far,
        packet::{FarMemory, Packet, Request},
        progress::PollBackoff,
        transfers::{LONG_GET, LONG_PUT},
    },
    memory::{extent::SharedExtent, region::Memory},
};

impl OneSided<'_> {
    /// Copies `bytes` from any memory to offset `at` of the memory of `to`.
    ///
    /// # Safety
    /// `source` is readable for `bytes`.
    ///
    /// # Panics
    /// When the bytes reach beyond the memory of `to`.
    pub unsafe fn put_bytes(&self, to: Rank, at: usize, source: *const u8, bytes: usize) {
        let source = Memory::private(source.cast_mut(), bytes);
        if let Some(far) = self.job.far_to(to) {
            return self.put_far(far, to, at, source);
        }
        self.heap(to, at, bytes).copy_from(source);
        self.job.wake(to);
    }

    /// Copies blocks of `bytes` from the memory of `from`. Each block goes from an offset there to
    /// a local address, where others may access it.
    ///
    /// # Safety
    /// The addresses are writable for `bytes`, and so are the 8-byte words around them.
    ///
    /// # Panics
    /// When a block reaches beyond the memory of `from`.
    pub unsafe fn get_blocks(
        &self,
        from: Rank,
        blocks: impl Iterator<Item = (usize, *mut u8)>,
        bytes: usize,
    ) {
        let shared = Some(SharedExtent::WORDS);
        let blocks = blocks.map(|(at, target)| (at, Memory { at: target, bytes, shared }));
        match self.job.far_to(from) {
            Some(far) => self.get_far(far, from, blocks),
            None => blocks.for_each(|(at, target)| target.copy_from(self.heap(from, at, bytes))),
        }
    }

    /// Sends what is queued for far PEs, and delivers what they have sent.
    #[inline]
    pub fn progress(&self) {
        self.job.serve();
    }

    /// Waits until `test` finds something, in a job with far PEs. Returns `None` in other jobs.
    #[inline]
    pub(super) fn wait_far<R>(&self, test: impl Fn() -> Option<R>) -> Option<R> {
        self.job.far()?;
        let mut backoff = PollBackoff::default();
        loop {
            self.job.serve();
            if let Some(found) = test() {
                return Some(found);
            }
            backoff.pause();
        }
    }

    fn assert_inside(&self, at: usize, bytes: usize) {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.job.memory_bytes());
        assert!(inside, "what is accessed must lie in the heap");
    }

    fn assert_word(&self, word: usize, width: Width) {
        assert!(word.is_multiple_of(width.bytes()), "a word is aligned");
        self.assert_inside(word, width.bytes());
    }

    #[cold]
    pub(super) fn put_far(&self, far: &Far, to: Rank, at: usize, source: Memory) {
        self.assert_inside(at, source.bytes);
        let place = FarMemory::Heap { pe: to };
        if source.bytes < LONG_PUT {
            let packet = Packet::Put { place, at, bytes: source.bytes };
            return far.write(to, &packet, |frame| append_memory(frame, source));
        }
        // SAFETY: the caller's memory stays valid until this returns.
        if let Some(transfer) = unsafe { far.begin_put(to, (place, at), source) } {
            self.job.finish_transfer(far, transfer);
        }
    }

    #[cold]
    pub(super) fn get_far(
        &self,
        far: &Far,
        from: Rank,
        parts: impl Iterator<Item = (usize, Memory)>,
    ) {
        let place = FarMemory::Heap { pe: from };
        let (mut requested, mut gets) = (Vec::new(), Vec::new());
        let parts: Vec<(usize, Memory)> = parts.collect();
        // Nothing may panic while a transfer is in flight.
        parts.iter().for_each(|(at, target)| self.assert_inside(*at, target.bytes));
        for (at, target) in parts {
            let bytes = target.bytes;
            if bytes < LONG_GET {
                requested
                    .push((far.request(from, Request::Get { place, at, bytes }, |_| ()), target));
            } else {
                // SAFETY: the caller's memory stays valid until this returns.
                gets.extend(unsafe { far.begin_get(from, (place, at), target) });
            }
        }
        gets.iter().for_each(|get| self.job.finish_get(far, get));
        for (id, target) in requested {
            if let Some(reply) = self.job.await_reply(far, id) {
                let data = memory_of(&reply, target.bytes);
                target.copy_from(data.expect("a reply is as long as requested"));
            }
        }
    }

    #[cold]
    pub(super) fn signal_far(&self, far: &Far, to: Rank, word: usize, width: Width, how: Signal) {
        self.assert_word(word, width);
        far.write(to, &Packet::Signal { pe: to, word, width, how }, |_| ());
        far.flush();
    }

    #[cold]
    pub(super) fn atomic_far(
        &self,
        far: &Far,
        pe: Rank,
        word: usize,
        width: Width,
        operation: Atomic,
    ) -> u64 {
        self.assert_word(word, width);
        let request = Request::Atomic { pe, word, width, operation };
        let reply = self.job.request(far, pe, request, |_| ());
        reply.and_then(|words| words.first().copied()).unwrap_or(0)
    }
}
