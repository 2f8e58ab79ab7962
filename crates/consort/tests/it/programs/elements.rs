//! The types that programs move. Each has a commutative operator and another operator that is not
//! commutative. This file also has the symmetric memory for these types.

use std::fmt;

use bytemuck::{bytes_of, bytes_of_mut};
use consort::{
    Pod, Result, Symmetric, Team,
    ops::{BitAnd, BitOr, BitXor, Max, Min, Operator, Product, Sum},
};
use consort_conformance::data::affine_in_a_byte;
use consort_fabric::OperatorClass;

/// A type that programs move.
pub(super) trait Datum: Pod + Send + Sync + fmt::Debug {
    /// An operator of the library, or one that declares that its operands may be swapped.
    type Commutative: Operator<Self> + Copy + Default + Send + 'static;

    fn of(word: u64) -> Self;

    /// Returns the expected result of the commutative operator.
    fn joined(left: Self, right: Self) -> Self;

    /// Combines elements by an operation that is associative and not commutative.
    fn composed(left: Self, right: Self) -> Self {
        let mut both = Self::zeroed();
        let operands = bytes_of(&left).iter().zip(bytes_of(&right));
        for (both, (&left, &right)) in bytes_of_mut(&mut both).iter_mut().zip(operands) {
            *both = affine_in_a_byte(left, right);
        }
        both
    }

    /// Returns the symmetric memory that holds this type.
    fn memory(memory: &Memory) -> &Symmetric<Self>;

    fn allocate(team: &Team, len: usize) -> Result<Memory>;
}

/// A structure without padding.
#[derive(Clone, Copy, Debug, Pod)]
#[repr(C)]
pub(super) struct Record {
    pub(super) key: u64,
    pub(super) value: [i16; 3],
    pub(super) tag: u16,
}

/// An element that is longer than many messages.
#[derive(Clone, Copy, Pod)]
#[repr(C)]
pub(super) struct Large(pub(super) [u64; 300]);

impl fmt::Debug for Large {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Large({:x}..)", self.0[0])
    }
}

/// A zero-sized element.
#[derive(Clone, Copy, Debug, Pod)]
#[repr(C)]
pub(super) struct Empty;

/// Adds bytes separately, for types that the library's operators do not know.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytewise;

fn bytewise<T: Pod>(left: T, right: T) -> T {
    let mut both = left;
    for (both, &right) in bytes_of_mut(&mut both).iter_mut().zip(bytes_of(&right)) {
        *both = both.wrapping_add(right);
    }
    both
}

impl<T: Datum> Operator<T> for Bytewise {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "Bytewise";

    fn apply(&self, left: T, right: T) -> T {
        bytewise(left, right)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn byte_of(number: f64) -> u8 {
    number as u8
}

/// Returns a small number: sums and maxima of these are exact in any order.
fn small(word: u64) -> f64 {
    f64::from(word.to_le_bytes()[7])
}

macro_rules! types {
    ($(
        $name:ident: $t:ty, $operator:ident,
        $of:expr, $joined:expr $(, $composed:expr)?;
    )*) => {
        /// The type that a call moves.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Type {
            $($name),*
        }

        impl Type {
            pub(super) const EVERY: &[Self] = &[$(Self::$name),*];

            pub(super) fn bytes(self) -> usize {
                match self {
                    $(Self::$name => size_of::<$t>()),*
                }
            }
        }

        /// Symmetric memory of any of the types.
        pub(super) enum Memory {
            $($name(Symmetric<$t>)),*
        }

        $(impl Datum for $t {
            type Commutative = $operator;

            fn of(word: u64) -> Self {
                let of: fn(u64) -> $t = $of;
                of(word)
            }

            fn joined(left: Self, right: Self) -> Self {
                let joined: fn($t, $t) -> $t = $joined;
                joined(left, right)
            }

            $(fn composed(left: Self, right: Self) -> Self {
                let composed: fn($t, $t) -> $t = $composed;
                composed(left, right)
            })?

            fn memory(memory: &Memory) -> &Symmetric<Self> {
                match memory {
                    Memory::$name(memory) => memory,
                    _ => panic!("a step names memory of another type"),
                }
            }

            fn allocate(team: &Team, len: usize) -> Result<Memory> {
                Ok(Memory::$name(team.symmetric(len)?))
            }
        })*

        /// Evaluates an expression with the type of a step.
        macro_rules! match_type {
            ($which:expr, $T:ident => $body:expr) => {
                match $which {
                    $($crate::programs::elements::Type::$name => {
                        type $T = $t;
                        $body
                    }),*
                }
            };
        }
    };
}

types! {
    U8: u8, BitOr, |word| word.to_le_bytes()[7], |a, b| a | b;
    U16: u16, Max, |word| u16::from_le_bytes([word.to_le_bytes()[6], word.to_le_bytes()[7]]),
        |a, b| if a > b { a } else { b };
    U32: u32, Product, |word| u32::try_from(word >> 32).expect("half a word"),
        |a, b| a.wrapping_mul(b);
    I32: i32, BitAnd, |word| u32::of(word).cast_signed(), |a, b| a & b;
    U64: u64, Sum, |word| word, |a, b| a.wrapping_add(b);
    I64: i64, Min, |word| word.cast_signed(), |a, b| if a < b { a } else { b };
    U128: u128, BitXor, |word| u128::from(word) << 64 | u128::from(!word), |a, b| a ^ b;
    F32: f32, Max,
        |word| if word & 3 == 0 { -0.0 } else { f32::from(word.to_le_bytes()[7] & 31) },
        |a, b| if a.total_cmp(&b).is_lt() { b } else { a },
        |a, b| f32::from(affine_in_a_byte(byte_of(a.into()), byte_of(b.into())));
    F64: f64, Sum, small, |a, b| a + b,
        |a, b| f64::from(affine_in_a_byte(byte_of(a), byte_of(b)));
    Triple: [u8; 3], Bytewise, |word| [5, 6, 7].map(|at| word.to_le_bytes()[at]), bytewise;
    Record: crate::programs::elements::Record, Bytewise,
        |word| bytemuck::cast([word, word.rotate_left(17)]), bytewise;
    Large: crate::programs::elements::Large, Bytewise,
        |word| Large(std::array::from_fn(|index| word.wrapping_mul(2 * index as u64 + 1))),
        bytewise;
    Empty: crate::programs::elements::Empty, Bytewise, |_| Empty, |_, _| Empty;
}

pub(super) use match_type as with_type;

/// Returns the bytes of elements.
pub(super) fn bytes<T: Pod>(elements: &[T]) -> Vec<u8> {
    if size_of::<T>() == 0 { Vec::new() } else { bytemuck::cast_slice(elements).to_vec() }
}

/// Returns `len` elements from their bytes.
pub(super) fn elements<T: Pod>(bytes: &[u8], len: usize) -> Vec<T> {
    if size_of::<T>() == 0 {
        return vec![T::zeroed(); len];
    }
    assert_eq!(bytes.len(), len * size_of::<T>());
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}
