//! The integer types on which one-sided atomic operations work.

use consort_fabric::Pod;
use consort_native::Width;

mod sealed {
    use consort_native::Width;

    /// Restricts [`Word`](super::Word) to the types of this file: no other crate can name it.
    pub trait Sealed {
        const WIDTH: Width;
    }

    impl Sealed for u32 {
        const WIDTH: Width = Width::Four;
    }

    impl Sealed for i32 {
        const WIDTH: Width = Width::Four;
    }

    impl Sealed for u64 {
        const WIDTH: Width = Width::Eight;
    }

    impl Sealed for i64 {
        const WIDTH: Width = Width::Eight;
    }

    /// The width of an address.
    const ADDRESS: Width = if size_of::<usize>() == 4 { Width::Four } else { Width::Eight };

    impl Sealed for usize {
        const WIDTH: Width = ADDRESS;
    }

    impl Sealed for isize {
        const WIDTH: Width = ADDRESS;
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

impl Word for u32 {
    fn to_bits(self) -> u64 {
        self.into()
    }

    fn from_bits(bits: u64) -> Self {
        low(bits)
    }
}

impl Word for i32 {
    fn to_bits(self) -> u64 {
        self.cast_unsigned().into()
    }

    fn from_bits(bits: u64) -> Self {
        low(bits).cast_signed()
    }
}

impl Word for u64 {
    fn to_bits(self) -> u64 {
        self
    }

    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl Word for i64 {
    fn to_bits(self) -> u64 {
        self.cast_unsigned()
    }

    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }
}

impl Word for usize {
    fn to_bits(self) -> u64 {
        self as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "a shorter word has no higher bits")]
    fn from_bits(bits: u64) -> Self {
        bits as Self
    }
}

impl Word for isize {
    fn to_bits(self) -> u64 {
        self.cast_unsigned().to_bits()
    }

    fn from_bits(bits: u64) -> Self {
        usize::from_bits(bits).cast_signed()
    }
}
