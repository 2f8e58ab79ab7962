//! Datatypes, and the operators that combine them.

use std::{fmt, str::FromStr};

/// Plain old data: any bit pattern is a value, and there is no padding. Slices and symmetric memory
/// contain only such elements.
///
/// All integers and floats, arrays of plain data, and structs that derive `consort::Pod` are plain
/// data. The trait adds no methods: exactly the types that implement `bytemuck::Pod` implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, which slices and symmetric memory consist of",
    label = "not plain data",
    note = "for a struct whose fields are all plain data, without padding: \
            `#[derive(Clone, Copy, consort::Pod)]` with `#[repr(C)]` and the feature `derive` of \
            `consort`",
    note = "`bool`, `char`, options, tuples and types that derive `consort::Value` go through calls \
            on values, such as `Team::all_reduce`; in slices use `u8` for `bool` and `u32` for \
            `char`",
    note = "the features `half` and `num-complex` of `consort` make `half::f16`, `half::bf16` and \
            `num_complex::Complex` plain data"
)]
pub trait Pod: bytemuck::Pod {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::Pod> Pod for T {}

/// The class of an operator, on which the choice of algorithm depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorClass {
    /// Associative and commutative.
    Commutative,
    /// Associative, but not commutative: contributions are combined in the order of the ranks.
    Ordered,
}

impl fmt::Display for OperatorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Commutative => "commutative",
            Self::Ordered => "ordered",
        })
    }
}

/// The error for a text that does not name an operator class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClass(String);

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "unknown operator class `{text}`: use commutative or ordered")
    }
}

impl std::error::Error for UnknownClass {}

impl FromStr for OperatorClass {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        match text {
            "commutative" => Ok(Self::Commutative),
            "ordered" => Ok(Self::Ordered),
            _ => Err(UnknownClass(text.to_owned())),
        }
    }
}

/// An associative binary operator on elements of type `T`.
///
/// Implemented by [`Sum`], [`Product`], [`Min`], [`Max`], [`BitAnd`], [`BitOr`], [`BitXor`] for the
/// types that support them and, element by element, for arrays of those. Also implemented by every
/// `Fn(T, T) -> T + Sync`, which is assumed to be associative but not commutative.
///
/// [`Sum`] and [`Product`] also combine `half::f16` and `half::bf16` (feature `half`) and
/// `num_complex::Complex` of `f32` and `f64` (feature `num-complex`). [`Min`] and [`Max`] combine
/// the former, but not complex numbers, which have no order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine values of `{T}`",
    label = "not an operator on `{T}`",
    note = "`Sum`, `Product`, `Min` and `Max` combine integers and floats; `BitAnd`, `BitOr` and \
            `BitXor` combine integers and `bool`; all of them also arrays of numbers",
    note = "with the feature `half`, `Sum`, `Product`, `Min` and `Max` combine `f16` and `bf16`; \
            with the feature `num-complex`, `Sum` and `Product` combine complex numbers, which \
            have no smallest or largest: compare them by a closure, for example by their norms",
    note = "for other types pass an associative closure, `|a: {T}, b: {T}| ...`, or implement \
            `consort::ops::Operator<{T}>` for a type of your own"
)]
pub trait Operator<T>: Sync {
    /// Whether operands may be exchanged.
    const CLASS: OperatorClass;
    /// The operator's name, for messages. Only an operator that computes the same may reuse a name
    /// from here: a library of the fabric may combine in place of [`Self::apply`](Operator::apply).
    const NAME: &'static str;
    /// How collectives keep partial results, if not as elements.
    #[doc(hidden)]
    const WIDE: Option<&'static Wide> = None;
    /// Combines `left` with `right`.
    fn apply(&self, left: T, right: T) -> T;

