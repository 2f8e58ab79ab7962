//! Measuring: many kinds of work in one launch, in turn, each beside the limit of that moment.
//!
//! 1. [`work`]: what is timed, calls of Consort and of its peers;
//!    [`values`] are what a call takes along;
//! 2. [`session`]: one launch that times several kinds of work, block by block;
//! 3. [`limits`]: what the machine itself could do, in slices between sessions;
//! 4. [`rounds`]: sessions and slices of limits in turn, until the figures are sure or time is up;
//!    [`progress`] shows how far they are.

pub(crate) mod limits;
pub(crate) mod progress;
pub(crate) mod rounds;
pub(crate) mod session;
pub(crate) mod values;
pub(crate) mod work;
