//! One-sided operations on the heaps, outside of calls. Any thread may use them.
//!
//! A PE is named by its rank in the world, and memory by its offset in the heap. An operation is
//! complete when it returns, but other PEs may see several operations in another order. `fence`,
//! `quiet` and the release of a signal order them. An operation that changes a heap wakes the
//! heap's PE.
//!
//! The caller ensures that it still owns the memory: a block is not reallocated while it is held
//! (`block`). The operations check that accesses are inside the heap, and that words are aligned.

#![expect(unsafe_code, reason = "refers to words of the heaps")]

use std::{
    iter::once,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, Release, SeqCst},
        fence,
    },
    time::Duration,
};

use consort_fabric::{Atomic, Kernel, Op, Pod, Poisoned, Rank, Signal, Until};

use super::word::{HeapWord, Width};
use crate::{
    launch::job::Job,
    memory::{extent::SharedExtent, region::Memory},
    progress::event,
};
use consort_machine::wait::spin_budget::SpinBudget;

/// One-sided operations of a PE, or of a thread that works for it, on the heaps of all PEs.
#[derive(Clone, Copy, Debug)]
pub struct OneSided<'j> {
    job: &'j Job,
    me: Rank,
}

fn private<T: Pod>(at: *const T, count: usize) -> Memory {
    Memory::private(at.cast_mut().cast(), count * size_of::<T>())
}

impl<'j> OneSided<'j> {
    /// Returns the operations of PE `me`.
    #[must_use]
    pub fn new(job: &'j Job, me: Rank) -> Self {
        Self { job, me }
    }

