//! Rendezvous: a PE exposes a private buffer, a peer attaches it, copies, and detaches it.

use std::future::Future;

use crate::{Op, Rank, Rma, Span};

/// Access to peers' buffers that are not in symmetric memory.
///
/// Everything that a PE did before `expose` or `detach` happens before everything that the peer
/// does after the `attach` or `await_detached` that takes it.
pub trait Rendezvous: Rma {
    /// Exposes a buffer to `to`, which may read it, and may write it if it is the target. Exposures
    /// 0 and 1 of a call are distinct. The call does not end before the buffer is detached.
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op>;

    /// Waits for exposure `exposure` of `from` and attaches it, once.
    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<Self::Remote>>;

    /// Fails the job unless the exposed buffer is `bytes` long. Both PEs of a block of a vector
    /// variant state its length; this compares the two.
    fn check_length(&self, remote: &Self::Remote, bytes: usize) -> impl Future<Output = Op>;

    /// Detaches a peer's memory. Does nothing for memory that needed no rendezvous.
    fn detach(&self, remote: Self::Remote) -> impl Future<Output = Op>;

    /// Waits until all exposures of this PE in this call are detached.
    fn await_detached(&self) -> impl Future<Output = Op>;
}
