//! A launch: its configuration, the state that its PEs share, and its failure.
//!
//! | file | what |
//! | --- | --- |
//! | `config` | the configuration |
//! | `config_error` | values of environment variables that cannot be used |
//! | `layout`, `form` | the layout of the segment, and its initial contents |
//! | `memory` | the segment, of one process or shared with other processes of the machine |
//! | `job` | the segment as one process sees it |
//! | `heap_size` | the size of a heap: the default, and the value from the environment |
//! | `heaps` | the place of each PE's memory in the segment |
//! | `children` | the job in forked children |
//! | `presence` | whether a thread runs a PE |
//! | `pairwise` | the longest message that two PEs exchange in lines that both write |
//! | `groups` | the memory of groups |
//! | `naming` | the names of calls, for errors |
//! | `call_number` | the number of a call's name |
//! | `failure`, `reason` | why a job has failed, and its encoding in words of shared memory |
//! | `sites` | the places in the program where recent calls were made |

pub(crate) mod call_number;
mod children;
pub(crate) mod config;
pub(crate) mod config_error;
pub(crate) mod ending;
pub(crate) mod failure;
pub(crate) mod form;
mod groups;
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
