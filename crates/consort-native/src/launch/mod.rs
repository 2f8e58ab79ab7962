//! A launch: its configuration, the state that its PEs share, and its failure.
//!
//! | file | what |
//! | --- | --- |
//! | `config` | the configuration |
//! | `layout`, `form` | the layout of the segment; what it begins with |
//! | `memory` | the segment, alone or shared with processes of the machine |
//! | `job` | the segment as one process sees it |
//! | `heap_size` | the size of a heap: the default, and what the environment gives |
//! | `heaps` | where the memory of each PE lies in it |
//! | `children` | the job in children that the process forks |
//! | `presence` | whether a thread runs a PE |
//! | `pairwise` | how long messages may be that two PEs exchange in lines which both write |
//! | `distance` | which PEs are near, and which are far |
//! | `naming` | the names of calls, for errors |
//! | `call_number` | the number of a call's name |
//! | `failure`, `reason` | why a job has failed, and its encoding in words of shared memory |
//! | `sites` | where in the program the recent calls were made |

pub(crate) mod call_number;
mod children;
pub(crate) mod config;
mod distance;
pub(crate) mod ending;
pub(crate) mod failure;
pub(crate) mod form;
pub(crate) mod heap_size;
mod heaps;
pub(crate) mod job;
pub(crate) mod layout;
pub(crate) mod memory;
mod naming;
pub(crate) mod pairwise;
mod presence;
pub(crate) mod reason;
pub(crate) mod sites;
