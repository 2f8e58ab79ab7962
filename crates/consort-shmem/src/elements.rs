//! The types of elements, and their operations.

use bytemuck::{Pod, Zeroable};
use consort::ops::{BitAnd, BitOr, BitXor, Max, Min, Operator, Product, Sum};
use consort_fabric::OperatorClass;

/// An element that puts and gets can move.
pub trait Element: Copy + 'static {}

impl<T: Copy + 'static> Element for T {}

/// A word for atomic operations, of 4 or 8 bytes.
pub trait Amo: Copy + PartialEq + 'static {
    /// Returns its bits.
    fn bits(self) -> u64;
    /// Returns the word with these bits.
    fn of_bits(bits: u64) -> Self;
}

/// A word that PEs wait for.
pub trait Waitable: Copy + PartialOrd + 'static {
    /// Reads it in the program's memory, with acquire ordering.
    ///
    /// # Safety
    /// `at` is a readable, aligned word that is written atomically.
    unsafe fn load(at: *const Self) -> Self;
}

macro_rules! words {
    ($($t:ty: $unsigned:ty, $of:expr, $to:expr;)*) => {$(
        impl Amo for $t {
            #[inline(always)]
            fn bits(self) -> u64 {
                let to: fn($t) -> $unsigned = $to;
                u64::from(to(self))
            }

            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                let of: fn(u64) -> $t = $of;
                of(bits)
            }
        }
    )*};
}

words! {
    i32: u32, |bits| low(bits).cast_signed(), i32::cast_unsigned;
    u32: u32, low, |word| word;
    f32: u32, |bits| f32::from_bits(low(bits)), f32::to_bits;
    i64: u64, u64::cast_signed, i64::cast_unsigned;
    u64: u64, |bits| bits, |word| word;
    f64: u64, f64::from_bits, f64::to_bits;
}

/// Returns the bits of a word of 4 bytes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the word has only these bits")]
const fn low(bits: u64) -> u32 {
    bits as u32
}

impl Amo for usize {
    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the word has only these bits")]
    fn of_bits(bits: u64) -> Self {
        bits as Self
    }
}

impl Amo for isize {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.cast_unsigned() as u64
    }

    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        usize::of_bits(bits).cast_signed()
    }
}

macro_rules! waitable {
    ($($t:ty: $atomic:ident;)*) => {$(
        impl Waitable for $t {
            #[inline(always)]
            unsafe fn load(at: *const Self) -> Self {
                use std::sync::atomic::{$atomic, Ordering::Acquire};
                // SAFETY: guaranteed by the caller.
                unsafe { $atomic::from_ptr(at.cast_mut()) }.load(Acquire)
            }
        }
    )*};
}

waitable! {
    i16: AtomicI16; u16: AtomicU16; i32: AtomicI32; u32: AtomicU32;
    i64: AtomicI64; u64: AtomicU64; usize: AtomicUsize; isize: AtomicIsize;
}

/// `long double` of x86: 10 bytes of a number and 6 bytes of padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, consort::Pod)]
#[repr(C, align(16))]
pub struct LongDouble(pub [u8; 16]);

/// A complex number of two real ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

// SAFETY: all-zero bytes are two zeros.
unsafe impl<T: Zeroable> Zeroable for Complex<T> {}
// SAFETY: two numbers of one type, without padding.
unsafe impl<T: Pod> Pod for Complex<T> {}

/// A reduction operator on elements of `T`.
pub trait Reduction<T>: Default + Operator<T> + Send + 'static {}

impl<T, O: Default + Operator<T> + Send + 'static> Reduction<T> for O {}

/// The sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOp;
/// The product.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductOp;
/// The minimum.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinOp;
/// The maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxOp;

/// The bitwise and.
pub type And = BitAnd;
/// The bitwise or.
pub type Or = BitOr;
/// The bitwise exclusive or.
pub type Xor = BitXor;

macro_rules! operator {
    ($name:ident, $t:ty, |$a:ident, $b:ident| $result:expr) => {
        impl Operator<$t> for $name {
            const CLASS: OperatorClass = OperatorClass::Commutative;
            const NAME: &'static str = stringify!($name);

            #[inline]
            fn apply(&self, $a: $t, $b: $t) -> $t {
                $result
            }
        }
    };
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        operator!(SumOp, $t, |a, b| Operator::<$t>::apply(&Sum, a, b));
        operator!(ProductOp, $t, |a, b| Operator::<$t>::apply(&Product, a, b));
        operator!(MinOp, $t, |a, b| Operator::<$t>::apply(&Min, a, b));
        operator!(MaxOp, $t, |a, b| Operator::<$t>::apply(&Max, a, b));
    )*};
}

