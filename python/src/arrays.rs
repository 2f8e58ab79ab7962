//! A borrow of the memory of an array for a call.
//!
//! A call borrows its arrays. Other calls, of any thread, are refused if they would change these
//! arrays. The rest of the program must not change them either, as with NumPy's functions that let
//! other threads run.

use std::{fmt::Display, ops::Range};

use bytemuck::{cast, cast_slice, cast_slice_mut};
use half::bf16;
use numpy::{
    BorrowError, Element, PyArray1, PyArrayDescrMethods as _, PyArrayDyn, PyArrayMethods as _,
    PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

use crate::{
    elements::{Borrow, Elements},
    types::{BFLOAT16, Data, KINDS},
    uses::{Use, in_use},
};

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
        match $crate::arrays::type_name(array)? {
            Some("float16") => with!(half::f16),
            Some("bfloat16") => with!(half::bf16),
            Some("float32") => with!(f32),
            Some("float64") => with!(f64),
            Some("int8") => with!(i8),
            Some("int16") => with!(i16),
            Some("int32") => with!(i32),
            Some("int64") => with!(i64),
            Some("uint8") => with!(u8),
            Some("uint16") => with!(u16),
            Some("uint32") => with!(u32),
            Some("uint64") => with!(u64),
            Some("bool") => with!([u8; 1]),
            Some("complex64") => with!(num_complex::Complex<f32>),
            Some("complex128") => with!(num_complex::Complex<f64>),
            _ => Err($crate::arrays::not_taken(array)),
        }
    }};
}
pub(crate) use for_type_of;

/// Returns the name of the type of the elements, if calls take them. They do not in another byte
/// order than this machine's.
pub(crate) fn type_name(array: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    if let Ok(elements) = array.cast::<Elements>() {
        return Ok(Some(elements.get().name()));
    }
    let of = array.cast::<PyUntypedArray>()?.dtype();
    let kind = match of.kind() {
        _ if !of.is_native_byteorder().unwrap_or(true) => return Ok(None),
        b'V' if of.getattr("name")?.eq(bf16::NAME)? => BFLOAT16,
        letter => letter,
    };
    let size = of.itemsize();
    Ok(KINDS.iter().find(|known| (known.1, known.2) == (kind, size)).map(|known| known.0))
}

/// Returns the exception for an array of an unsupported type.
pub(crate) fn not_taken(array: &Bound<'_, PyAny>) -> PyErr {
    let name = array.getattr("dtype").map_or_else(|_| "?".to_owned(), |of| of.to_string());
    PyTypeError::new_err(format!(
        "unsupported array type {name}: use float16, bfloat16, float32, float64, complex64, \
         complex128, integers of 8 to 64 bits or bool, in this machine's byte order"
    ))
}

/// Returns the array as an array of `T`; an array of `bool` as bytes.
fn raw<'py, T: Data>(
    array: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyArrayDyn<T::Raw>>> {
    let is_it = T::NAME != "bool" || type_name(array)? == Some("bool");
    let bytes = match T::NAME {
        "bool" if is_it => &array.call_method1("view", ("uint8",))?,
        _ => array,
    };
    let typed = bytes.cast::<PyArrayDyn<T::Raw>>().ok().filter(|_| is_it).cloned();
    typed.ok_or_else(|| {
        let of = array.getattr("dtype").map_or_else(|_| "?".to_owned(), |of| of.to_string());
        other_type::<T>(what, &of)
    })
}

fn other_type<T: Data>(what: &str, of: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} has type {of}: use {}, as in the other array", T::NAME))
}

fn not_borrowed(what: &str, error: BorrowError) -> PyErr {
    match error {
        BorrowError::NotWriteable => PyValueError::new_err(format!("{what} is read-only")),
        _ => in_use(what),
    }
}

fn not_a_slice(what: &str, error: impl Display) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is not contiguous and aligned in memory ({error}): use numpy.ascontiguousarray"
    ))
}

fn check_order<T: Element>(array: &Bound<'_, PyArrayDyn<T>>, what: &str) -> PyResult<()> {
    if array.is_c_contiguous() { Ok(()) } else { Err(not_a_slice(what, "not in the order of C")) }
}

/// A borrow of the memory that a call reads.
pub(crate) enum Read<'py, T: Data> {
    Array { held: PyReadonlyArrayDyn<'py, T::Raw>, used: Use },
    Elements(Borrow<'py, T>),
}

impl<'py, T: Data> Read<'py, T> {
    /// Borrows the array, or the elements.
    pub(crate) fn new(array: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        if let Some(elements) = elements::<T>(array, what)? {
            return Ok(Self::Elements(Borrow::new(elements, |range| Use::read(range, what))?));
        }
        let array = raw::<T>(array, what)?;
        check_order(&array, what)?;
        let held = array.try_readonly().map_err(|error| not_borrowed(what, error))?;
        let slice = held.as_slice().map_err(|error| not_a_slice(what, error))?;
        let used = Use::read(bytes_of(slice), what)?;
        Ok(Self::Array { held, used })
    }

    /// Returns the registered use of the memory.
    pub(crate) fn used(&self) -> &Use {
        match self {
            Self::Array { used, .. } => used,
            Self::Elements(held) => held.used(),
        }
    }

    /// Returns the elements.
    pub(crate) fn slice(&self) -> &[T] {
        match self {
            Self::Array { held, .. } => cast_slice(held.as_slice().unwrap_or_default()),
            Self::Elements(held) => held.slice(),
        }
    }
}

/// A borrow of the memory that a call writes.
pub(crate) enum Written<'py, T: Data> {
    Array { held: PyReadwriteArrayDyn<'py, T::Raw>, _used: Use },
    Elements(Borrow<'py, T>),
}

impl<'py, T: Data> Written<'py, T> {
    /// Borrows the array, or the elements, for a call that reads `source`.
    pub(crate) fn new(
        array: &Bound<'py, PyAny>,
        source: Option<&Read<'_, T>>,
        what: &str,
    ) -> PyResult<Self> {
        let register = |range| Use::write(range, source.map(Read::used), what);
        if let Some(elements) = elements::<T>(array, what)? {
            return Ok(Self::Elements(Borrow::new(elements, register)?));
        }
        let array = raw::<T>(array, what)?;
        check_order(&array, what)?;
        let held = array.try_readwrite().map_err(|error| not_borrowed(what, error))?;
        let slice = held.as_slice().map_err(|error| not_a_slice(what, error))?;
        let _used = register(bytes_of(slice))?;
        Ok(Self::Array { held, _used })
    }

    /// Returns the elements.
    pub(crate) fn slice(&mut self) -> &mut [T] {
        match self {
            Self::Array { held, .. } => cast_slice_mut(held.as_slice_mut().unwrap_or_default()),
            Self::Elements(held) => held.slice_mut(),
        }
    }
}

/// Returns the addresses of the bytes of elements.
fn bytes_of<T>(elements: &[T]) -> Range<usize> {
    let Range { start, end } = elements.as_ptr_range();
    start.addr()..end.addr()
}

/// Returns the object as elements of `T`, or `None` if it is an array.
fn elements<'a, 'py, T: Data>(
    object: &'a Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Option<&'a Bound<'py, Elements>>> {
    let Ok(elements) = object.cast::<Elements>() else { return Ok(None) };
    let name = elements.get().name();
    if name == T::NAME { Ok(Some(elements)) } else { Err(other_type::<T>(what, name)) }
}

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
