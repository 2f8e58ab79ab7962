//! Operators on the floats of 16 bits of the crate `half`.
//!
//! Two numbers are added or multiplied as `f32`, and the result is rounded to the nearest number of
//! the type. For `f16` this is also the nearest number to the exact result, because the significand
//! of `f32` (24 bits) has at least `2 p + 2` bits, where `p` is that of `f16` (11 bits; Figueroa
//! 1995). Collectives do not round partial results: see [`Wide`].
//!
//! The conversions select instead of branching, so that compilers vectorize the loop of a kernel.
//! The conversions of `f16` in `half` check for processor instructions at each number: with them a
//! sum took five times as long. Minimum and maximum compare integers that have the same order as
//! the floats.

use half::{bf16, f16};

use crate::{Max, Min, Operator, OperatorClass, Pod, Product, Sum, Wide, WideOperator};

trait ShortFloat: Pod {
    fn widen(self) -> f32;
    /// Rounds to the nearest number; a tie goes to the even one. A NaN becomes the type's `NAN`, so
    /// that the order of the operands does not show.
    fn narrow(long: f32) -> Self;
}

/// 2 to the power of 112: the bits of an `f16`, shifted to the position of the exponent and
/// significand of an `f32`, represent a number smaller by this factor.
const RATIO: f32 = f32::from_bits((127 + 112) << 23);

/// From this number to 1, consecutive `f32` are 2 to the power of -24 apart, which is the smallest
/// positive `f16`.
const STEP_OF_SMALLEST: f32 = 0.5;

/// The bits, as `f32`, of the smallest normal `f16`, and of the power of two above the largest
/// `f16`.
const NORMAL: u32 = (127 - 14) << 23;
const TOO_LARGE: u32 = (127 + 16) << 23;

/// The number of significand bits that `f32` has and `f16` lacks.
const CUT: u32 = 23 - 10;

impl ShortFloat for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let magnitude = f32::from_bits((bits & 0x7fff) << CUT) * RATIO;
        // Infinities and NaNs have the largest exponent, in either type.
        let exponent = if magnitude.to_bits() >= TOO_LARGE { f32::INFINITY.to_bits() } else { 0 };
        f32::from_bits(magnitude.to_bits() | exponent | (bits & 0x8000) << 16)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the result has 16 bits")]
    fn narrow(long: f32) -> Self {
        let magnitude = long.to_bits() & 0x7fff_ffff;
        let sign = (long.to_bits() ^ magnitude) >> 16;
        // This addition rounds to a multiple of the smallest number.
        let small = (f32::from_bits(magnitude) + STEP_OF_SMALLEST).to_bits();
        let small = small.wrapping_sub(STEP_OF_SMALLEST.to_bits());
        let half_step = (1 << (CUT - 1)) - 1 + (magnitude >> CUT & 1);
        let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(half_step) >> CUT;
        let is_nan = magnitude > f32::INFINITY.to_bits();
        let large = if is_nan { Self::NAN } else { Self::INFINITY };
        let finite = if magnitude < NORMAL { small } else { normal };
        let bits = if magnitude < TOO_LARGE { finite } else { large.to_bits().into() };
        let sign = if is_nan { 0 } else { sign };
        Self::from_bits((sign | bits) as u16)
    }
}

impl ShortFloat for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    /// The addition carries into the bits that remain if they must be rounded up. The conversion of
    /// `half` compares the other bits, and a sum with it takes 1.4 times as long.
    #[inline(always)]
    fn narrow(long: f32) -> Self {
        let bits = long.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        if long.is_nan() { Self::NAN } else { Self::from_bits(rounded as u16) }
    }
}

fn widen_all<T: ShortFloat>(elements: &[u8]) -> Vec<f32> {
    let (elements, _) = elements.as_chunks::<{ Wide::NARROW_BYTES }>();
    elements.iter().map(|&element| bytemuck::cast::<_, T>(element).widen()).collect()
}

fn narrow_all<T: ShortFloat>(long: &[f32], elements: &mut [u8]) {
    let (elements, _) = elements.as_chunks_mut::<{ Wide::NARROW_BYTES }>();
    for (element, &long) in elements.iter_mut().zip(long) {
        *element = bytemuck::cast(T::narrow(long));
    }
}

/// An integer for each float, in the order of the floats: -0 is below 0. A NaN is replaced by an
/// integer that no number has.
macro_rules! key {
    ($float:ty, $value:expr, $nan:expr) => {{
        let bits = $value.to_bits().cast_signed();
        let is_nan = bits & i16::MAX > <$float>::INFINITY.to_bits().cast_signed();
        if is_nan { $nan } else { bits ^ (bits >> 15 & i16::MAX) }
    }};
}

macro_rules! operators {
    ($($float:ty)*) => {$(
        operators!(@wide $float, Sum, |a, b| <$float>::narrow(a.widen() + b.widen()));
        operators!(@wide $float, Product, |a, b| <$float>::narrow(a.widen() * b.widen()));
        operators!($float, Min, None, |a, b| {
            let key = key!($float, a, i16::MAX).min(key!($float, b, i16::MAX));
            operators!(@float $float, key, i16::MAX)
        });
        operators!($float, Max, None, |a, b| {
            let key = key!($float, a, i16::MIN).max(key!($float, b, i16::MIN));
            operators!(@float $float, key, i16::MIN)
        });
    )*};
    (@wide $float:ty, $name:ident, |$a:ident, $b:ident| $body:expr) => {
        operators!(
            $float,
            $name,
            Some(&Wide {
                widen: widen_all::<$float>,
                narrow: narrow_all::<$float>,
                operator: WideOperator::$name,
            }),
            |$a, $b| $body
        );
    };
    ($float:ty, $name:ident, $wide:expr, |$a:ident, $b:ident| $body:expr) => {
        impl Operator<$float> for $name {
            const CLASS: OperatorClass = OperatorClass::Commutative;
            const NAME: &'static str = stringify!($name);
            const WIDE: Option<&'static Wide> = $wide;

            #[inline]
            fn apply(&self, $a: $float, $b: $float) -> $float {
                $body
            }
        }
    };
    (@float $float:ty, $key:expr, $nan:expr) => {{
        let key: i16 = $key;
        let bits = key ^ (key >> 15 & i16::MAX);
        if key == $nan { <$float>::NAN } else { <$float>::from_bits(bits.cast_unsigned()) }
    }};
}

