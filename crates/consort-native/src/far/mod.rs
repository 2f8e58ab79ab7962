//! *Far* PEs: PEs of other processes, which share no memory with this process.
//!
//! Each process has its own segment, laid out for all PEs of the job. A store into the memory of a
//! far PE goes into the sender's segment, and a packet carries it to the same place in the segment
//! of that PE's process. So calls wait and receive as they do between threads, and PEs that are
//! near each other use one memory. A packet is only delivered when a thread *looks* for packets: it
//! asks the transport for packets that have arrived, and delivers them.
//!
//! | file | what |
//! | --- | --- |
//! | `distance` | decides whether a PE is near or far |
//! | `pe` | a far PE: operations on its memory, also those in progress |
//! | `transport` | the interface that carries frames of packets between processes |
//! | `loopback` | a transport within one process, for tests |
//! | `packet` | the packets of processes, encoded in words |
//! | `link` | a process's end: packets wait in frames |
//! | `rpc` | messages and requests to the processes of PEs |
//! | `pending_requests` | pending requests of a process, and the replies |
//! | `dispatch` | the effect of a packet in the process that receives it |
//! | `progress` | sending and delivering, and waits for replies |
//! | `coordinator` | the decisions of the process of PE 0 for all: blocks, numbers of groups, names |
//! | `memberships` | the groups that PEs of this process are in, and those that they have left |
//! | `released` | numbers of names that this process keeps for a while |
//! | `transfers` | the state of transfers of long data, from memory to memory |
//! | `bulk` | serves the transfers of other processes, and waits for transfers |
//! | `traffic` | how many packets of each group were sent and received |
//! | `report`, `census` | reports on the waits of all processes' PEs, to find deadlocks |
//! | `writes` | puts into the memory of others, and which of them are complete |
//! | `exposed` | buffers that are exposed to far PEs |

mod bulk;
pub(crate) mod census;
mod coordinator;
mod dispatch;
mod distance;
mod exposed;
pub(crate) mod link;
pub(crate) mod loopback;
mod memberships;
pub(crate) mod packet;
pub(crate) mod pe;
mod pending_requests;
pub(crate) mod progress;
mod released;
mod report;
mod rpc;
mod traffic;
mod transfers;
pub(crate) mod transport;
mod writes;
