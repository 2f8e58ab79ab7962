//! Types for calls on values: plain data is passed as it is; `bool`, `char`, `Option`, tuples and
//! types with `#[derive(Value)]` are packed.
//!
//! Only plain data is sent, so everything that arrives can be unpacked. The compiler infers a kind
//! for each type. Without kinds, the implementations for plain data and for packed types could
//! overlap, because `bytemuck` might make any type plain data.

#![expect(unsafe_code, reason = "declares that a packed tuple is plain data")]

use std::{borrow::Cow, marker::PhantomData};

use consort_fabric::{Operator, OperatorClass, Pod};

use crate::runtime::dispatch::Combining;

/// A type for calls on values, such as [`Team::broadcast`](crate::Team::broadcast) and
/// [`Team::all_reduce`](crate::Team::all_reduce): plain data ([`Pod`]), `bool`, `char`, `Option` of
/// a value, tuples of two to six values, and types that derive `Value`.
///
/// `Kind` distinguishes these cases and is always inferred: write `_` for it. Code that is generic
/// over a `T: Pod` can pass a `T` to all of these calls.
///
/// A value that is not plain data is packed into plain data to be sent. Operators get it unpacked,
/// and messages about calls name its type as the program does. Slices and symmetric memory hold
/// only plain data.
///
/// ```
/// use consort::{Job, ops::BitAnd};
///
/// let all = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let me = world.rank().0;
///     let everyone = world.all_reduce(me < 3, BitAnd)?;
///     // The sum and the maximum in one call.
///     let both = |(sum, most): (u64, f64), (one, other)| (sum + one, most.max(other));
///     let (sum, most) = world.all_reduce((u64::from(me), f64::from(me) / 2.0), both)?;
///     Ok((everyone, sum, most))
/// })?;
/// assert_eq!(all, [(true, 3, 1.0); 3]);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// # User-defined types
/// With the feature `derive`, structs of values and enums without data derive `Value`. The fields
/// are packed one after another, so padding is allowed. The index of a variant is sent as a byte.
///
/// ```
/// use consort::Job;
///
/// #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, consort::Value)]
/// enum State { Converged, Running, Diverged }
///
/// #[derive(Clone, Copy, Debug, PartialEq, consort::Value)]
/// struct Report {
///     state: State,
///     residual: f64,
///     at: Option<(u32, u32)>,
/// }
///
/// let worse = |a: Report, b: Report| if b.state > a.state { b } else { a };
/// let all = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let state = if world.rank().0 == 1 { State::Running } else { State::Converged };
///     let at = (state == State::Running).then_some((4, 2));
///     world.all_reduce(Report { state, residual: 0.5, at }, worse)
/// })?;
/// assert_eq!(all, [Report { state: State::Running, residual: 0.5, at: Some((4, 2)) }; 3]);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Structs that slices and symmetric memory also take derive [`Pod`] instead. A type cannot derive
/// both, because its kind would be ambiguous.
///
/// Any other type defines its packed form, with any local type as its kind:
///
/// ```
/// use consort::{Job, Rank, Value};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Event { Quit, Key(char) }
///
/// impl Value<Event> for Event {
///     type Packed = u32;
///
///     fn pack(self) -> u32 {
///         match self {
///             Event::Quit => u32::MAX,
///             Event::Key(key) => key.into(),
///         }
///     }
///
///     fn unpack(packed: u32) -> Self {
///         char::from_u32(packed).map_or(Event::Quit, Event::Key)
///     }
/// }
///
/// let all = Job::threads(2).run(|pe| pe.world().broadcast(Event::Key('q'), Rank(1)))?;
/// assert_eq!(all, [Event::Key('q'); 2]);
/// # Ok::<(), consort::Error>(())
/// ```
///
/// Calls do not take other types:
///
/// ```compile_fail,E0277
/// # use consort::{Job, Rank};
/// Job::threads(2).run(|pe| pe.world().broadcast("a text".to_owned(), Rank(0)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed by value",
    label = "neither plain data, nor `bool`, `char`, an option or a tuple of such",
    note = "a slice or a `Vec` goes as `team.values(&v)`, `team.slices(...)` or \
            `team.in_place(&mut data)`, followed by the collective, and a text as its bytes",
    note = "for a struct, or an enum without data: `#[derive(Clone, Copy, consort::Value)]` with \
            the feature `derive` of `consort`; for a struct whose fields are all plain data, \
            without padding, also `#[derive(Clone, Copy, consort::Pod)]` with `#[repr(C)]`",
    note = "a `Rank` goes as its number, `rank.0`",
    note = "for another `Copy` type of your own implement `consort::Value`, which packs it into \
            plain data; wrap a type of another crate in a struct of your own",
    note = "the features `half` and `num-complex` of `consort` make `half::f16`, `half::bf16` and \
            `num_complex::Complex` plain data"
)]
pub trait Value<Kind>: Copy + 'static {
    /// The type that is sent.
    type Packed: Pod;

    /// Packs the value.
    fn pack(self) -> Self::Packed;

    /// Unpacks a value that was packed on this or another PE. It must not panic: a call whose value
    /// cannot be unpacked has already ended on the other PEs.
    fn unpack(packed: Self::Packed) -> Self;

    /// Returns an operator on packed values. For plain data it is the operator itself.
    #[doc(hidden)]
    #[inline]
    fn combining<O: Operator<Self>>(operator: &Unpacking<O, Self, Kind>) -> Combining<'_> {
        Combining::new::<Self::Packed, _>(operator)
    }

    /// Passes the packed value to `change` and unpacks the result. Plain data is not copied.
    #[doc(hidden)]
    #[inline]
    fn as_packed<R>(&mut self, change: impl FnOnce(&mut Self::Packed) -> R) -> R {
        let mut packed = self.pack();
        let result = change(&mut packed);
        *self = Self::unpack(packed);
        result
    }

    /// Packs values. Plain data is not copied.
    #[doc(hidden)]
    fn pack_all(values: &[Self]) -> Cow<'_, [Self::Packed]> {
        values.iter().map(|value| value.pack()).collect()
    }

    /// Unpacks values. Plain data is not copied.
    #[doc(hidden)]
    fn unpack_all(packed: Vec<Self::Packed>) -> Vec<Self> {
        packed.into_iter().map(Self::unpack).collect()
    }
}

