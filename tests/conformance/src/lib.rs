//! The conformance suite: the required behaviour of every fabric.
//!
//! [`cases`] has the cases: every collective by every algorithm of the registry, with all values of
//! its parameters, in the nine synchronization modes, at sizes and roots, with private and
//! symmetric buffers, by commutative and ordered operators. A [`Program`] is a sequence of cases,
//! with the data of each call and the expected result. [`run`] runs a program on every PE, on a
//! fabric that implements [`Member`].
//!
//! [`data`], [`registry`] and [`turns`] also serve the tests of `consort`.
//!
//! The fabrics under test are in this package's `tests/`: threads, random simulated schedules,
//! machine models, and the fabric of `docs/adding-a-fabric.md`.

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
