//! The interface for which collectives are written, in parts.
//!
//! A value that implements [`Fabric`] is one PE's view of one call. It knows the call's buffers,
//! its kernel and its sequence number. An algorithm moves data between *spans* ([`Span`]) of the
//! call's buffers and *channels* of the receiver's inbox. It never sees an address, and may not
//! assume that it can dereference a peer's memory. An algorithm's type bounds name the parts that
//! it uses:
//!
//! | part | contents |
//! | --- | --- |
//! | [`Local`] | the caller's rank; copying and combining its own data |
//! | [`Messages`] | messages and signals into a peer's inbox |
//! | [`Rma`] | gets and puts on memory that can be reached without a rendezvous |
//! | [`Rendezvous`] | the same on private buffers, which their owners expose |
//! | [`Counters`] | words to which several PEs add |
//! | [`VendorCollectives`] | collectives that the fabric provides |
//!
//! On shared memory, all operations except waits are ready at once. A wait may be pending, and
//! never spins internally: only the executor spins, yields and parks.
//!
//! Every operation fails with [`Poisoned`] once the job has failed, and only then.

use crate::{Counters, Messages, Rendezvous, VendorCollectives};
#[cfg(doc)]
use crate::{Local, Poisoned, Rma, Span};

/// All parts of the fabric. Any type that implements the parts implements this trait.
pub trait Fabric: Messages + Rendezvous + Counters + VendorCollectives {}

impl<F: Messages + Rendezvous + Counters + VendorCollectives> Fabric for F {}
