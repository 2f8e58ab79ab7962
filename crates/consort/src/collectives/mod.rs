//! The collectives of a team. A program names the data of a call, and then the collective.
//!
//! | file | contents |
//! | --- | --- |
//! | `call` | a call whose data is named, with a method for each collective |
//! | `form` | the forms of data: the results of calls on them, and the lengths that they determine |
//! | `counts` | the blocks of vector variants, as a program states them |
//! | `combine` | the operator of a call, or none |
//! | `widening` | partial results that are wider than the elements |
//! | `verb` | a collective with its root and the lengths of its blocks, and their checks |
//! | `values`, `slices` | the data of blocking calls, and a team's calls on values |
//! | `blocking` | the ways in which a blocking call takes its data |
//! | `barrier` | the barrier |

mod barrier;
mod blocking;
pub(crate) mod call;
pub(crate) mod combine;
pub(crate) mod counts;
pub(crate) mod form;
pub(crate) mod slices;
pub(crate) mod values;
pub(crate) mod verb;
pub(crate) mod widening;
