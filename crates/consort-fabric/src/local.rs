//! The calling PE of a collective, and its own data.

use std::future::{Future, ready};

use crate::{Op, Place, Rank, Span};

/// The calling PE, and operations on its own data.
pub trait Local {
    /// The caller's rank in the team.
    fn rank(&self) -> Rank;

    /// The team's size.
    fn size(&self) -> u32;

    /// `target = source`, both on this PE.
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op>;

    /// `target = left (op) right` with the call's operator, all on this PE.
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op>;

    /// Block `index` of a vector variant, as a span of `place`: of the source, which the caller
    /// contributes, or of the target, which it receives.
    fn vector_block(&self, place: Place, index: u32) -> Span;

    /// In a nonblocking call, lets the rest of the PE's program run once. For an algorithm that
    /// would otherwise do work that another PE may be about to do.
    fn yield_now(&self) -> impl Future<Output = Op> {
        ready(Ok(()))
    }
}
