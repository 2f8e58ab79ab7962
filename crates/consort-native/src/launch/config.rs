//! What a launch fixes.

use crate::{progress::policy::Waiting, segment::origin::Origin};

/// What a launch fixes.
#[derive(Clone, Debug)]
pub struct Config {
    /// PEs in the job.
    pub pes: u32,
    /// How they wait.
    pub waiting: Waiting,
    /// Usable cores.
    pub cores: u32,
    /// Bytes of symmetric memory a PE.
    pub heap_bytes: usize,
    /// Where the memory that the PEs share comes from.
    pub memory: Origin,
    /// The sequence number of the first step, from 1 on. Tests of what happens when numbers begin
    /// again begin close to that.
    pub first_step: u64,
}
