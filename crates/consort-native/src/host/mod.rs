//! The machine that PEs run on.
//!
//! | file | what |
//! | --- | --- |
//! | `topology` | processors and caches, and how many of them this process may use |
//! | `affinity` | which processors a thread may run on |
//! | `cores` | which processors the jobs of this process use |
//! | `pairwise` | how long messages may be that two PEs exchange in lines which both write |
//! | `threads` | how many threads this process may start |
//! | `usage` | what the system counts of a thread, and of the machine's sleep |

pub mod affinity;
pub(crate) mod cores;
pub(crate) mod pairwise;
pub mod threads;
pub mod topology;
pub mod usage;
