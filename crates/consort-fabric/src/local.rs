//! The calling PE of a collective, and its own data.

use std::future::{Future, ready};

use crate::{Op, Place, Rank, Span};

/// The calling PE, and operations on its own data.
pub trait Local {
    /// Returns the caller's rank in the team.
    fn rank(&self) -> Rank;

    /// Returns the team's size.
    fn size(&self) -> u32;

    /// Copies: `target = source`, both on this PE.
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op>;

    /// Combines: `target = left (op) right` with the call's operator, all on this PE.
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op>;

    /// Returns block `index` of a vector variant as a span of `place`: of the source, which the
    /// caller contributes, or of the target, which it receives.
    fn vector_block(&self, place: Place, index: u32) -> Span;

    /// In a nonblocking call, lets the rest of the PE's program run once. An algorithm calls it
    /// before work that another PE may be about to do.
    fn yield_now(&self) -> impl Future<Output = Op> {
        ready(Ok(()))
    }
}
