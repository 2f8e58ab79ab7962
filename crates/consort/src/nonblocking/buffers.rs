//! The data of an operation: buffers, their layouts, and the operator.

use std::{marker::PhantomData, sync::Arc};

use consort_fabric::{Collective, Kernel, Layout, Operator, Pod, Rank};
use consort_native::{Block, Buffer, Job, Operands};

use crate::{Displacements, collectives::brought};

/// The operator of a nonblocking call, if it combines contributions.
pub(super) trait Combine<T>: Send {
    fn combination(&self) -> Option<(Kernel<'_>, &'static str)>;
}

/// Combines with an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct With<O>(pub(super) O);

/// Combines nothing: the call only moves data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nothing;

impl<T: Pod, O: Operator<T> + Send> Combine<T> for With<O> {
    fn combination(&self) -> Option<(Kernel<'_>, &'static str)> {
        Some((Kernel::new::<T, O>(&self.0), O::NAME))
    }
}

impl<T> Combine<T> for Nothing {
    fn combination(&self) -> Option<(Kernel<'_>, &'static str)> {
        None
    }
}

impl<T, C: Combine<T> + Sync + ?Sized> Combine<T> for Arc<C> {
    fn combination(&self) -> Option<(Kernel<'_>, &'static str)> {
        (**self).combination()
    }
}

/// The buffers of an operation.
pub(super) trait Buffers: Send {
    fn operands<'c>(&'c mut self, job: &'c Job) -> Operands<'c>;
}

/// The layout of a PE's blocks in a buffer of a vector variant, owned by its operation.
#[derive(Clone, Debug)]
pub(super) enum OwnedLayout {
    /// Blocks of equal length, or one block.
    Even(Layout<'static>),
    /// Blocks at these displacements, in elements.
    Each { blocks: Arc<Displacements>, element_bytes: usize },
}

impl OwnedLayout {
    pub(super) fn each<T: Pod>(blocks: Displacements) -> Self {
        Self::Each { blocks: Arc::new(blocks), element_bytes: size_of::<T>() }
    }

    /// Returns the layout of one block at the start of the buffer.
    pub(super) fn one<T: Pod>(len: usize) -> Self {
        Self::Even(Layout::whole(len.saturating_mul(size_of::<T>())))
    }

    pub(super) fn layout(&self) -> Layout<'_> {
        match self {
            Self::Even(layout) => *layout,
            Self::Each { blocks, element_bytes } => blocks.layout(*element_bytes),
        }
    }
}

/// The buffers and the operator of a call, owned by its operation.
pub(super) struct Owned<T, C> {
    pub(super) source: Vec<T>,
    pub(super) target: Vec<T>,
    pub(super) combine: C,
}

impl<T: Pod + Send, C: Combine<T>> Buffers for Owned<T, C> {
    fn operands<'c>(&'c mut self, _: &'c Job) -> Operands<'c> {
        let Self { source, target, combine } = self;
        Operands {
            kernel: combine.combination().map(|(kernel, _)| kernel),
            source: Buffer::source(source),
            target: Buffer::target(target),
            layouts: None,
        }
    }
}

/// A place in the memory that peers can access, which is not freed while a call is pending.
pub(super) trait Place: Send {
    /// Returns the offset from the heap, and the bytes.
    fn extent(&self) -> (usize, usize);
}

impl Place for Arc<Block> {
    fn extent(&self) -> (usize, usize) {
        (self.offset(), self.bytes())
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
    pub(super) collective: Collective,
    pub(super) is_root: bool,
    pub(super) rank_in_world: Rank,
    pub(super) source: P,
    pub(super) target: P,
    pub(super) combine: C,
    pub(super) elements: PhantomData<fn() -> T>,
}

impl<P: Place, T: Pod, C: Combine<T>> Buffers for InHeap<P, T, C> {
    fn operands<'c>(&'c mut self, job: &'c Job) -> Operands<'c> {
        let buffer = |place: &P| {
            let (offset, bytes) = place.extent();
            Buffer::symmetric(job, self.rank_in_world, offset, bytes)
        };
        let [source, target] =
            brought(self.collective, self.is_root, buffer(&self.source), buffer(&self.target));
        let kernel = self.combine.combination().map(|(kernel, _)| kernel);
        Operands { kernel, source, target, layouts: None }
    }
}
