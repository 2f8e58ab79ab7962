//! The operator of a call, or none.

use std::sync::Arc;

use consort_fabric::{Operator, Pod};

use crate::{
    runtime::dispatch::{Combination, Combining},
    value::{Unpacking, Value},
};

/// The operator of a call on `T`, or none.
pub trait Combine<T>: Sync {
    fn combination(&self) -> Combination<'_>;
}

/// As [`Combine`], for values, which are packed while they are sent.
pub trait CombineValues<T: Value<Kind>, Kind> {
    type OnPacked: Combine<T::Packed>;

    fn on_packed(self) -> Self::OnPacked;
}

/// Combines with an operator.
#[derive(Clone, Copy, Debug)]
pub struct With<O>(pub(crate) O);

/// Combines nothing: the call only moves data.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl<T: Pod, O: Operator<T>> Combine<T> for With<O> {
    #[inline(always)]
    fn combination(&self) -> Combination<'_> {
        Some(Combining::new::<T, O>(&self.0))
    }
}

impl<T> Combine<T> for Nothing {
    #[inline(always)]
    fn combination(&self) -> Combination<'_> {
        None
    }
}

impl<T, C: Combine<T> + Send + ?Sized> Combine<T> for Arc<C> {
    fn combination(&self) -> Combination<'_> {
        (**self).combination()
    }
}

/// Combines packed values with an operator on the values.
pub struct WithUnpacking<O, T, Kind>(Unpacking<O, T, Kind>);

impl<O: Operator<T>, T: Value<Kind>, Kind> WithUnpacking<O, T, Kind> {
    #[inline(always)]
    pub(crate) fn new(operator: O) -> Self {
        Self(Unpacking::new(operator))
    }
}

impl<O: Operator<T>, T: Value<Kind>, Kind> Combine<T::Packed> for WithUnpacking<O, T, Kind> {
    #[inline(always)]
    fn combination(&self) -> Combination<'_> {
        Some(Combining { kernel: T::kernel(&self.0), name: O::NAME, wide: T::wide::<O>() })
    }
}

impl<T: Value<Kind>, Kind, O: Operator<T>> CombineValues<T, Kind> for With<O> {
    type OnPacked = WithUnpacking<O, T, Kind>;

    fn on_packed(self) -> Self::OnPacked {
        WithUnpacking::new(self.0)
    }
}

impl<T: Value<Kind>, Kind> CombineValues<T, Kind> for Nothing {
    type OnPacked = Self;

    fn on_packed(self) -> Self {
        self
    }
}
