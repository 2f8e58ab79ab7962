//! The data of an operation: buffers and the operator.

use std::{marker::PhantomData, ops::DerefMut, sync::Arc};

use consort_fabric::{Pod, Rank};
use consort_native::{Block, Buffer, Job, Operands};

use super::{shape::Shape, source::Elements};
use crate::collectives::{
    combine::Combine,
    verb::{brought, copy_own},
    widening::Widening,
};

/// The buffers of an operation, which uses them as its shape says.
pub(super) trait Buffers: Send {
    fn operands<'c>(&'c mut self, shape: &Shape, job: &'c Job) -> Operands<'c>;

    /// Returns the buffers of a call whose partial results are wider than the elements.
    fn widen(&self, shape: &Shape, job: &Job) -> Option<WideBuffers>;

    /// Writes the results of that call.
    fn narrow(&mut self, wide: &WideBuffers, job: &Job);
}

/// The contribution and the results of a PE, as `f32`.
pub(super) struct WideBuffers {
    widening: Widening,
    source: Vec<f32>,
    target: Vec<f32>,
}

impl WideBuffers {
    pub(super) fn operands(&mut self) -> Operands<'_> {
        Operands {
            kernel: Some(self.widening.kernel()),
            source: Buffer::source(&self.source),
            target: Buffer::target(&mut self.target),
            layouts: None,
        }
    }
}

/// A source, a target and the operator of a call: vectors that its operation owns, or borrows.
pub(crate) struct Pair<T, S, D, C> {
    pub(super) source: S,
    pub(crate) target: D,
    combine: C,
    elements: PhantomData<fn() -> T>,
}

impl<T, S, D, C> Pair<T, S, D, C> {
    pub(crate) fn new(source: S, target: D, combine: C) -> Self {
        Self { source, target, combine, elements: PhantomData }
    }
}

impl<T: Pod, S: Elements<T>, D: DerefMut<Target = [T]>, C> Pair<T, S, D, C> {
    /// Returns source and target. A PE that has broadcast its source copies it to its target,
    /// unless that is empty.
    pub(super) fn into_both(mut self, shape: &Shape) -> (S, D) {
        if shape.is_broadcasting() {
            copy_own(S::elements(&self.source), &mut self.target);
        }
        (self.source, self.target)
    }
}

impl<T, S, D, C> Buffers for Pair<T, S, D, C>
where
    T: Pod,
    S: Elements<T> + Send,
    D: DerefMut<Target = [T]> + Send,
    C: Combine<T> + Send,
{
    fn operands<'c>(&'c mut self, shape: &Shape, _: &'c Job) -> Operands<'c> {
        let Self { source, target, combine, .. } = self;
        let [contributes, receives] = shape.uses;
        Operands {
            kernel: combine.combination().map(|it| it.kernel),
            source: if contributes { Buffer::source(S::elements(source)) } else { Buffer::ABSENT },
            target: if receives { Buffer::target(target) } else { Buffer::ABSENT },
            layouts: None,
        }
    }

    fn widen(&self, shape: &Shape, _: &Job) -> Option<WideBuffers> {
        let widening = shape.widening?;
        let source = widening.widen(S::elements(&self.source));
        let target = Widening::blank::<T>(if shape.uses[1] { self.target.len() } else { 0 });
        Some(WideBuffers { widening, source, target })
    }

    fn narrow(&mut self, wide: &WideBuffers, _: &Job) {
        wide.widening.narrow(&wide.target, &mut self.target);
    }
}

/// A place in the memory that peers can access, which is not freed while a call is pending.
pub(crate) trait Place: Send {
    /// Returns the offset from the heap, and the bytes.
    fn extent(&self) -> (usize, usize);
}

/// A block of the heap, and the number of its bytes that a call uses.
impl Place for (Arc<Block>, usize) {
    fn extent(&self) -> (usize, usize) {
        (self.0.offset(), self.1)
    }
}

/// Memory that the program manages.
impl Place for (usize, usize) {
    fn extent(&self) -> (usize, usize) {
        *self
    }
}

/// The symmetric memory of a call. The program does not use it while the call is pending.
pub(super) struct InHeap<P, T, C> {
    pub(super) rank_in_world: Rank,
    pub(super) source: P,
    pub(super) target: P,
    pub(super) combine: C,
    pub(super) elements: PhantomData<fn() -> T>,
}

impl<P: Place, T, C> InHeap<P, T, C> {
    fn buffer<'j>(&self, place: &P, job: &'j Job) -> Buffer<'j> {
        let (offset, bytes) = place.extent();
        Buffer::symmetric(job, self.rank_in_world, offset, bytes)
    }
}

impl<P: Place, T: Pod, C: Combine<T> + Send> Buffers for InHeap<P, T, C> {
    fn operands<'c>(&'c mut self, shape: &Shape, job: &'c Job) -> Operands<'c> {
        let [source, target] = [&self.source, &self.target].map(|place| self.buffer(place, job));
        let [source, target] = brought(shape.is_broadcast, shape.uses[0], source, target);
        let kernel = self.combine.combination().map(|it| it.kernel);
        Operands { kernel, source, target, layouts: None }
    }

    fn widen(&self, shape: &Shape, job: &Job) -> Option<WideBuffers> {
        let widening = shape.widening?;
        let source = widening.widen_in(&self.buffer(&self.source, job));
        let target = Widening::blank::<T>(self.target.extent().1 / size_of::<T>());
        Some(WideBuffers { widening, source, target })
    }

    fn narrow(&mut self, wide: &WideBuffers, job: &Job) {
        wide.widening.narrow_in(&wide.target, &mut self.buffer(&self.target, job));
    }
}