    /// Returns the PE whose operations these are.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// Returns the job if it has failed and has far PEs. An operation on a far PE may then be
    /// incomplete, because no reply has come.
    #[inline]
    #[must_use]
    pub fn failed_far(&self) -> Option<&'j Job> {
        Some(self.job).filter(|job| job.has_far() && job.is_poisoned())
    }

    /// Returns `bytes` of the heap of `pe`, starting at offset `at`.
    ///
    /// # Panics
    /// When they reach beyond the heap.
    #[inline(always)]
    fn heap(&self, pe: Rank, at: usize, bytes: usize) -> Memory {
        assert!(self.job.has_in_memory(at, bytes), "what is accessed must lie in the heap");
        let at = self.job.heap(pe).wrapping_add(at);
        Memory { at, bytes, shared: Some(SharedExtent::WORDS) }
    }

    /// Returns the word at offset `at` of the heap of `pe`.
    ///
    /// # Panics
    /// When it reaches beyond the heap, or is not aligned.
    #[inline(always)]
    fn word(&self, pe: Rank, at: usize, width: Width) -> HeapWord<'j> {
        let bytes = width.bytes();
        assert!(at.is_multiple_of(bytes), "a word is aligned");
        let begin = at - at % 8;
        let memory = self.heap(pe, begin, at - begin + bytes);
        // SAFETY: heaps are aligned and consist of whole 8-byte words, so these 8 bytes are in the
        // heap. It lives as long as the job, and is only accessed atomically or by `copy_shared`.
        let cell = unsafe { AtomicU64::from_ptr(memory.at.cast()) };
        HeapWord::new(cell, at, width)
    }

    /// Copies memory to offset `at` of the heap of `to`, without waking the PE.
    #[inline(always)]
    fn put_memory(&self, to: Rank, at: usize, source: Memory) {
        match self.job.far_to(to) {
            Some(far) => far.put_to_heap(at, source),
            None => self.heap(to, at, source.bytes).copy_from(source),
        }
    }

    /// Copies parts of the heap of `from`: each from an offset, into some memory.
    #[inline(always)]
    fn get_memory(&self, from: Rank, parts: impl Iterator<Item = (usize, Memory)>) {
        if let Some(far) = self.job.far_to(from) {
            return far.get_from_heap(parts);
        }
        parts.for_each(|(at, target)| target.copy_from(self.heap(from, at, target.bytes)));
    }

    /// Copies `data` to offset `at` of the heap of `to`.
    #[inline]
    pub fn put<T: Pod>(&self, to: Rank, at: usize, data: &[T]) {
        self.put_memory(to, at, private(data.as_ptr(), data.len()));
        self.job.wake(to);
    }

    /// Copies `bytes` from any memory to offset `at` of the memory of `to`.
    ///
    /// # Safety
    /// `source` is readable for `bytes`.
    ///
    /// # Panics
    /// When the bytes reach beyond the memory of `to`.
    pub unsafe fn put_bytes(&self, to: Rank, at: usize, source: *const u8, bytes: usize) {
        self.put_memory(to, at, Memory::private(source.cast_mut(), bytes));
        self.job.wake(to);
    }

    /// Copies from offset `at` of the heap of `from` into `data`.
    #[inline]
    pub fn get<T: Pod>(&self, from: Rank, at: usize, data: &mut [T]) {
        self.get_memory(from, once((at, private(data.as_mut_ptr(), data.len()))));
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
        let part = |(offset, at)| (offset, Memory { at, bytes, shared });
        self.get_memory(from, blocks.map(part));
    }

    /// Computes `data[i] = data[i] (op) heap[i]` for each element, from offset `at` on.
    pub fn get_combine<T: Pod>(&self, from: Rank, at: usize, data: &mut [T], kernel: &Kernel<'_>) {
        let own = private(data.as_mut_ptr(), data.len());
        if let Some(far) = self.job.far_to(from) {
            let mut copy = data.to_vec();
            let theirs = private(copy.as_mut_ptr(), copy.len());
            far.get_from_heap(once((at, theirs)));
            return own.combine(kernel, own, theirs);
        }
        let theirs = self.heap(from, at, own.bytes);
        own.combine(kernel, own, theirs);
    }

    /// Copies every `data_stride`th element of `data` to the heap of `to`: to every `stride`th
    /// element from offset `at` on.
    ///
    /// # Panics
    /// When a stride is 0, or an element is outside the heap.
    pub fn put_strided<T: Pod>(
        &self,
        to: Rank,
        (at, stride): (usize, usize),
        (data, data_stride): (&[T], usize),
    ) {
        let elements = data.iter().step_by(data_stride).zip(places::<T>(at, stride));
        elements.for_each(|(element, place)| self.put_memory(to, place, private(element, 1)));
        self.job.wake(to);
    }

    /// Copies every `stride`th element of the heap of `from`, from offset `at` on, to every
    /// `data_stride`th element of `data`.
    ///
    /// # Panics
    /// Same as [`OneSided::put_strided`].
    pub fn get_strided<T: Pod>(
        &self,
        from: Rank,
        (at, stride): (usize, usize),
        (data, data_stride): (&mut [T], usize),
    ) {
        let elements = data.iter_mut().step_by(data_stride).map(|element| private(element, 1));
        self.get_memory(from, places::<T>(at, stride).zip(elements));
    }

    /// Copies `data` to offset `at` of the heap of `to`, then signals the word at offset `word` of
    /// that heap. A PE that sees the signal sees the data.
    #[inline]
    pub fn put_signal<T: Pod>(
        &self,
        to: Rank,
        at: usize,
        data: &[T],
        (word, width): (usize, Width),
        how: Signal,
    ) {
        self.put_memory(to, at, private(data.as_ptr(), data.len()));
        self.signal(to, word, width, how);
    }

    /// Changes a word of the heap of `to`. A PE that sees the change sees everything that this
    /// thread put before its last [`OneSided::fence`].
    #[inline]
    pub fn signal(&self, to: Rank, word: usize, width: Width, how: Signal) {
        if let Some(far) = self.job.far_to(to) {
            return far.signal(word, width, how);
        }
        self.word(to, word, width).signal(how);
        self.job.wake(to);
    }

    /// Performs a sequentially consistent operation on a word of the heap of `pe`. Returns the old
    /// value.
    #[inline]
    pub fn atomic(&self, pe: Rank, word: usize, width: Width, operation: Atomic) -> u64 {
        if let Some(far) = self.job.far_to(pe) {
            return far.atomic(word, width, operation);
        }
        let before = self.word(pe, word, width).atomic(operation);
        if operation != Atomic::Load {
            self.job.wake(pe);
        }
        before
    }

    /// Orders this thread's earlier puts before its later puts and signals, for every PE.
    #[inline]
    pub fn fence(&self) {
        fence(Release); // pairs with the acquire of a wait that sees a later store
        self.settle();
    }

    /// Like [`Self::fence`], but faster: waits for far PEs only after long puts, because far PEs
    /// carry out everything else in order.
    #[inline(always)]
    pub fn fence_in_order(&self) {
        fence(Release);
        self.job.settle_long();
    }

    /// Waits until all puts of this thread are complete.
    #[inline]
    pub fn quiet(&self) {
        fence(SeqCst);
        self.settle();
    }

    /// Waits until all puts to far PEs are complete.
    #[inline(always)]
    pub fn settle(&self) {
        self.job.settle();
    }

    /// Sends what is queued for far PEs, and delivers what they have sent.
    #[inline]
    pub fn progress(&self) {
        self.job.serve();
    }

    #[inline(always)]
    pub(crate) fn own_word(&self, word: usize, width: Width) -> HeapWord<'j> {
        self.word(self.me, word, width)
    }

    /// Returns the value of a word of this PE's heap, if it satisfies `until`.
    #[inline(always)]
    pub fn test(&self, word: usize, width: Width, until: Until) -> Option<u64> {
        let found = Some(self.own_word(word, width).load()).filter(|&value| until.holds(value));
        if found.is_none() {
            self.job.serve();
        }
        found
    }

    /// Waits until a word of this PE's heap satisfies `until`, and returns it. For threads other
    /// than the PE's own: it polls, yields and sleeps, and does not drive the PE's operations. With
    /// a `limit`, it returns `None` after that time.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn wait_until(
        &self,
        word: usize,
        width: Width,
        until: Until,
        limit: Option<Duration>,
    ) -> Op<Option<u64>> {
        let test = || match self.test(word, width, until) {
            Some(value) => Some(Ok(value)),
            None => self.job.is_poisoned().then_some(Err(Poisoned)),
        };
        let budget = SpinBudget::for_guest();
        let found = event::poll(budget.polls(), test);
        let wait = || self.job.parking_slot(self.me).wait(budget, limit, test).0;
        found.or_else(wait).transpose()
    }

    /// Waits until `test` finds something in the memory of `pe`, like [`OneSided::wait_until`]
    /// without a limit. `test` may read any words there. In a job with far PEs, it also delivers
    /// what they send.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline]
    pub fn wait_for<R>(&self, pe: Rank, test: impl Fn() -> Option<R>) -> Op<R> {
        let test = || match test() {
            Some(found) => Some(Ok(found)),
            None => self.job.is_poisoned().then_some(Err(Poisoned)),
        };
        if let Some(found) = self.job.wait_far(test) {
            return found;
        }
        let budget = SpinBudget::for_guest();
        if let Some(found) = event::poll(budget.polls(), test) {
            return found;
        }
        // Relaxed, here and below: a reader compares values that it reads at different times.
        let own = &self.job.states[self.me.index()];
        own.word_sleeps.fetch_add(1, Relaxed);
        let counted = || {
            own.word_looks.store(own.word_looks.load(Relaxed).wrapping_add(1), Relaxed);
            test()
        };
        let found = loop {
            if let Some(found) = self.job.parking_slot(pe).wait(budget, None, counted).0 {
                break found;
            }
        };
        own.word_sleeps.fetch_add(1, Relaxed);
        found
    }

    /// Wakes the threads that wait for the memory of `pe`, after a store to it.
    #[inline(always)]
    pub fn wake(&self, pe: Rank) {
        self.job.wake(pe);
    }

    /// Returns the address of offset `at` of the heap of `pe`. `None` if fewer than `bytes` bytes
    /// of the PE's memory follow, or if the PE shares no memory with this process. Others may
    /// access this memory at any time.
    #[inline(always)]
    #[must_use]
    pub fn address(&self, pe: Rank, at: usize, bytes: usize) -> Option<*mut u8> {
        let is_reached = self.job.has_in_memory(at, bytes) && !self.job.is_far(pe);
        is_reached.then(|| self.job.heap(pe).wrapping_add(at))
    }

    /// Copies memory that others may access at the same time. A byte that is written while it is
    /// read has the old value or the new one.
    ///
    /// # Safety
    /// `source` is readable and `target` writable for `bytes`, they do not overlap, and the 8-byte
    /// words around `target` are accessible too.
    #[inline]
    pub unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
        let target = Memory { at: target, bytes, shared: Some(SharedExtent::WORDS) };
        target.copy_from(Memory::private(source.cast_mut(), bytes));
    }
}

/// Returns the offsets of every `stride`th element from `at` on.
fn places<T>(at: usize, stride: usize) -> impl Iterator<Item = usize> {
    assert!(stride > 0, "a stride is at least 1");
    let bytes = stride.saturating_mul(size_of::<T>());
    (0..).map(move |index: usize| at.saturating_add(index.saturating_mul(bytes)))
}
