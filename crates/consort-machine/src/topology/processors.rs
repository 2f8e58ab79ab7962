//! Processors and caches.

use crate::affinity::CpuId;

/// One logical processor and its position in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// The core's number, unique only within its die; [`Cpu::core`] is unique in the machine.
    pub core_id: u32,
    /// The package (socket) that contains it.
    pub package: u32,
    /// The die within the package.
    pub die: u32,
    /// The NUMA node whose memory is nearest.
    pub node: u32,
    /// All processors of its physical core, including itself, in ascending order.
    pub siblings: Vec<CpuId>,
}

impl Cpu {
    /// Returns the physical core, named by its lowest processor.
    #[must_use]
    pub fn core(&self) -> CpuId {
        self.siblings.first().copied().unwrap_or(self.id)
    }
}

/// The contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// One cache and the processors that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The level; 1 is the nearest to the core.
    pub level: u32,
    /// The contents.
    pub kind: CacheKind,
    /// The size in bytes; 0 if unknown.
    pub bytes: u64,
    /// The size of a line in bytes; 0 if unknown.
    pub line_bytes: u32,
    /// The associativity, that is, the number of lines in a set; 0 if unknown.
    pub ways: u32,
    /// The processors that share it, in ascending order.
    pub cpus: Vec<CpuId>,
}
