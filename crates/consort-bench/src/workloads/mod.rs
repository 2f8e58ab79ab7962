//! Timed work that is not a collective: programs, and parts of the library.
//!
//! 1. [`counting`]: counting puts, and what they replace;
//! 2. [`online`]: choices refined while a program runs;
//! 3. [`overlap`]: computing beside a nonblocking broadcast;
//! 4. [`look_up`]: asking compiled wisdom for a choice.

pub mod counting;
pub mod look_up;
pub mod online;
pub mod overlap;
