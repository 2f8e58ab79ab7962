//! The Rust type of an array, and a borrow of its memory for a call.
//!
//! A call borrows its arrays. Other calls, of any thread, are refused if they would change these
//! arrays. The rest of the program must not change them either, as with NumPy's functions that let
//! other threads run.

use std::fmt::Display;

use bytemuck::{Pod, cast, cast_slice, cast_slice_mut};
use consort::ops::{BitAnd, BitOr, BitXor, Max, Min, Operator, Product, Sum};
use half::{bf16, f16};
use num_complex::Complex;
use numpy::{
    BorrowError, Element, PyArray1, PyArrayDescrMethods as _, PyArrayDyn, PyArrayMethods as _,
    PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

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

/// Evaluates `$body` with `$type` as the type of an array's elements.
macro_rules! for_type_of {
    ($array:expr, $type:ident => $body:expr) => {{
        let array = $array;
        macro_rules! with {
            ($one:ty) => {{
                type $type = $one;
                $body
            }};
        }
        match $crate::arrays::kind(array)? {
            ('f', 2) => with!(half::f16),
            ('f', 4) => with!(f32),
            ('f', 8) => with!(f64),
            ('i', 1) => with!(i8),
            ('i', 2) => with!(i16),
            ('i', 4) => with!(i32),
            ('i', 8) => with!(i64),
            ('u', 1) => with!(u8),
            ('u', 2) => with!(u16),
            ('u', 4) => with!(u32),
            ('u', 8) => with!(u64),
            ('b', 1) => with!([u8; 1]),
            ('c', 8) => with!(num_complex::Complex<f32>),
            ('c', 16) => with!(num_complex::Complex<f64>),
            ($crate::arrays::BFLOAT16, 2) => with!(half::bf16),
            _ => Err($crate::arrays::not_taken(array)),
        }
    }};
}
pub(crate) use for_type_of;

/// The kind of bfloat16, for which NumPy has no letter: the package `ml_dtypes` defines the type.
pub(crate) const BFLOAT16: char = 'B';

/// Returns the kind of an array's type, as NumPy's letter, and its size in bytes. The letter is a
/// space if the byte order is not this machine's.
pub(crate) fn kind(array: &Bound<'_, PyAny>) -> PyResult<(char, usize)> {
    let array = array.cast::<PyUntypedArray>()?;
    let of = array.dtype();
    let kind = match of.kind() {
        _ if !of.is_native_byteorder().unwrap_or(true) => ' ',
        b'V' if of.getattr("name")?.eq(bf16::NAME)? => BFLOAT16,
        letter => char::from(letter),
    };
    Ok((kind, of.itemsize()))
}

/// Returns the exception for an array of an unsupported type.
pub(crate) fn not_taken(array: &Bound<'_, PyAny>) -> PyErr {
    let name = array.getattr("dtype").map_or_else(|_| "?".to_owned(), |of| of.to_string());
    PyTypeError::new_err(format!(
        "unsupported array type {name}: use float16, bfloat16, float32, float64, complex64, \
         complex128, integers of 8 to 64 bits or bool, in this machine's byte order"
    ))
}

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

/// Returns the array as an array of `T`; an array of `bool` as bytes.
fn raw<'py, T: Data>(
    array: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyArrayDyn<T::Raw>>> {
    let bytes = if T::NAME == "bool" && kind(array)? == ('b', 1) {
        Some(array.call_method1("view", ("uint8",))?)
    } else {
        None
    };
    let is_it = bytes.is_some() || T::NAME != "bool";
    let typed = bytes.as_ref().unwrap_or(array).cast::<PyArrayDyn<T::Raw>>().ok().cloned();
    typed.filter(|_| is_it).ok_or_else(|| {
        let of = array.getattr("dtype").map_or_else(|_| "?".to_owned(), |of| of.to_string());
        PyTypeError::new_err(format!(
            "{what} has type {of}: use {}, as in the other array",
            T::NAME
        ))
    })
}

fn not_borrowed(what: &str, error: BorrowError) -> PyErr {
    PyValueError::new_err(match error {
        BorrowError::NotWriteable => format!("{what} is read-only"),
        _ => format!(
            "{what} is in use by another call, and one of the two calls changes it: give each PE a \
             separate array"
        ),
    })
}

fn not_a_slice(what: &str, error: impl Display) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is not contiguous and aligned in memory ({error}): use numpy.ascontiguousarray"
    ))
}

fn check_order<T: Element>(array: &Bound<'_, PyArrayDyn<T>>, what: &str) -> PyResult<()> {
    if array.is_c_contiguous() { Ok(()) } else { Err(not_a_slice(what, "not in the order of C")) }
}

/// A borrow of an array that a call reads.
pub(crate) struct Read<'py, T: Data>(PyReadonlyArrayDyn<'py, T::Raw>);

impl<'py, T: Data> Read<'py, T> {
    /// Borrows the array.
    pub(crate) fn new(array: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        let array = raw::<T>(array, what)?;
        check_order(&array, what)?;
        let held = array.try_readonly().map_err(|error| not_borrowed(what, error))?;
        held.as_slice().map_err(|error| not_a_slice(what, error))?;
        Ok(Self(held))
    }

    /// Returns the elements.
    pub(crate) fn slice(&self) -> &[T] {
        cast_slice(self.0.as_slice().unwrap_or_default())
    }
}

/// A borrow of an array that a call writes.
pub(crate) struct Written<'py, T: Data>(PyReadwriteArrayDyn<'py, T::Raw>);

impl<'py, T: Data> Written<'py, T> {
    /// Borrows the array.
    pub(crate) fn new(array: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        let array = raw::<T>(array, what)?;
        check_order(&array, what)?;
        let held = array.try_readwrite().map_err(|error| not_borrowed(what, error))?;
        held.as_slice().map_err(|error| not_a_slice(what, error))?;
        Ok(Self(held))
    }

    /// Returns the elements.
    pub(crate) fn slice(&mut self) -> &mut [T] {
        cast_slice_mut(self.0.as_slice_mut().unwrap_or_default())
    }
}

/// Fails if the source and the target of a call share memory. The borrows do not detect this if
/// the arrays are views of a buffer that is not an array.
pub(crate) fn check_apart<T: Data>(source: &[T], target: &[T]) -> PyResult<()> {
    let [source, target] = [source, target].map(<[T]>::as_ptr_range);
    if source.start < target.end && target.start < source.end {
        return Err(PyValueError::new_err(OVERLAP));
    }
    Ok(())
}

const OVERLAP: &str = "the array and the result share memory, but are not the same array: use a \
                       separate array for the result";

/// Returns an array of one dimension with these elements, which are not copied.
pub(crate) fn array_of<'py, T: Data>(
    py: Python<'py>,
    elements: Vec<T>,
) -> PyResult<Bound<'py, PyAny>> {
    // Both types are the same, or single bytes, so the vector keeps its memory.
    let elements: Vec<T::Raw> = elements.into_iter().map(cast).collect();
    let raw = PyArray1::from_vec(py, elements).into_any();
    if T::NAME == "bool" { raw.call_method1("view", ("bool",)) } else { Ok(raw) }
}
