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
mod counters;
mod credits;
pub mod environment;
mod error;
mod fabric;
pub mod files;
mod kernel;
mod layout;
mod local;
mod messages;
mod model;
mod nodes;
mod notifications;
mod one_sided;
mod operator;
mod random;
mod rank;
pub mod reference;
mod rendezvous;
mod rma;
#[cfg(feature = "half")]
mod short_floats;
mod span;
pub mod statistics;
mod suggest;
mod sync;
mod trace_events;
mod tuning;
mod type_names;
pub mod units;
mod vendor;
mod wide;

pub use call_spec::CallSpec;
pub use candidate::{BadCandidate, Candidate};
pub use capabilities::{Capabilities, Vendor};
pub use channel::{Channel, LINE_PAYLOAD_BYTES, PAIRWISE_BYTES, Step};
/// The condition of a wait on a word of symmetric memory.
pub use consort_machine::Until;
pub use counters::Counters;
pub use credits::{Credit, Credits, window};
pub use error::{Op, Poisoned};
pub use fabric::Fabric;
pub use kernel::Kernel;
pub use layout::Layout;
pub use local::Local;
pub use messages::Messages;
pub use model::MachineModel;
pub use nodes::{Nodes, Ranks};
pub use notifications::{Event, Notification, Notifications, Then};
pub use one_sided::{Atomic, Signal};
pub use operator::{
    BitAnd, BitOr, BitXor, Max, Min, Operator, OperatorClass, Pod, Product, Sum, UnknownClass,
    Visitor,
};
pub use random::splitmix64;
pub use rank::Rank;
pub use rendezvous::Rendezvous;
pub use rma::{Rma, not_reached};
pub use span::{Place, Span};
pub use sync::{SyncMode, SyncModes, UnknownSyncModes};
pub use trace_events::{
    TRACE_BEGIN, TRACE_END, TRACE_SEPARATOR, TraceEvent, TraceThread, TraceValue,
};
pub use tuning::{Collective, Query, UnknownCollective};
pub use type_names::readable_type;
pub use vendor::{VendorCall, VendorCollectives};
pub use wide::{Wide, WideOperator};
