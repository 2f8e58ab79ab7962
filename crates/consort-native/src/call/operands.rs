//! The operands of a call: buffers (slices or symmetric memory), an operator, and layouts.

use std::marker::PhantomData;

use consort_fabric::{Kernel, Layout, Pod, Rank};

use crate::{
    launch::job::Job,
    memory::{extent::SharedExtent, region::Memory},
};

/// A buffer that the caller passes to a call. It is not `Copy`, because a copied target could be
/// both source and target of one call; see [`Buffer::as_source`].
///
/// ```compile_fail,E0382
/// # use consort_native::{Buffer, Operands};
/// let mut data = [1_u64; 4];
/// let both = Buffer::target(&mut data);
/// let operands = Operands { kernel: None, source: both, target: both, layouts: None };
/// ```
#[derive(Debug)]
pub struct Buffer<'b> {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) symmetric: bool,
    borrow: PhantomData<&'b mut [u8]>,
}

impl<'b> Buffer<'b> {
    /// No buffer.
    pub const ABSENT: Self = Self {
        at: std::ptr::without_provenance_mut(64),
        bytes: 0,
        symmetric: false,
        borrow: PhantomData,
    };

    /// Returns a buffer that is only read: a source.
    #[inline]
    pub fn source<T: Pod>(data: &'b [T]) -> Self {
        let at = data.as_ptr().cast::<u8>().cast_mut();
        Self { at, bytes: size_of_val(data), symmetric: false, borrow: PhantomData }
    }

    /// Returns a buffer that is written: a target. The root of a broadcast also reads it.
    #[inline]
    pub fn target<T: Pod>(data: &'b mut [T]) -> Self {
        let bytes = size_of_val(data);
        Self { at: data.as_mut_ptr().cast(), bytes, symmetric: false, borrow: PhantomData }
    }

    /// Returns the buffer of `bytes` bytes at `offset` of the heap of PE `rank` of the world.
    ///
    /// # Panics
    /// When the range reaches beyond the heap.
    #[inline(always)]
    pub fn symmetric(job: &'b Job, rank: Rank, offset: usize, bytes: usize) -> Self {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= job.memory_bytes());
        assert!(inside, "a buffer must lie in the symmetric heap");
        let at = job.heap(rank).wrapping_add(offset);
        Self { at, bytes, symmetric: true, borrow: PhantomData }
    }

    /// Returns this target as the source of the same call, whose results replace the contribution.
    /// `None` unless peers read a copy of it that is made when the call exposes it: the PEs must be
    /// processes, and the memory must not lie in this PE's heap.
    #[must_use]
    pub fn as_source(&self, job: &Job) -> Option<Self> {
        let own = job.own()?;
        let Self { at, bytes, symmetric, borrow } = *self;
        let is_private = !symmetric && job.heap_block(own, at, bytes).is_none();
        is_private.then_some(Self { at, bytes, symmetric, borrow })
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    /// Returns a copy of this symmetric memory, which peers may access meanwhile.
    ///
    /// # Panics
    /// When this is not symmetric memory.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.bytes];
        Memory::private(copy.as_mut_ptr(), self.bytes).copy_from(self.shared());
        copy
    }

    /// Copies bytes to this symmetric memory, which peers may access meanwhile.
    ///
    /// # Panics
    /// When this is not symmetric memory, or has another length.
    pub fn copy_from(&mut self, bytes: &[u8]) {
        self.shared().copy_from(Memory::private(bytes.as_ptr().cast_mut(), bytes.len()));
    }

    fn shared(&self) -> Memory {
        assert!(self.symmetric, "only symmetric memory is copied");
        Memory { at: self.at, bytes: self.bytes, shared: Some(SharedExtent::WORDS) }
    }
}

/// The operands of a call.
#[derive(Debug)]
pub struct Operands<'o> {
    /// The operator on the call's datatype; `None` if nothing is combined.
    pub kernel: Option<Kernel<'o>>,
    /// The data that this PE contributes.
    pub source: Buffer<'o>,
    /// The memory that this PE's result is written to.
    pub target: Buffer<'o>,
    /// The layouts of the blocks in source and target; only for a vector variant.
    pub layouts: Option<&'o [Layout<'o>; 2]>,
}

impl Operands<'_> {
    /// No operands, as for a barrier.
    pub const NONE: Self =
        Self { kernel: None, source: Buffer::ABSENT, target: Buffer::ABSENT, layouts: None };
}
