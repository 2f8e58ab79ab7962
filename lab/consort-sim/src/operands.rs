//! The operands of a simulated call.

use consort_fabric::{Kernel, Layout};

/// A buffer of a PE in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Private memory. Peers access it only while it is exposed.
    Owned(Vec<u8>),
    /// Part of the symmetric heap.
    Symmetric {
        /// The offset in the heap, in bytes.
        at: usize,
        /// The length in bytes.
        bytes: usize,
    },
}

/// The operands of a PE in a call.
#[derive(Clone, Debug)]
pub struct Operands<'o> {
    /// The operator, if contributions are combined.
    pub kernel: Option<Kernel<'o>>,
    /// The PE's contribution. A broadcast's root has its data here and in the target.
    pub source: Buffer,
    /// The buffer for the result.
    pub target: Buffer,
    /// The layouts of the blocks of source and target, in a vector variant.
    pub layouts: Option<[Layout<'o>; 2]>,
}

impl Operands<'_> {
    /// No operands, for a barrier.
    pub const NONE: Self = Self {
        kernel: None,
        source: Buffer::Owned(Vec::new()),
        target: Buffer::Owned(Vec::new()),
        layouts: None,
    };
}
