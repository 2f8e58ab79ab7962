//! The calling PE: its rank, and copies and combinations in its own memory.

use std::future::{Future, ready};

use consort_fabric::{Layout, Local, Op, Place, Rank, Span};

use super::{view::CallView, waits::YieldNow};

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

    fn vector_block(&self, place: Place, index: u32) -> Span {
        let layouts = self.operands.layouts.expect("a vector variant has layouts");
        Layout::span(layouts, place, index)
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        YieldNow { call: self, is_due: self.is_nonblocking }
    }
}
