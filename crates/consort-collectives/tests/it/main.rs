//! Tests of the algorithms as a user of the crate sees them, on a fabric made for them.

mod synchronous;
