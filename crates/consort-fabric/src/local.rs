//! The caller of a collective, and its own data.

use std::future::{Future, ready};

use crate::{Op, Place, Rank, Span};

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
