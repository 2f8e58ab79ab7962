//! The types of elements, and the operators on them.

use bytemuck::Pod;
use consort::ops::{BitAnd, BitOr, BitXor, Max, Min, Operator, Product, Sum};
use half::{bf16, f16};
use num_complex::Complex;
use numpy::Element;
use pyo3::{exceptions::PyValueError, prelude::*};

/// The names of operators.
pub(crate) const OPERATORS: [&str; 7] = ["sum", "product", "min", "max", "and", "or", "xor"];

/// A visitor that takes an operator on `T`.
pub(crate) trait Takes<T> {
    /// The result of the visitor.
    type Output;
    /// Visits the operator.
    fn take<O: Operator<T> + Copy + Send + 'static>(self, operator: O) -> Self::Output;
}

/// A type of elements of arrays.
pub(crate) trait Data: Pod + Send + Sync {
    /// The type that represents them in a NumPy array.
    type Raw: Element + Pod;
    /// NumPy's name of the type.
    const NAME: &'static str;
    /// The names of the operators on it.
    const OPERATORS: &'static [&'static str];

    /// Passes the operator of this name to the visitor, if the type has it.
    fn combine<V: Takes<Self>>(name: &str, visitor: V) -> Option<V::Output>;
}

macro_rules! data {
    ($($type:ty as $raw:ty, $name:literal: $($operator:literal $value:ident),*;)*) => {$(
        impl Data for $type {
            type Raw = $raw;
            const NAME: &'static str = $name;
            const OPERATORS: &'static [&'static str] = &[$($operator),*];

            fn combine<V: Takes<Self>>(name: &str, visitor: V) -> Option<V::Output> {
                match name {
                    $($operator => Some(visitor.take($value)),)*
                    _ => None,
                }
            }
        }
    )*};
    (integers $($type:ident $name:literal)*) => {
        data! {$(
            $type as $type, $name: "sum" Sum, "product" Product, "min" Min, "max" Max,
                "and" BitAnd, "or" BitOr, "xor" BitXor;
        )*}
    };
}

data! {
    integers
    i8 "int8" i16 "int16" i32 "int32" i64 "int64" u8 "uint8" u16 "uint16" u32 "uint32" u64 "uint64"
}

// `[u8; 1]` and `u8` are different types, so calls on `bool` and on `uint8` do not match.
data! {
    f16 as f16, "float16": "sum" Sum, "product" Product, "min" Min, "max" Max;
    bf16 as bf16, "bfloat16": "sum" Sum, "product" Product, "min" Min, "max" Max;
    f32 as f32, "float32": "sum" Sum, "product" Product, "min" Min, "max" Max;
    f64 as f64, "float64": "sum" Sum, "product" Product, "min" Min, "max" Max;
    Complex<f32> as Complex<f32>, "complex64": "sum" Sum, "product" Product;
    Complex<f64> as Complex<f64>, "complex128": "sum" Sum, "product" Product;
    [u8; 1] as u8, "bool": "min" BitAnd, "max" BitOr, "and" BitAnd, "or" BitOr, "xor" BitXor;
}

/// The kind of bfloat16, for which NumPy has no letter: the package `ml_dtypes` defines the type.
pub(crate) const BFLOAT16: u8 = b'B';

/// The types of elements: their names, NumPy's letters of their kinds, and their sizes in bytes.
pub(crate) const KINDS: [(&str, u8, usize); 15] = [
    ("float16", b'f', 2),
    ("bfloat16", BFLOAT16, 2),
    ("float32", b'f', 4),
    ("float64", b'f', 8),
    ("int8", b'i', 1),
    ("int16", b'i', 2),
    ("int32", b'i', 4),
    ("int64", b'i', 8),
    ("uint8", b'u', 1),
    ("uint16", b'u', 2),
    ("uint32", b'u', 4),
    ("uint64", b'u', 8),
    ("bool", b'b', 1),
    ("complex64", b'c', 8),
    ("complex128", b'c', 16),
];

/// Returns the exception for an operator that a type does not have.
pub(crate) fn no_operator<T: Data>(name: &str) -> PyErr {
    let known = OPERATORS.contains(&name);
    let whose = if known { format!(" on {}", T::NAME) } else { String::new() };
    let names = if known { T::OPERATORS } else { &OPERATORS };
    PyValueError::new_err(format!(
        "unknown operator '{name}'{whose}: use one of {}",
        names.join(", ")
    ))
}
