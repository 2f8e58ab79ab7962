//! The physical limits with which a collective's time is compared, measured on given cores.
//!
//! No algorithm between two cores is faster than the transfer of one cache line, and none moves
//! data faster than a core copies or adds it. These limits change within seconds if virtual cores
//! move between physical cores. So measure them just before or after the times that are compared
//! with them.
//!
//! - [`transfer_ns`]: one line, one way, by ping-pong; [`PingPong`] does this for two existing
//!   threads;
//! - [`copy_gbps`], [`pull_gbps`]: memcpy of the core's own data, and of data that another core has
//!   just rewritten;
//! - [`combine_gbps`], [`pull_combine_gbps`]: the addition of two arrays of doubles, likewise.
//!
//! Each measures for about its budget, but at least three times unless that takes much longer, and
//! returns the median. [`Limits`] holds readings of them over a run, and [`survey`] measures
//! between many processors.

mod bandwidth;
mod between;
mod ping_pong;
mod readings;
pub mod survey;

pub use bandwidth::{combine_gbps, copy_gbps, pull_combine_gbps, pull_gbps};
pub use between::{after_rewriting, median_within, transfer_ns};
pub use ping_pong::{PingPong, PingPongTimeout};
pub use readings::{Limit, Limits, MOST_BYTES, readings_agree};
