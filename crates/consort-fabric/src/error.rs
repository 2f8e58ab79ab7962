//! What an operation of a fabric may report.

/// The job has failed: a PE panicked or left, or calls did not match. What happened is kept once
/// for the whole job, by the fabric; an operation only says that it cannot complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

/// What an operation of a fabric returns.
pub type Op<T = ()> = Result<T, Poisoned>;
