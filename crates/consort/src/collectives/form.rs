//! The forms of data, and their results.

use consort_native::Site;

use super::{
    combine::{Nothing, With},
    verb::Verb,
};
use crate::Result;

/// The results of calls on this form of data.
pub trait Returns: Sealed {
    /// The result of a collective that returns a result on every PE.
    type All;
    /// The result of a collective that returns a result only on the root, or on all PEs but PE 0.
    type Some;
}

/// Makes calls that combine by `C`.
pub trait Makes<C>: Returns + Sized {
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::All>;

    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<Self::Some>;
}

/// Data of a call: one of the forms in the table of [`Call`](super::call::Call).
pub trait Form: Makes<Nothing> {}

impl<F: Makes<Nothing>> Form for F {}

/// Data whose elements the operator `O` combines. In calls that outlive their caller, it is also
/// `Send` and `'static`.
pub trait Combines<O>: Makes<With<O>> {}

impl<F: Makes<With<O>>, O> Combines<O> for F {}

/// Data whose source and target are separate.
#[diagnostic::on_unimplemented(
    message = "this collective does not work in place",
    label = "needs a separate source and target",
    note = "these work in place, on blocks of equal length: `broadcast`, `all_gather`, \
            `all_to_all`, `reduce`, `all_reduce` and `scan`",
    note = "for others use separate slices: `team.slices(&source, &mut target)`"
)]
pub trait Separate: Sealed {}

/// Data that determines the length of this PE's block in every collective.
#[diagnostic::on_unimplemented(
    message = "only the root knows the length of this PE's block",
    label = "needs the length of this PE's block",
    note = "state it: `.with_len(len).scatter(root)`"
)]
pub trait KnowsLength: Sealed {}

/// Data that determines the length of the block that this PE contributes.
#[diagnostic::on_unimplemented(
    message = "the buffers do not determine the length of the block that this PE contributes",
    label = "needs the length of this PE's block",
    note = "state it before the counts: `.with_len(len).with_counts(...)`"
)]
pub trait KnowsSource: Sealed {}

/// Data that determines the length of the block that this PE receives.
#[diagnostic::on_unimplemented(
    message = "the buffers do not determine the length of the block that this PE receives",
    label = "needs the length of this PE's block",
    note = "state it before the counts: `.with_len(len).with_counts(...)`"
)]
pub trait KnowsTarget: Sealed {}

/// Data that does not determine the length of this PE's block in every collective.
#[diagnostic::on_unimplemented(
    message = "this data already determines the length of each block",
    note = "leave out `.with_len(...)`; for a part of a slice, pass that part"
)]
pub trait TakesLength: Separate {}

/// Only the forms of this crate implement the traits above.
pub trait Sealed {}

/// Data whose block has a stated length; from [`Call::with_len`](super::call::Call::with_len).
#[derive(Debug)]
pub struct WithLen<F> {
    pub(super) form: F,
    pub(super) len: usize,
}

impl<F: Sealed> Sealed for WithLen<F> {}

impl<F: Returns> Returns for WithLen<F> {
    type All = F::All;
    type Some = F::Some;
}

impl<F: Makes<C>, C> Makes<C> for WithLen<F> {
    #[inline]
    fn all(self, verb: Verb<'_>, combine: C, site: Site) -> Result<F::All> {
        self.form.all(Verb { len: Some(self.len), ..verb }, combine, site)
    }

    #[inline]
    fn some(self, verb: Verb<'_>, combine: C, site: Site) -> Result<F::Some> {
        self.form.some(Verb { len: Some(self.len), ..verb }, combine, site)
    }
}

impl<F: Separate> Separate for WithLen<F> {}
impl<F: Separate> KnowsLength for WithLen<F> {}
impl<F: Separate> KnowsSource for WithLen<F> {}
impl<F: Separate> KnowsTarget for WithLen<F> {}

/// Data in blocks of stated lengths; from [`Call::with_counts`](super::call::Call::with_counts).
#[derive(Debug)]
pub struct WithCounts<F, B> {
    pub(super) form: F,
    pub(super) counts: B,
}
