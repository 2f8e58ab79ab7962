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

use std::future::{Future, ready};

#[cfg(doc)]
use crate::Rma;
use crate::{Counters, Messages, Place, Poisoned, Rank, Rendezvous, Span};

/// What an operation of a fabric returns.
pub type Op<T = ()> = Result<T, Poisoned>;

/// What a fabric can do for a call; an algorithm that needs more does not serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Channels of a PE's inbox for one call, each of one cache line.
    pub inbox_channels: u32,
    /// Bytes of the accumulator, and of the memory for incoming messages.
    pub scratch_bytes: usize,
    /// Bytes of a PE's message buffer.
    pub buffer_bytes: usize,
    /// Whether a PE can expose its buffers: peers then get and put without its help.
    pub exposes: bool,
    /// Whether a message is sent before its receiver takes it. Else two PEs that both send to each
    /// other first wait forever.
    pub buffered: bool,
}

/// The caller, and its own data.
pub trait Local {
    /// The caller's rank in the team.
    fn rank(&self) -> Rank;

    /// The team's size.
    fn size(&self) -> u32;

    /// `target = source`, both on this PE.
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op>;

    /// `target = left (op) right` with the call's operator, all on this PE.
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op>;

    /// Block `index` of what the caller contributes to a vector variant, or of what it receives: a
    /// span of the source or the target.
    fn vector_block(&self, place: Place, index: u32) -> Span;

    /// Lets the program go on that this call is driven beside, if it is a nonblocking one: for an
    /// algorithm that would else do what other PEs may come to do.
    fn yield_now(&self) -> impl Future<Output = Op> {
        ready(Ok(()))
    }
}

/// All parts: what an algorithm may use. A fabric implements the parts, and is one.
pub trait Fabric: Messages + Rendezvous + Counters {}

impl<F: Messages + Rendezvous + Counters> Fabric for F {}
