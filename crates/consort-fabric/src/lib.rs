//! The foundation of Consort: the vocabulary of all other crates.
//!
//! It defines ranks and synchronization modes, the [`Fabric`] for which collectives are written,
//! the kernels that combine data, the errors, and the vocabulary of tuning: queries, candidates,
//! and the [`MachineModel`] of cost functions. Nothing here depends on threads, processes or a
//! network. [`files`] reads the files that users name, for all crates.

mod call_spec;
mod candidate;
mod capabilities;
mod channel;
pub mod environment;
mod fabric;
pub mod files;
mod kernel;
mod layout;
mod model;
mod named_enum;
mod nodes;
mod notifications;
mod operator;
mod random;
mod rank;
pub mod reference;
#[cfg(feature = "half")]
mod short_floats;
mod span;
pub mod statistics;
mod suggest;
mod sync;
mod trace_events;
mod tuning;
pub mod units;

pub use call_spec::{CallSpec, readable_type};
pub use candidate::{BadCandidate, Candidate};
pub use capabilities::{Capabilities, Vendor};
pub use channel::{Channel, LINE_PAYLOAD_BYTES, PAIRWISE_BYTES, Step};
/// The condition of a wait on a word of symmetric memory.
pub use consort_machine::Until;
pub use fabric::{
    Atomic, Counters, Credit, Credits, Fabric, Local, Messages, Op, Poisoned, Rendezvous, Rma,
    Signal, VendorCall, VendorCollectives, not_reached, window,
};
pub use kernel::Kernel;
pub use layout::Layout;
pub use model::MachineModel;
pub use nodes::{Levels, Nodes, Ranks};
pub use notifications::{Event, Notification, Notifications, Then};
pub use operator::{
    BitAnd, BitOr, BitXor, Max, Min, Operator, OperatorClass, Pod, Product, Sum, UnknownClass,
    Visitor, Wide, WideOperator,
};
pub use random::splitmix64;
pub use rank::Rank;
pub use span::{Place, Span};
pub use sync::{SyncMode, SyncModes, UnknownSyncModes};
pub use trace_events::{
    TRACE_BEGIN, TRACE_END, TRACE_SEPARATOR, TraceEvent, TraceThread, TraceValue,
};
pub use tuning::{Collective, Query, UnknownCollective};
