//! Timed work that is not a collective: programs, and parts of the library.
//!
//! 1. [`counting`]: counting puts, and the operations that they replace;
//! 2. [`region`]: parallel regions and barriers of threads, next to those of other libraries;
//! 3. [`critical_sections`]: locks and delegation, next to locks of other libraries;
//! 4. [`fork_join`]: programs made of parallel regions, each as a whole;
//! 5. `busy`: processes that keep cores busy meanwhile.

mod busy;
pub mod counting;
pub mod critical_sections;
pub mod fork_join;
pub mod region;
