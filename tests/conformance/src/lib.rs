//! The conformance suite: what every fabric must do, whatever it is made of.
//!
//! [`cases`] has the cases: every collective by every algorithm of the registry, with all values of
//! its parameters, in the nine synchronization modes, at sizes and roots, with private and
//! symmetric buffers, by commutative and ordered operators. A [`Program`] is some of them in a row,
//! with the data of each call and what must come of it. [`run`] is what every PE does with a
//! program, on a fabric that implements [`Member`].
//!
//! [`data`], [`registry`] and [`turns`] serve the tests of `consort` as well.
//!
//! The fabrics under test are in this package's `tests/`: threads, simulated schedules at random,
//! machines that are described, and the fabric of `docs/adding-a-fabric.md`.

pub mod cases;
mod coverage;
pub mod data;
mod member;
mod program;
pub mod registry;
pub mod turns;

pub use cases::{Case, Kind, Space};
pub use coverage::Coverage;
pub use member::{Counts, Member, Progress, run};
pub use program::{Place, Program, Side};
