//! Measuring: many kinds of work in one launch, in turn, each beside the limit of that moment.
//!
//! 1. `work`: what is timed, calls of Consort and of its peers;
//!    `values` are what a call takes along;
//! 2. `session`: one launch that times several kinds of work, block by block; `launch` launches
//!    it, and each PE is a `member`, which times blocks by a `clock`;
//! 3. `rounds`: sessions and slices of limits in turn, until the figures are sure or time is up;
//! 4. `run`: what a run says, as a `figure` for each kind of work and class of the transfer;
//! 5. `workbench`: what the tuner measures with; [`comparison`]: what tuning gains.

mod arrival;
mod clock;
pub mod comparison;
mod figure;
mod launch;
mod member;
mod rounds;
mod run;
mod session;
mod shared;
mod values;
mod work;
mod workbench;

pub use arrival::SKEW_NS;
pub use figure::{Figure, hundredths};
pub use rounds::{Collected, Rounds, of_class, sizes_bytes};
pub use run::{Run, limits_of};
pub use session::{Block, Conditions, Measured, Mode, Session, Timing};
pub use work::Work;
pub use workbench::{Threads, entry_and_exit_barrier};
