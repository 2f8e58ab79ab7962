//! The machine that PEs run on.
//!
//! | file | what |
//! | --- | --- |
//! | `topology` | processors and caches, and how many of them this process may use |
//! | `affinity` | which processors a thread may run on |
//! | `cores` | which processors the jobs of this process use |

pub mod affinity;
pub(crate) mod cores;
pub mod topology;
