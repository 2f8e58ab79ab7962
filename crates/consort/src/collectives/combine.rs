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

impl<O: Operator<T>, T: Value<Kind>, Kind> Combine<T::Packed> for Unpacking<O, T, Kind> {
    #[inline(always)]
    fn combination(&self) -> Combination<'_> {
        Some(T::combining(self))
    }
}

impl<T: Value<Kind>, Kind, O: Operator<T>> CombineValues<T, Kind> for With<O> {
    type OnPacked = Unpacking<O, T, Kind>;

    fn on_packed(self) -> Self::OnPacked {
        Unpacking::new(self.0)
    }
}

impl<T: Value<Kind>, Kind> CombineValues<T, Kind> for Nothing {
    type OnPacked = Self;

    fn on_packed(self) -> Self {
        self
    }
}
