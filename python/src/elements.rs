//! The memory of an object that is not an array, such as a tensor.
//!
//! NumPy has no bfloat16 of its own, and a view of a tensor's memory as an array takes longer than
//! a short call. So a caller may name an address, a number of elements and a type. The memory that
//! calls use is registered, that of arrays too: a second call that would change it is refused.

#![expect(unsafe_code, reason = "the memory of an address becomes a slice")]

use std::{marker::PhantomData, ops::Range, ptr::NonNull, slice};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

use crate::{
    types::{Data, KINDS},
    uses::{Use, overlap},
};

/// Elements at an address. Their owner stays alive with them.
#[pyclass(frozen, module = "consort._consort")]
pub(crate) struct Elements {
    address: usize,
    count: usize,
    bytes: usize,
    name: &'static str,
    _owner: Py<PyAny>,
}

#[pymethods]
impl Elements {
    /// Names the memory of `owner`, which holds `count` elements of a type. The memory must be
    /// writable if a call writes it, and must stay where it is as long as `owner` lives.
    #[new]
    fn new(address: usize, count: usize, name: &str, owner: Py<PyAny>) -> PyResult<Self> {
        let Some(&(name, kind, size)) = KINDS.iter().find(|(known, ..)| *known == name) else {
            return Err(PyTypeError::new_err(format!("unknown type of elements '{name}'")));
        };
        let scalar = if kind == b'c' { size / 2 } else { size };
        let bytes = count.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok());
        let end = bytes.and_then(|bytes| address.checked_add(bytes));
        let is_aligned = address.is_multiple_of(scalar);
        match bytes {
            Some(bytes) if end.is_some() && (bytes == 0 || address != 0 && is_aligned) => {
                Ok(Self { address, count, bytes, name, _owner: owner })
            }
            _ => Err(PyValueError::new_err(format!(
                "{count} elements of type {name} cannot be at address {address:#x}: they must be \
                 aligned in memory"
            ))),
        }
    }

    /// Returns whether the two share memory.
    fn overlaps(&self, other: &Self) -> bool {
        overlap(&self.range(), &other.range())
    }
}

impl Elements {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    fn range(&self) -> Range<usize> {
        self.address..self.address + self.bytes
    }
}

/// A borrow of elements for a call.
pub(crate) struct Borrow<'py, T> {
    elements: Bound<'py, Elements>,
    used: Use,
    of: PhantomData<T>,
}

impl<'py, T: Data> Borrow<'py, T> {
    /// Borrows elements of type `T`, whose use is registered by `register`.
    ///
    /// # Errors
    /// Those of `register`.
    pub(crate) fn new(
        elements: &Bound<'py, Elements>,
        register: impl FnOnce(Range<usize>) -> PyResult<Use>,
    ) -> PyResult<Self> {
        let used = register(elements.get().range())?;
        Ok(Self { elements: elements.clone(), used, of: PhantomData })
    }

    pub(crate) fn used(&self) -> &Use {
        &self.used
    }

    fn start(&self) -> NonNull<T> {
        let Elements { address, bytes, .. } = *self.elements.get();
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address));
        start.filter(|_| bytes > 0).unwrap_or(NonNull::dangling())
    }

    /// Returns the elements.
    pub(crate) fn slice(&self) -> &[T] {
        // SAFETY: the creator of `Elements` has named memory with `count` elements, aligned for
        // them, that stays there while the owner lives, which this holds. Any bytes are a `T`. No
        // call writes the memory while it is borrowed. Programs promise not to, as for functions of
        // NumPy and torch that let other threads run.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.elements.get().count) }
    }

    /// Returns the elements, to write them.
    pub(crate) fn slice_mut(&mut self) -> &mut [T] {
        debug_assert!(self.used.is_written());
        // SAFETY: as above. The memory is writable, and no other call reads it meanwhile.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.elements.get().count) }
    }
}
