//! Measuring: many kinds of work in one launch, in turn, each beside the limit of that moment.

pub mod session;
pub mod work;
