//! Protocols between PEs that several collectives use.
//!
//! | file | what |
//! | --- | --- |
//! | `direct` | combining directly from peers' buffers |
//! | `exchange` | rounds in which a PE sends to one PE and receives from one, in chunks |
//! | `in_rounds` | algorithms that consist of such rounds |
//! | `stream` | a message of any length over one edge of a tree, in two buffers |
//! | `rendezvous`, `exposed` | access to peers' buffers, which they expose |
//! | `shares` | work on all PEs' buffers, divided among the PEs |
//! | `vector_blocks` | blocks of any lengths, copied between the callers' buffers |
//! | `two_sided` | send and receive through the sender's message buffer |
//! | `relay` | blocks through message buffers, up or down a tree |

pub mod direct;
pub mod exchange;
pub mod exposed;
pub(crate) mod in_rounds;
pub mod relay;
pub mod rendezvous;
pub mod shares;
pub mod stream;
pub mod two_sided;
pub mod vector_blocks;
