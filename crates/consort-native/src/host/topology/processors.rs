//! Processors and caches.

use crate::host::affinity::CpuId;

/// One logical processor, and where it sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: CpuId,
    /// The core's number, unique within its die only; [`Cpu::core`] tells cores apart.
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
    /// Names the physical core by its lowest processor.
    #[must_use]
    pub fn core(&self) -> CpuId {
        self.siblings.first().copied().unwrap_or(self.id)
    }
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    /// Data alone.
    Data,
    /// Instructions alone.
    Instruction,
    /// Both.
    Unified,
}

/// One cache, and who shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes; 0 where unknown.
    pub bytes: u64,
    /// The size of a line in bytes; 0 where unknown.
    pub line_bytes: u32,
    /// How many lines of one set it holds; 0 where unknown.
    pub ways: u32,
    /// The processors that share it, in rising order.
    pub cpus: Vec<CpuId>,
}
