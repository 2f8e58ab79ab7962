//! Timed work that is not a collective: programs, and parts of the library.
//!
//! 1. [`counting`]: counting puts, and the operations that they replace;
//! 2. [`online`]: choices refined while a program runs;
//! 3. [`overlap`]: computation during a nonblocking broadcast;
//! 4. [`look_up`]: look-ups of choices in compiled wisdom;
//! 5. [`region`]: parallel regions and barriers of threads, next to those of other libraries;
//! 6. [`sharing`]: jobs on cores that others use too, and the processor time of waits;
//! 7. [`critical_sections`]: locks and delegation, next to locks of other libraries;
//! 8. [`fork_join`]: programs made of parallel regions, each as a whole;
//! 9. [`interrupts`]: ways to make another thread do something.

pub mod counting;
pub mod critical_sections;
pub mod fork_join;
#[cfg(target_os = "linux")]
pub mod interrupts;
pub mod look_up;
pub mod online;
pub mod overlap;
pub mod region;
pub mod sharing;
