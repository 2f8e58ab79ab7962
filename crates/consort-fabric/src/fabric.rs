//! The interface that collectives are written on, in parts.
//!
//! A value that implements [`Fabric`] is one call's view of the team: it knows the call's buffers,
//! its kernel and its sequence number. An algorithm moves data by naming *spans* ([`Span`]) of the
//! call and *channels* of the receiver's inbox; it never sees an address, and may not assume that a
//! peer's memory can be dereferenced. It is bounded by the parts that it uses:
//!
//! | part | what |
//! | --- | --- |
//! | [`Local`] | who the caller is; copying and combining its own data |
//! | [`Messages`] | messages and signals into a peer's inbox |
//! | [`Rma`] | gets and puts on memory that is reached without asking |
//! | [`Rendezvous`] | the same on private buffers, which their owners expose |
//! | [`Counters`] | words that several PEs add to |
//!
//! Operations other than waits are ready at once on shared memory; a wait may be pending, and
//! never spins inside itself: the executor alone spins, yields and parks.
//!
//! Every operation fails with [`Poisoned`] once the job has failed, and only then.

use crate::{Counters, Messages, Rendezvous};
#[cfg(doc)]
use crate::{Local, Poisoned, Rma, Span};

/// All parts: what an algorithm may use. A fabric implements the parts, and is one.
pub trait Fabric: Messages + Rendezvous + Counters {}

impl<F: Messages + Rendezvous + Counters> Fabric for F {}
