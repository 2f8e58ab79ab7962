//! The choice of algorithms: candidates, the calls that they serve, and the origin of a choice.
//!
//! | a program | by |
//! | --- | --- |
//! | sees the choice for a call | [`TeamAlgorithms::choice`], [`TeamAlgorithms::served_by`] |
//! | forces a candidate | [`JobBuilder::force`](crate::JobBuilder::force), [`TeamAlgorithms::force`] |
//! | uses the wisdom in a file | [`JobBuilder::wisdom`](crate::JobBuilder::wisdom) |
//! | refines choices while it runs | [`JobBuilder::online`](crate::JobBuilder::online), [`TeamAlgorithms::save_refined`] |
//! | adds an algorithm | [`register`], [`TeamAlgorithms::force_with`] |

#[doc(inline)]
pub use consort_fabric::{Candidate, Collective, Query};
#[doc(inline)]
pub use consort_tuner::{Arrival, ChosenBy};

pub use crate::{
    algorithms::{Algorithms, register},
    team_algorithms::TeamAlgorithms,
};