    /// Calls `visitor` with the operator on its basic type: for an operator on arrays, the operator
    /// on their numbers, so that many short arrays are one loop.
    #[doc(hidden)]
    #[inline]
    fn visit<'o, V: Visitor<'o>>(&'o self, visitor: V) -> V::Output
    where
        T: Pod,
        Self: Sized,
    {
        visitor.operator::<T, Self>(self)
    }
}

/// A function of any operator on plain data.
#[doc(hidden)]
pub trait Visitor<'o> {
    /// The result for the operator.
    type Output;
    /// Takes the operator.
    fn operator<T: Pod, O: Operator<T>>(self, operator: &'o O) -> Self::Output;
}

/// How an operator on floats of 16 bits keeps partial results: as `f32`, which a collective rounds
/// once, at its end.
pub struct Wide {
    /// Converts elements, which are bytes here.
    pub(crate) widen: fn(&[u8]) -> Vec<f32>,
    /// Rounds each number to an element.
    pub(crate) narrow: fn(&[f32], &mut [u8]),
    pub(crate) operator: WideOperator,
}

/// An operator on `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideOperator {
    /// [`Sum`]
    Sum,
    /// [`Product`]
    Product,
}

impl Wide {
    /// The bytes of a float that is widened.
    pub const NARROW_BYTES: usize = 2;

    /// Returns these elements as `f32`.
    #[must_use]
    pub fn widen(&self, elements: &[u8]) -> Vec<f32> {
        (self.widen)(elements)
    }

    /// Rounds the numbers to elements.
    pub fn narrow(&self, long: &[f32], elements: &mut [u8]) {
        (self.narrow)(long, elements);
    }

    /// Returns the operator on `f32`.
    #[must_use]
    pub const fn operator(&self) -> WideOperator {
        self.operator
    }
}

impl fmt::Debug for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wide").field("operator", &self.operator).finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<T, F: Fn(T, T) -> T + Sync> Operator<T> for F {
    const CLASS: OperatorClass = OperatorClass::Ordered;
    const NAME: &'static str = "a closure";

    #[inline]
    fn apply(&self, left: T, right: T) -> T {
        self(left, right)
    }
}

