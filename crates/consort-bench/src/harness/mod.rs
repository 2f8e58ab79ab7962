//! Measures many kinds of work in one launch, in turn, together with the limits at that moment.
//!
//! 1. `work`: the timed calls of Consort and of its peers; `values`: collectives of values;
//!    [`Pattern`]: operations between two PEs; [`Communication`]: either of these;
//! 2. `session`: one launch that times several kinds of work, block by block; `launch` starts it;
//!    each PE, a thread or a process, is a `member` that times blocks by a `clock`; `shared`: the
//!    data that members share; `started`: PEs that are processes; `part`: the part of each process;
//! 3. `rounds`: sessions and readings of limits in turn, until the figures are precise or time is
//!    up;
//! 4. `run`: the results of a run, as a `figure` for each kind of work and class of the transfer;
//! 5. `workbench`: the measurements for the tuner; [`comparison`]: the gain by tuning;
//! 6. [`placement`]: the places of processes, and the time of a message between them.

mod arrival;
mod clock;
mod communication;
pub mod comparison;
mod figure;
mod launch;
mod member;
mod part;
pub mod placement;
mod point_to_point;
mod rounds;
mod run;
mod session;
mod shared;
mod started;
mod values;
mod work;
mod workbench;

pub use arrival::SKEW_NS;
pub use communication::Communication;
pub use figure::{Figure, hundredths};
pub use launch::{AlgorithmChoice, SessionError};
pub use part::take_part;
pub use point_to_point::Pattern;
pub use rounds::{Rounds, RoundsOutcome, is_sure, of_class, samples, sizes_bytes};
pub use run::RunSettings;
pub use session::{Block, Conditions, Mode, Session, SessionOutcome, Timing, block_time};
pub use work::{ServedBy, Work};
pub use workbench::{NativeWorkbench, entry_and_exit_barrier};
