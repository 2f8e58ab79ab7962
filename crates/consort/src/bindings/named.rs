//! Collectives whose operator is a value: for languages that name the operator at run time.
//!
//! The name of an operator selects the kernel of the call directly. So a call is compiled once for
//! each type, and not for each operator on the type.

use std::{marker::PhantomData, panic::Location};

use consort_fabric::{
    BitAnd, BitOr, BitXor, Collective, Max, Min, Operator, Pod, Product, Rank, Sum,
};

use crate::{
    Result, Team,
    collectives::{combine::Combine, form::Makes as _, verb::Verb},
    runtime::dispatch::{Combination, Combining},
};

/// The name of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorName {
    /// [`Sum`]
    Sum,
    /// [`Product`]
    Product,
    /// [`Min`]
    Min,
    /// [`Max`]
    Max,
    /// [`BitAnd`], on integers
    BitAnd,
    /// [`BitOr`], on integers
    BitOr,
    /// [`BitXor`], on integers
    BitXor,
}

/// An operator on elements of `T`, from [`Number::operator`].
#[derive(Debug)]
pub struct OperatorOn<T> {
    combining: Combining<'static>,
    of: PhantomData<fn(T, T) -> T>,
}

impl<T: Pod> OperatorOn<T> {
    fn new<O: Operator<T>>(operator: &'static O) -> Self {
        Self { combining: Combining::new::<T, O>(operator), of: PhantomData }
    }
}

impl<T> Combine<T> for Option<OperatorOn<T>> {
    fn combination(&self) -> Combination<'_> {
        self.as_ref().map(|of| of.combining)
    }
}

/// A type of numbers, which named operators combine.
pub trait Number: Pod {
    /// Returns the operator of this name; `None` if it does not combine such numbers.
    fn operator(name: OperatorName) -> Option<OperatorOn<Self>>;
}

macro_rules! numbers {
    ($operators:tt without $others:tt: $($t:ty)*) => {
        $(numbers!(@ $t: $operators $others);)*
    };
    (@ $t:ty: [$($name:ident)*] [$($other:ident)*]) => {
        impl Number for $t {
            fn operator(name: OperatorName) -> Option<OperatorOn<Self>> {
                match name {
                    $(OperatorName::$name => Some(OperatorOn::new(&$name)),)*
                    $(OperatorName::$other => None,)*
                }
            }
        }
    };
}

numbers!([Sum Product Min Max BitAnd BitOr BitXor] without []: i8 i16 i32 i64 u8 u16 u32 u64);
numbers!([Sum Product Min Max] without [BitAnd BitOr BitXor]: f32 f64);

/// Makes any collective but a barrier or a vector variant on slices, or in place if there is no
/// source. The root is ignored if the collective has none.
///
/// # Errors
/// As the collective's own method.
///
/// # Panics
/// When the collective combines and there is no operator, or the other way round; when it does not
/// work in place and there is no source.
#[track_caller]
pub fn collective<T: Pod>(
    team: &Team,
    collective: Collective,
    operator: Option<OperatorOn<T>>,
    root: Rank,
    source: Option<&[T]>,
    target: &mut [T],
) -> Result<()> {
    assert_eq!(collective.combines(), operator.is_some(), "operator of {}", collective.name());
    let root = collective.is_rooted().then_some(root);
    let verb = Verb { root, ..Verb::new(collective) };
    if let Some(source) = source {
        return team.slices(source, target).0.all(verb, operator, Location::caller());
    }
    assert!(works_in_place(collective), "{} does not work in place", collective.name());
    team.in_place(target).0.all(verb, operator, Location::caller())
}

/// Returns whether a PE may contribute what is in its target, on blocks of equal length.
#[must_use]
pub const fn works_in_place(collective: Collective) -> bool {
    use Collective::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, Scan};
    matches!(collective, Broadcast | AllGather | AllToAll | Reduce | AllReduce | Scan)
}
