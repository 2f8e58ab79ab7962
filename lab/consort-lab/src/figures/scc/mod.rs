//! T2 to T5 and T7 (Petrović 2015, chapters 3 and 4): broadcasts on the Intel SCC, simulated.
//!
//! 1. `machine`: the SCC and its broadcasts; `native`: the same on this machine, and
//!    `native_interrupts`: ways to interrupt a PE here;
//! 2. `row`: a figure of the thesis with the values to compare;
//! 3. `latency`: T2; `throughput`: T3; `asynchronous`, `interrupts` and `sources`: T4; `formulas`
//!    and `primitives`: T5; `pressure`: T7.

pub mod asynchronous;
pub mod formulas;
pub mod interrupts;
pub mod latency;
pub mod machine;
mod native;
#[cfg(target_os = "linux")]
mod native_interrupts;
pub mod pressure;
pub mod primitives;
mod row;
pub mod sources;
pub mod throughput;
