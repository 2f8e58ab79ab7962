//! On what machine, when, by what build and how undisturbed something was measured.
//!
//! 1. `date`: the date in UTC;
//! 2. `context`: what every object of a result names;
//! 3. `watch`: whether the machine was busy before and meanwhile; `switches`: how often measuring
//!    threads lost their processors.
//!
//! Only dates are by the clock that people set. Times are by one that never steps and stands still
//! while the machine is suspended.

mod context;
mod date;
mod switches;
mod watch;

pub use context::Context;
pub use date::now;
pub use switches::Switches;
pub use watch::Watch;