operators!(f16 bf16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitmix64;

    /// Compares the conversions with those of `half`, but for the bits of NaNs.
    #[test]
    fn conversions_match_those_of_half() {
        let narrowed =
            |long: f32| if long.is_nan() { f16::NAN } else { f16::from_f32(long) }.to_bits();
        for bits in 0..=u16::MAX {
            let short = f16::from_bits(bits);
            let (found, expected) = (short.widen(), short.to_f32());
            assert!(found == expected || (found.is_nan() && expected.is_nan()), "{bits:#x}");
            assert_eq!(found.is_sign_negative(), expected.is_sign_negative());
            if !short.is_nan() {
                assert_eq!(f16::narrow(found).to_bits(), bits);
                // The ties next to it, and the numbers around them.
                let tie = found.to_bits() + (1 << (CUT - 1));
                for long in [tie - 1, tie, tie + 1].map(f32::from_bits) {
                    assert_eq!(f16::narrow(long).to_bits(), narrowed(long));
                }
            }
        }
        let mut state = 2;
        for _ in 0..1_000_000 {
            let bits = u32::try_from(splitmix64(&mut state) >> 32).expect("32 bits");
            let long = f32::from_bits(bits);
            assert_eq!(f16::narrow(long).to_bits(), narrowed(long), "{long:e}");
            let expected = if long.is_nan() { bf16::NAN } else { bf16::from_f32(long) };
            assert_eq!(bf16::narrow(long).to_bits(), expected.to_bits(), "{long:e}");
        }
    }

    fn pairs() -> impl Iterator<Item = [u16; 2]> {
        let mut state = 1;
        (0..100_000).map(move |_| {
            let [a, b, c, d, ..] = splitmix64(&mut state).to_le_bytes();
            [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
        })
    }

    /// Returns whether no other number is nearer, and a tie is even.
    fn is_nearest(found: f16, exact: f64) -> bool {
        let gap = |bits: u16| (f16::from_bits(bits).to_f64() - exact).abs();
        let is_even = found.to_bits().is_multiple_of(2);
        [found.to_bits().wrapping_add(1), found.to_bits().wrapping_sub(1)].into_iter().all(
            |other| {
                let (mine, its) = (gap(found.to_bits()), gap(other));
                its.is_nan() || its.is_infinite() || mine < its || (mine == its && is_even)
            },
        )
    }

    /// Sums and products of two `f16` are exact in `f64`.
    #[test]
    fn f16_is_rounded_once() {
        for [left, right] in pairs().map(|pair| pair.map(f16::from_bits)) {
            let (sum, product) = (Sum.apply(left, right), Product.apply(left, right));
            for (found, exact) in
                [(sum, left.to_f64() + right.to_f64()), (product, left.to_f64() * right.to_f64())]
            {
                match exact.abs() {
                    // Half a step above the largest number.
                    large if large >= 65_520.0 => {
                        assert!(found.is_infinite() && found.is_sign_positive() == (exact > 0.0));
                    }
                    _ if exact.is_nan() => assert!(found.is_nan()),
                    _ => assert!(is_nearest(found, exact), "{left} with {right}: {found}"),
                }
            }
        }
    }

    #[test]
    fn bf16_is_combined_in_f32() {
        for [left, right] in pairs().map(|pair| pair.map(bf16::from_bits)) {
            for (found, long) in [
                (Sum.apply(left, right), left.to_f32() + right.to_f32()),
                (Product.apply(left, right), left.to_f32() * right.to_f32()),
            ] {
                let is_expected =
                    found == bf16::from_f32(long) || (found.is_nan() && long.is_nan());
                assert!(is_expected, "{left} with {right}: {found}");
            }
        }
        // A tie is rounded to even, and not cut off.
        let [one, half_step] = [1.0, 0.003_906_25].map(bf16::from_f32);
        assert_eq!(Sum.apply(one, half_step), one);
        let odd = bf16::from_bits(one.to_bits() + 1);
        assert_eq!(Sum.apply(odd, half_step), bf16::from_bits(odd.to_bits() + 1));
    }

    /// Sums and products are the same in either order, so the operators are commutative.
    #[test]
    fn short_floats_commute() {
        let nans = [[0x7fc1, 0xffd2], [0x7fc1, 1], [0xffd2, 1]];
        for [left, right] in pairs().chain(nans) {
            let [a, b] = [left, right].map(f16::from_bits);
            let [c, d] = [left, right].map(bf16::from_bits);
            assert_eq!(Sum.apply(a, b).to_bits(), Sum.apply(b, a).to_bits());
            assert_eq!(Product.apply(a, b).to_bits(), Product.apply(b, a).to_bits());
            assert_eq!(Sum.apply(c, d).to_bits(), Sum.apply(d, c).to_bits());
            assert_eq!(Product.apply(c, d).to_bits(), Product.apply(d, c).to_bits());
        }
    }
}