macro_rules! operators {
    ($(
        $(#[$doc:meta])*
        $name:ident: |$a:ident, $b:ident| $integer:expr
            $(, float $float:expr)? $(, bool $bool:expr)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;
        operators!(@impl $name, |$a, $b| $integer,
            u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
        $(operators!(@impl $name, |$a, $b| $float, f32 f64);)?
        $(operators!(@impl $name, |$a, $b| $bool, bool);)?

        /// Element by element.
        impl<T: Pod, const N: usize> Operator<[T; N]> for $name
        where
            Self: Operator<T>,
        {
            const CLASS: OperatorClass = <Self as Operator<T>>::CLASS;
            const NAME: &'static str = stringify!($name);
            const WIDE: Option<&'static Wide> = <Self as Operator<T>>::WIDE;

            #[inline]
            fn apply(&self, left: [T; N], right: [T; N]) -> [T; N] {
                std::array::from_fn(|index| Operator::<T>::apply(self, left[index], right[index]))
            }

            #[inline]
            fn visit<'o, V: Visitor<'o>>(&'o self, visitor: V) -> V::Output {
                Operator::<T>::visit(self, visitor)
            }
        }
    )*};
    (@impl $name:ident, |$a:ident, $b:ident| $body:expr, $($t:ty)*) => {$(
        impl Operator<$t> for $name {
            const CLASS: OperatorClass = OperatorClass::Commutative;
            const NAME: &'static str = stringify!($name);

            #[inline]
            fn apply(&self, $a: $t, $b: $t) -> $t {
                $body
            }
        }
    )*};
}

operators! {
    /// Addition; integers wrap around. If operands are NaNs, the result may be any of them. `f16`
    /// and `bf16` are added as `f32`, a collective rounds the sum of all PEs once, and a NaN is the
    /// type's `NAN`.
    Sum: |a, b| a.wrapping_add(b), float a + b;
    /// Multiplication; integers wrap around. If operands are NaNs, the result may be any of them.
    /// `f16` and `bf16` are multiplied as `f32`, a collective rounds the product of all PEs once,
    /// and a NaN is the type's `NAN`. The product of complex numbers is `(ac - bd) + (ad + bc)i`,
    /// so an infinite part may make both parts NaNs.
    Product: |a, b| a.wrapping_mul(b), float a * b;
    /// The smaller. For floats this is `minimumNumber` of IEEE 754-2019: -0 is smaller than +0, a
    /// number is preferred to a NaN, and two NaNs give the type's `NAN`. All PEs get the same bits.
    Min: |a, b| a.min(b), float a.minimum_number(b);
    /// The larger. For floats this is `maximumNumber` of IEEE 754-2019: +0 is larger than -0, a
    /// number is preferred to a NaN, and two NaNs give the type's `NAN`. All PEs get the same bits.
    Max: |a, b| a.max(b), float a.maximum_number(b);
    /// Bitwise and; for `bool`, whether all are true.
    BitAnd: |a, b| a & b, bool a & b;
    /// Bitwise or; for `bool`, whether any is true.
    BitOr: |a, b| a | b, bool a | b;
    /// Bitwise exclusive or; for `bool`, whether an odd number is true.
    BitXor: |a, b| a ^ b, bool a ^ b;
}

#[cfg(feature = "num-complex")]
macro_rules! complex_numbers {
    ($($t:ty)*) => {$(
        operators!(@impl Product, |a, b| a * b, num_complex::Complex<$t>);

        impl Operator<num_complex::Complex<$t>> for Sum {
            const CLASS: OperatorClass = OperatorClass::Commutative;
            const NAME: &'static str = "Sum";

            #[inline]
            fn apply(
                &self,
                left: num_complex::Complex<$t>,
                right: num_complex::Complex<$t>,
            ) -> num_complex::Complex<$t> {
                left + right
            }

            /// As an array of the two parts.
            #[inline]
            fn visit<'o, V: Visitor<'o>>(&'o self, visitor: V) -> V::Output {
                Operator::<$t>::visit(self, visitor)
            }
        }
    )*};
}

#[cfg(feature = "num-complex")]
complex_numbers!(f32 f64);

/// Minimum and maximum of two floats, with the same bits for either order of the operands.
///
/// There are no branches and no comparisons of integers, so that compilers vectorize the loop of a
/// kernel. Comparing `a` with `b` gives `b` if one of them is a NaN or both are zeros; comparing
/// `b` with `a` gives `a`. So the first result is right unless `b` is a NaN, and the second unless
/// `a` is; a wrong result is masked. The bits of two zeros are combined.
trait Extremes {
    fn minimum_number(self, other: Self) -> Self;
    fn maximum_number(self, other: Self) -> Self;
}

macro_rules! extremes {
    ($($float:ty, $bits:ty;)*) => {$(
        impl Extremes for $float {
            #[inline(always)]
            fn minimum_number(self, other: Self) -> Self {
                let (a, b) = (self, other);
                let [a_nan, b_nan] = [a, b].map(|x| <$bits>::from(x.is_nan()).wrapping_neg());
                let ab = if a < b { a } else { b }.to_bits() & !b_nan;
                let ba = if b < a { b } else { a }.to_bits() & !a_nan;
                Self::from_bits(ab | ba | (a_nan & b_nan & Self::NAN.to_bits()))
            }

            #[inline(always)]
            fn maximum_number(self, other: Self) -> Self {
                let (a, b) = (self, other);
                let [a_nan, b_nan] = [a, b].map(|x| <$bits>::from(x.is_nan()).wrapping_neg());
                let ab = if a > b { a } else { b }.to_bits() | b_nan;
                let ba = if b > a { b } else { a }.to_bits() | a_nan;
                Self::from_bits((ab & ba) ^ (a_nan & b_nan & !Self::NAN.to_bits()))
            }
        }
    )*};
}

extremes! {
    f32, u32;
    f64, u64;
}
