//! The integer types on which one-sided atomic operations work.

use consort_fabric::Pod;
use consort_native::Width;

mod sealed {
    use consort_native::Width;

    /// Restricts [`Word`](super::Word) to the types of this file: no other crate can name it.
    pub trait Sealed {
        const WIDTH: Width;
    }
}

/// An integer of 32 or 64 bits for one-sided atomic operations.
///
/// Operands of [`Atomic`](crate::symmetric::Atomic), [`Signal`](crate::symmetric::Signal) and
/// [`Until`](crate::symmetric::Until) are bits, from [`Word::to_bits`]. Operations on a 32-bit word
/// use the low 32 bits of an operand. But a wait compares all 64 bits with the word's, whose high
/// 32 are 0. Comparisons are unsigned, so negative integers are greater than all others. To store a
/// float, store its bits in a `u32` or a `u64`.
///
/// `u32`, `i32`, `u64`, `i64`, `usize` and `isize` are words, and no other type can become one. An
/// operation accesses 4 or 8 bytes from the start of the element. With a shorter type it could
/// change the data after it.
///
/// ```compile_fail,E0277
/// # use consort::{Job, Rank};
/// Job::threads(2).run(|pe| pe.world().symmetric::<f64>(1)?.fetch_add(Rank(0), 0, 1.0));
/// ```
///
/// ```compile_fail,E0277
/// # use consort::symmetric::Word;
/// #[derive(Clone, Copy, consort::Pod)]
/// #[repr(C)]
/// struct Nothing;
///
/// impl Word for Nothing {
///     fn to_bits(self) -> u64 {
///         0
///     }
///
///     fn from_bits(_: u64) -> Self {
///         Self
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a word of symmetric memory, which atomic operations and signals change",
    label = "not a word",
    note = "words are `u32`, `i32`, `u64`, `i64`, `usize` and `isize`; store a float's bits \
            (`to_bits`) or a `bool` as a `u32` or a `u64`"
)]
pub trait Word: Pod + sealed::Sealed {
    /// Returns the bits of the word; the high ones are 0 if it has fewer than 64.
    fn to_bits(self) -> u64;
    /// Returns the word with these bits.
    fn from_bits(bits: u64) -> Self;
}

/// Returns the width of a word.
pub(super) const fn width_of<W: Word>() -> Width {
    W::WIDTH
}

/// Returns the low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "a word of 32 bits has no higher bits")]
const fn low(bits: u64) -> u32 {
    bits as u32
}

/// Returns as many low bits as an address has.
#[expect(clippy::cast_possible_truncation, reason = "an address has no higher bits")]
const fn address(bits: u64) -> usize {
    bits as usize
}

/// The width of an address.
const ADDRESS: Width = if size_of::<usize>() == 4 { Width::Four } else { Width::Eight };

/// Implements `Word`. Each line has the width of an integer, its `to_bits` and its `from_bits`.
macro_rules! words {
    ($($integer:ty: $width:expr, $word:ident => $to:expr, $bits:ident => $from:expr;)*) => {$(
        impl sealed::Sealed for $integer {
            const WIDTH: Width = $width;
        }

        impl Word for $integer {
            fn to_bits(self) -> u64 {
                let $word = self;
                $to
            }

            fn from_bits($bits: u64) -> Self {
                $from
            }
        }
    )*};
}

words! {
    u32: Width::Four, word => word.into(), bits => low(bits);
    i32: Width::Four, word => word.cast_unsigned().into(), bits => low(bits).cast_signed();
    u64: Width::Eight, word => word, bits => bits;
    i64: Width::Eight, word => word.cast_unsigned(), bits => bits.cast_signed();
    usize: ADDRESS, word => word as u64, bits => address(bits);
    isize: ADDRESS, word => word.cast_unsigned() as u64, bits => address(bits).cast_signed();
}
