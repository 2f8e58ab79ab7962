//! The machine that PEs run on.
//!
//! | file | what |
//! | --- | --- |
//! | `topology` | processors and caches, and how many of them this process may use |
//! | `affinity` | which processors a thread may run on |

pub mod affinity;
pub mod topology;
