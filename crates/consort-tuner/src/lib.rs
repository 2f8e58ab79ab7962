//! Search, wisdom and selection among the algorithms of a collective, by name and parameters.
//!
//! Nishtala and Yelick ("Optimizing collective communication on multicores", 2009) find the best
//! tree by trying trees, with the mode, the size and the team as inputs. In the same way, a model
//! prunes candidates here, and measurement decides. This crate contains no algorithms: a
//! [`Catalog`] lists candidates and estimates them, and a [`Workbench`] measures them.
//!
//! 1. [`Search`] measures a [`Workload`] at a [`Rigour`] and writes entries into [`Wisdom`]. The
//!    workload is a [`Grid`] of queries, or the [`Mix`] that programs have recorded.
//! 2. [`Wisdom`] is the readable file of one machine. It is loaded, saved atomically, merged, and
//!    refused if it does not fit.
//! 3. A [`Selector`] selects by wisdom, and by the model if wisdom has no entry. A [`Table`] is
//!    wisdom compiled for one team; a look-up takes nanoseconds.
//! 4. [`inconsistencies`] finds entries that contradict each other, and [`Check`] measures how much
//!    slower the choices are than the best candidates.
//! 5. [`online`] refines a choice while a program runs.
//!
//! Every query is first made canonical: a barrier is Strict, and has no bytes, operator or private
//! buffers; only a collective that combines has an operator class.

#[cfg(test)]
use consort_sandbox as _;

mod best_parts;
#[cfg(feature = "search")]
mod check;
#[cfg(feature = "search")]
mod consistency;
mod estimate;
#[cfg(feature = "search")]
mod grid;
mod mix;
mod named_enums;
pub mod online;
mod profile;
mod query;
#[cfg(feature = "search")]
mod race;
mod row;
#[cfg(feature = "search")]
mod search;
mod select;
mod table;
mod text;
mod times;
mod toml;
mod wisdom;
mod workbench;
#[cfg(feature = "search")]
mod workload;

#[cfg(feature = "search")]
pub use check::{Check, CheckReport, Penalty};
#[cfg(feature = "search")]
pub use consistency::{Inconsistency, inconsistencies};
pub use estimate::{distinct, ranked, same};
#[cfg(feature = "search")]
pub use grid::Grid;
pub use mix::{Mix, MixError};
pub use named_enums::{Arrival, Confidence, Origin, Rigour, TransferClass, UnknownWord};
pub use profile::{CallProfile, PeProfile};
#[cfg(feature = "search")]
pub use race::Race;
#[cfg(feature = "search")]
pub use search::{Observer, Outcome, Progress, Search, SearchError, StopReason};
pub use select::{ChosenBy, Measurements, Selection, Selector};
pub use table::Table;
pub use wisdom::{
    Entry, FORMAT, Identity, IdentityMismatch, Revisions, RunnerUp, Wisdom, WisdomError,
    default_path, replace_file,
};
pub use workbench::{Block, Catalog, Sample, Workbench};
#[cfg(feature = "search")]
pub use workload::{Workload, shares_ahead};
