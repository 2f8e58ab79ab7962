//! What a PE brings to a simulated call.

use consort_fabric::{Kernel, Layout};

/// A buffer that a PE brings to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Its own, which peers reach only when it is exposed.
    Owned(Vec<u8>),
    /// Part of the symmetric heap.
    Symmetric {
        /// Offset in the heap, in bytes.
        at: usize,
        /// Length in bytes.
        bytes: usize,
    },
}

/// What a PE brings to a call.
#[derive(Clone, Debug)]
pub struct Operands<'o> {
    /// How contributions are combined.
    pub kernel: Option<Kernel<'o>>,
    /// What it contributes. A broadcast's root has its data here and as the target.
    pub source: Buffer,
    /// Where its result goes.
    pub target: Buffer,
    /// Where the blocks of source and target lie, in a vector variant.
    pub layouts: Option<[Layout<'o>; 2]>,
}

impl Operands<'_> {
    /// Nothing: what a barrier needs.
    pub const NONE: Self = Self {
        kernel: None,
        source: Buffer::Owned(Vec::new()),
        target: Buffer::Owned(Vec::new()),
        layouts: None,
    };
}
