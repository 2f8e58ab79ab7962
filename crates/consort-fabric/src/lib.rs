//! The ground floor of Consort: what every other crate speaks in.
//!
//! Ranks and synchronization modes, the [`Fabric`] that collectives are written on and the
//! [`Machine`] that locks and delegation are written on, the kernels
//! that combine data, the errors, and the vocabulary of tuning: queries, candidates, and the
//! [`MachineModel`] that cost functions are written over. Nothing here knows a thread, a process
//! or a network.

mod error;
mod fabric;
mod interrupts;
mod kernel;
mod layout;
mod machine;
mod model;
mod rank;
pub mod reference;
pub mod statistics;
mod sync;
mod tuning;

pub use error::{Poisoned, Signature};
pub use fabric::{
    Atomic, Capabilities, Fabric, LINE_PAYLOAD_BYTES, Op, Place, Signal, Slot, Span, Step, Until,
    not_reached,
};
pub use interrupts::{Heard, Interrupts, Notice, Then};
pub use kernel::{
    BitAnd, BitOr, BitXor, Kernel, Max, Min, Operator, OperatorClass, Pod, Product, Sum,
    UnknownClass,
};
pub use layout::Layout;
pub use machine::{MESSAGE_WORDS, Machine};
pub use model::MachineModel;
pub use rank::Rank;
pub use sync::{Mode, Sync, UnknownSync};
pub use tuning::{BadCandidate, Candidate, Collective, Query, UnknownCollective};