numbers!(i8 u8 i16 u16 i32 u32 i64 u64 isize usize f32 f64);

macro_rules! complex {
    ($($t:ty)*) => {$(
        operator!(SumOp, Complex<$t>, |a, b| Complex { re: a.re + b.re, im: a.im + b.im });
        operator!(ProductOp, Complex<$t>, |a, b| Complex {
            re: a.re * b.re - a.im * b.im,
            im: a.re * b.im + a.im * b.re,
        });
    )*};
}

complex!(f32 f64);

#[cfg(target_arch = "x86_64")]
mod extended {
    //! Operations on numbers of 80 bits, which only the x87 supports.

    use std::arch::asm;

    use super::LongDouble;

    macro_rules! operation {
        ($name:ident, $instruction:literal) => {
            pub(super) fn $name(a: LongDouble, b: LongDouble) -> LongDouble {
                let mut result = LongDouble([0; 16]);
                // SAFETY: reads 10 bytes of each operand and writes 10 of the result; the x87 stack
                // is empty before and after.
                unsafe {
                    asm!(
                        "fld tbyte ptr [{a}]",
                        "fld tbyte ptr [{b}]",
                        $instruction,
                        "fstp tbyte ptr [{r}]",
                        a = in(reg) a.0.as_ptr(),
                        b = in(reg) b.0.as_ptr(),
                        r = in(reg) result.0.as_mut_ptr(),
                        out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                        out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                        options(nostack)
                    );
                }
                result
            }
        };
    }

    operation!(sum, "faddp st(1), st");
    operation!(product, "fmulp st(1), st");

    pub(super) fn is_less(a: LongDouble, b: LongDouble) -> bool {
        let mut less: u8;
        // SAFETY: as above; `fcomip` compares b with a and pops one, `fstp` pops the other.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]",
                "fld tbyte ptr [{b}]",
                "fcomip st, st(1)",
                "seta {less}",
                "fstp st(0)",
                a = in(reg) a.0.as_ptr(),
                b = in(reg) b.0.as_ptr(),
                less = out(reg_byte) less,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack)
            );
        }
        less != 0
    }
}

#[cfg(target_arch = "x86_64")]
operator!(SumOp, LongDouble, |a, b| extended::sum(a, b));
#[cfg(target_arch = "x86_64")]
operator!(ProductOp, LongDouble, |a, b| extended::product(a, b));
#[cfg(target_arch = "x86_64")]
operator!(MinOp, LongDouble, |a, b| if extended::is_less(b, a) { b } else { a });
#[cfg(target_arch = "x86_64")]
operator!(MaxOp, LongDouble, |a, b| if extended::is_less(a, b) { b } else { a });

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use consort::ops::Operator as _;

    use super::{Complex, LongDouble, MaxOp, MinOp, ProductOp, SumOp};

    /// Returns a small whole number in 80 bits: its leading bit is explicit.
    fn long(value: u8) -> LongDouble {
        let shift = u64::from(value).leading_zeros();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(u64::from(value) << shift).to_le_bytes());
        let exponent = 16_383 + 63 - u16::try_from(shift).expect("below 64");
        bytes[8..10].copy_from_slice(&exponent.to_le_bytes());
        LongDouble(bytes)
    }

    #[test]
    fn long_double_operators_match_small_integers() {
        assert_eq!(SumOp.apply(long(7), long(5)), long(12));
        assert_eq!(ProductOp.apply(long(7), long(5)), long(35));
        assert_eq!(MinOp.apply(long(7), long(5)), long(5));
        assert_eq!(MinOp.apply(long(5), long(7)), long(5));
        assert_eq!(MaxOp.apply(long(7), long(5)), long(7));
        assert_eq!(MaxOp.apply(long(5), long(7)), long(7));
    }

    #[test]
    fn complex_sum_and_product() {
        let (a, b) = (Complex { re: 1.0, im: 2.0 }, Complex { re: 3.0, im: -1.0 });
        assert_eq!(SumOp.apply(a, b), Complex { re: 4.0, im: 1.0 });
        assert_eq!(ProductOp.apply(a, b), Complex { re: 5.0, im: 5.0 });
    }
}
