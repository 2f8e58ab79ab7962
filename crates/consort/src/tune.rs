//! The choice of algorithms: candidates, the calls that they serve, and the origin of a choice.

#[doc(inline)]
pub use consort_fabric::{Candidate, Collective, Query};
#[doc(inline)]
pub use consort_tuner::{Arrival, ChosenBy};

pub use crate::algorithms::{Algorithms, register};
