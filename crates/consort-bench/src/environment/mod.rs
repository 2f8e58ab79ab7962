//! The circumstances of a measurement: machine, date, build and disturbances.
//!
//! 1. `date`: the date in UTC;
//! 2. `context`: the context in every object of a result;
//! 3. `watch`: whether the machine was busy before and during the measurement; `switches`: how
//!    often measuring threads lost their processors.
//!
//! Only dates use the clock that people set. Times use a clock that never steps, and that stops
//! while the machine is suspended.

mod context;
mod date;
mod switches;
mod watch;

pub use context::Context;
pub use date::now;
pub use switches::Switches;
pub use watch::{Watch, cores_stay_idle, others_run};
