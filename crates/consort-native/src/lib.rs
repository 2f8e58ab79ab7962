//! The threads fabric: cache lines, waiting, topology and affinity of this machine.
//!
//! A [`Job`] is what the PEs of a launch share, a [`Group`] what those of a team do, an
//! [`Endpoint`] is one PE's end of a team, and a [`Call`] is one collective's view: the
//! shared-memory implementation of [`consort_fabric::Fabric`]. [`Begun`] is a call that
//! an [`Engine`] drives while its PE does something else. A [`NoticeBoard`] is a PE's part in
//! broadcasts that only their source calls.

pub mod affinity;
mod begun;
pub mod bell;
mod call;
mod deadlock;
mod directory;
mod endpoint;
mod engine;
mod group;
mod job;
mod ledger;
mod lending;
pub mod limits;
pub mod line;
mod machine;
mod memory;
mod notices;
mod operands;
mod segment;
mod symmetric;
mod sync;
pub mod topology;
mod waiting;

pub use begun::Begun;
pub use call::{Call, Lease};
pub use directory::{BLOCK_ALIGN, HeapError, NoGroup, NoNumber};
pub use endpoint::{Endpoint, Part};
pub use engine::{Engine, Flights, Panic, discard, panic_reason};
pub use group::Group;
pub use job::{CallNumber, Config, Failure, Job, SEQUENCE_BITS};
pub use lending::{Access, Accessing};
pub use machine::{NativeMachine, Words};
pub use notices::NoticeBoard;
pub use operands::{Buffer, Operands};
pub use symmetric::Block;
pub use waiting::{Parker, UnknownWaiting, Waiting};
