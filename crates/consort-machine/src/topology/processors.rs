//! Processors and caches.

use crate::affinity::CpuId;

/// One logical processor and its place in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// The core's number, unique within its die only; [`Cpu::core`] is unique in the machine.
    pub core_id: u32,
    /// The package (socket) it is on.
    pub package: u32,
    /// The die within the package.
    pub die: u32,
    /// The NUMA node whose memory is nearest.
    pub node: u32,
    /// All processors of its physical core, itself among them, in rising order.
    pub siblings: Vec<CpuId>,
}

impl Cpu {
    /// The physical core, named by its lowest processor.
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
    /// Its size in bytes; 0 where unknown.
    pub bytes: u64,
    /// The size of a line in bytes; 0 where unknown.
    pub line_bytes: u32,
    /// The associativity: how many lines a set holds; 0 where unknown.
    pub ways: u32,
    /// The processors that share it, in rising order.
    pub cpus: Vec<CpuId>,
}
