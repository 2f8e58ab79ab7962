//! PEs of other processes that share no memory with this one: *far* PEs.
//!
//! Each process has a segment of its own, laid out for all PEs of the job. A store into the memory
//! of a far PE goes into the sender's own segment, and a packet carries it to the same place in the
//! segment of that PE's process. So calls wait and receive as they do among threads, and PEs that
//! are near to each other use one memory.
//!
//! | file | what |
//! | --- | --- |
//! | `transport` | what carries frames of packets between processes |
//! | `loopback` | such a transport within one process, for tests |
//! | `packet` | what processes tell and ask each other, in words |
//! | `link` | a process's end: packets wait in frames |
//! | `telling` | what PEs tell and ask the processes of far ones |
//! | `questions` | what a process has asked, and the answers |
//! | `deliver` | what a packet does in the process that it arrives in |
//! | `progress` | sending and delivering, and waits for answers |
//! | `home` | what the process of PE 0 decides for all: blocks, numbers of groups, names |
//! | `memberships` | which groups PEs of this process are in, and which they have left |
//! | `released` | numbers of names that this process keeps for a while |
//! | `transfers` | what goes on with long data, which goes from memory to memory |
//! | `moves` | begins transfers, and waits for them |
//! | `traffic` | how many packets of each group were sent and received |
//! | `report`, `census` | what the PEs of all processes wait for, to find deadlocks |
//! | `writes` | what was put into the memory of others, and what of it is done |
//! | `exposed` | buffers that are exposed to far PEs |

pub(crate) mod census;
pub(crate) mod deliver;
mod exposed;
mod home;
pub(crate) mod link;
pub(crate) mod loopback;
mod memberships;
mod moves;
pub(crate) mod packet;
pub(crate) mod progress;
mod questions;
mod released;
mod report;
mod telling;
mod traffic;
pub(crate) mod transfers;
pub(crate) mod transport;
mod writes;
