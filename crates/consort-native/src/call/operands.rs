//! What a caller brings to a call: buffers, in slices or in symmetric memory, and an operator.

use std::marker::PhantomData;

use consort_fabric::{Kernel, Layout, Pod, Rank};

use crate::launch::job::Job;

/// A buffer that a caller brings to a call. There is one of a target for each borrow: one that were
/// copied could be a call's source and its target.
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
    /// None.
    pub const ABSENT: Self = Self {
        at: std::ptr::without_provenance_mut(64),
        bytes: 0,
        symmetric: false,
        borrow: PhantomData,
    };

    /// A slice to read: a source.
    #[inline]
    pub fn source<T: Pod>(data: &'b [T]) -> Self {
        let at = data.as_ptr().cast::<u8>().cast_mut();
        Self { at, bytes: size_of_val(data), symmetric: false, borrow: PhantomData }
    }

    /// A slice to write: a target. A broadcast's root also reads from it.
    #[inline]
    pub fn target<T: Pod>(data: &'b mut [T]) -> Self {
        let bytes = size_of_val(data);
        Self { at: data.as_mut_ptr().cast(), bytes, symmetric: false, borrow: PhantomData }
    }

    /// The part of symmetric memory of a PE, by its rank in the world, at `offset` of its heap.
    ///
    /// # Panics
    /// When it reaches beyond the heap.
    #[inline]
    pub fn symmetric(job: &'b Job, rank: Rank, offset: usize, bytes: usize) -> Self {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= job.heap_bytes());
        assert!(inside, "a buffer must lie in the symmetric heap");
        let at = job.heap(rank).wrapping_add(offset);
        Self { at, bytes, symmetric: true, borrow: PhantomData }
    }
}

/// What a caller brings to a call.
#[derive(Debug)]
pub struct Operands<'o> {
    /// How contributions are combined.
    pub kernel: Option<Kernel<'o>>,
    /// What this PE contributes.
    pub source: Buffer<'o>,
    /// Where this PE's result goes.
    pub target: Buffer<'o>,
    /// Where the blocks of source and target lie, in a vector variant.
    pub layouts: Option<&'o [Layout<'o>; 2]>,
}

impl Operands<'_> {
    /// Nothing: what a barrier needs.
    pub const NONE: Self =
        Self { kernel: None, source: Buffer::ABSENT, target: Buffer::ABSENT, layouts: None };
}
