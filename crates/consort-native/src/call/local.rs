//! The calling PE: its rank, and copies and combinations in its own memory.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::Relaxed,
};

use consort_fabric::{Layout, Local, Op, Place, Rank, Span};

use super::{
    operands::Buffer,
    view::{CallView, STAGED, TARGET},
    waits::YieldNow,
};
use crate::{
    inbox::geometry::BUFFER_BYTES,
    memory::{extent::SharedExtent, region::Memory},
};

impl CallView<'_> {
    /// Returns the memory of a span of this PE. Panics if the span reaches beyond its buffer.
    #[inline(always)]
    pub(super) fn resolve(&self, span: Span) -> Memory {
        let half = self.scratch.bytes() / 2;
        let scratch = |first: usize| (self.scratch.at(first, half), half, None);
        let words = Some(SharedExtent::WORDS);
        let (at, bytes, shared) = match span.place {
            Place::Source => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.source;
                (at, bytes, words.filter(|_| symmetric))
            }
            Place::Target => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.target;
                let is_exposed = || self.marks.load(Relaxed) & (TARGET | STAGED) != 0;
                if !symmetric && is_exposed() {
                    self.exposed_target()
                } else {
                    (at, bytes, words.filter(|_| symmetric))
                }
            }
            Place::Accumulator => scratch(0),
            Place::Incoming => scratch(half),
            Place::Heap => (self.heap(self.rank), self.job.heap_bytes(), words),
            Place::Buffer => (self.buffer(self.rank), BUFFER_BYTES, words),
        };
        let inside = span.at.checked_add(span.bytes).is_some_and(|end| end <= bytes);
        assert!(inside, "a span must lie in its buffer");
        Memory { at: at.wrapping_add(span.at), bytes: span.bytes, shared }
    }

    #[inline(always)]
    pub(super) fn resolve_writable(&self, span: Span) -> Memory {
        assert!(span.place != Place::Source, "a source is never written");
        self.resolve(span)
    }

    /// Computes `target = left (op) right` with the call's operator.
    #[inline(always)]
    pub(super) fn combine_now(&self, target: Memory, left: Memory, right: Memory) {
        if let Some(kernel) = &self.operands.kernel {
            target.combine(kernel, left, right);
        }
    }
}

impl Local for CallView<'_> {
    #[inline(always)]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "ranks are 32 bits wide")]
    fn size(&self) -> u32 {
        self.group.size() as u32
    }

    #[inline(always)]
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op> {
        self.resolve_writable(target).copy_from(self.resolve(source));
        ready(Ok(()))
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        self.combine_now(target, self.resolve(left), self.resolve(right));
        ready(Ok(()))
    }

    #[inline(always)]
    fn store(&self, target: Span, bytes: &[u8]) -> impl Future<Output = Op> {
        let source = Memory::private(bytes.as_ptr().cast_mut(), bytes.len());
        self.resolve_writable(target).copy_from(source);
        ready(Ok(()))
    }

    #[inline(always)]
    fn load(&self, source: Span, bytes: &mut [u8]) -> impl Future<Output = Op> {
        Memory::private(bytes.as_mut_ptr(), bytes.len()).copy_from(self.resolve(source));
        ready(Ok(()))
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        let layouts = self.operands.layouts.expect("a vector variant has layouts");
        Layout::span(layouts, place, index)
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        YieldNow { call: self, is_due: self.is_nonblocking }
    }
}
