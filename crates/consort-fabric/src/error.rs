//! The error of a fabric operation.

/// The job has failed: a PE panicked or left, or calls did not match. The fabric keeps the reason
/// once for the whole job; this error only reports that an operation cannot complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

/// The result of a fabric operation.
pub type Op<T = ()> = Result<T, Poisoned>;