/// The kind of plain data.
#[derive(Clone, Copy, Debug)]
pub enum AsPod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> Value<AsPod> for T {
    type Packed = T;

    #[inline(always)]
    fn pack(self) -> T {
        self
    }

    #[inline(always)]
    fn unpack(packed: T) -> T {
        packed
    }

    #[inline(always)]
    fn combining<O: Operator<T>>(operator: &Unpacking<O, T, AsPod>) -> Combining<'_> {
        Combining::new::<T, O>(&operator.operator)
    }

    #[inline(always)]
    fn as_packed<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        change(self)
    }

    #[inline(always)]
    fn pack_all(values: &[T]) -> Cow<'_, [T]> {
        Cow::Borrowed(values)
    }

    #[inline(always)]
    fn unpack_all(packed: Vec<T>) -> Vec<T> {
        packed
    }
}

/// Any number but 0 is true.
impl Value<bool> for bool {
    type Packed = u8;

    #[inline]
    fn pack(self) -> u8 {
        self.into()
    }

    #[inline]
    fn unpack(packed: u8) -> Self {
        packed != 0
    }
}

/// A number that is not a character, which no PE sends, becomes U+FFFD.
impl Value<char> for char {
    type Packed = u32;

    #[inline]
    fn pack(self) -> u32 {
        self.into()
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        Self::from_u32(packed).unwrap_or(Self::REPLACEMENT_CHARACTER)
    }
}

/// `None` is zeros. Any number but 0 is `Some`.
impl<T: Value<Kind>, Kind> Value<Option<Kind>> for Option<T> {
    type Packed = Several<u8, T::Packed>;

    #[inline]
    fn pack(self) -> Self::Packed {
        match self {
            Some(value) => Several(1, value.pack()),
            None => bytemuck::Zeroable::zeroed(),
        }
    }

    #[inline]
    fn unpack(Several(is_some, value): Self::Packed) -> Self {
        (is_some != 0).then(|| T::unpack(value))
    }
}

/// Packed values: the first, and the others.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed)]
pub struct Several<A, B>(pub A, pub B);

// SAFETY: zeros are a value of both fields, and so of the struct.
unsafe impl<A: bytemuck::Zeroable, B: bytemuck::Zeroable> bytemuck::Zeroable for Several<A, B> {}

// SAFETY: both fields are plain data, and a packed C struct has no padding.
unsafe impl<A: bytemuck::Pod, B: bytemuck::Pod> bytemuck::Pod for Several<A, B> {}

macro_rules! tuples {
    ($(($first:ident $first_kind:ident, $($other:ident $kind:ident),+);)*) => {$(
        impl<$first: Value<$first_kind>, $first_kind, $($other: Value<$kind>, $kind),+>
            Value<($first_kind, $($kind),+)> for ($first, $($other),+)
        {
            type Packed = tuples!(@type $first $($other)+);

            #[inline]
            #[expect(non_snake_case, reason = "values have the names of their types")]
            fn pack(self) -> Self::Packed {
                let ($first, $($other),+) = self;
                tuples!(@pack $first $($other)+)
            }

            #[inline]
            #[expect(non_snake_case, reason = "values have the names of their types")]
            fn unpack(tuples!(@pattern $first $($other)+): Self::Packed) -> Self {
                ($first::unpack($first), $($other::unpack($other)),+)
            }
        }
    )*};
    (@type $last:ident) => { $last::Packed };
    (@type $first:ident $($other:ident)+) => {
        Several<$first::Packed, tuples!(@type $($other)+)>
    };
    (@pack $last:ident) => { $last.pack() };
    (@pack $first:ident $($other:ident)+) => {
        Several($first.pack(), tuples!(@pack $($other)+))
    };
    (@pattern $last:ident) => { $last };
    (@pattern $first:ident $($other:ident)+) => {
        Several($first, tuples!(@pattern $($other)+))
    };
}

tuples! {
    (A KindOfA, B KindOfB);
    (A KindOfA, B KindOfB, C KindOfC);
    (A KindOfA, B KindOfB, C KindOfC, D KindOfD);
    (A KindOfA, B KindOfB, C KindOfC, D KindOfD, E KindOfE);
    (A KindOfA, B KindOfB, C KindOfC, D KindOfD, E KindOfE, F KindOfF);
}

/// Adapts an operator on values to packed values.
#[doc(hidden)]
pub struct Unpacking<O, T, Kind> {
    operator: O,
    values: PhantomData<fn(T, Kind)>,
}

impl<O, T, Kind> Unpacking<O, T, Kind> {
    #[inline(always)]
    pub(crate) fn new(operator: O) -> Self {
        Self { operator, values: PhantomData }
    }
}

impl<O: Operator<T>, T: Value<Kind>, Kind> Operator<T::Packed> for Unpacking<O, T, Kind> {
    const CLASS: OperatorClass = O::CLASS;
    const NAME: &'static str = O::NAME;

    #[inline]
    fn apply(&self, left: T::Packed, right: T::Packed) -> T::Packed {
        self.operator.apply(T::unpack(left), T::unpack(right)).pack()
    }
}
