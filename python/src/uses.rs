//! The memory that calls use, so that no two calls use the same bytes and one of them writes.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pyo3::{exceptions::PyValueError, prelude::*};

/// The memory that calls use now, and whether they write it. There are few.
static IN_USE: Mutex<Vec<(Range<usize>, bool)>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<(Range<usize>, bool)>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A range of memory that a call uses, until this is dropped.
pub(crate) struct Use {
    range: Range<usize>,
    is_written: bool,
}

impl Use {
    /// Registers that a call reads some bytes.
    ///
    /// # Errors
    /// If another call writes some of them.
    pub(crate) fn read(range: Range<usize>, what: &str) -> PyResult<Self> {
        Self::new(range, false, what)
    }

    /// Registers that a call writes some bytes. `source` is what it reads.
    ///
    /// # Errors
    /// If the call reads some of them, or another call uses some of them.
    pub(crate) fn write(range: Range<usize>, source: Option<&Self>, what: &str) -> PyResult<Self> {
        if source.is_some_and(|source| overlap(&source.range, &range)) {
            return Err(PyValueError::new_err(OVERLAP));
        }
        Self::new(range, true, what)
    }

    fn new(range: Range<usize>, is_written: bool, what: &str) -> PyResult<Self> {
        let mut all = all();
        if all.iter().any(|(one, written)| (is_written || *written) && overlap(one, &range)) {
            return Err(in_use(what));
        }
        all.push((range.clone(), is_written));
        Ok(Self { range, is_written })
    }

    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut all = all();
        let is_it = |(range, is_written): &(Range<usize>, bool)| {
            *range == self.range && *is_written == self.is_written
        };
        if let Some(at) = all.iter().position(is_it) {
            all.swap_remove(at);
        }
    }
}

/// Returns whether two ranges have common bytes.
pub(crate) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

const OVERLAP: &str = "the array and the result share memory, but are not the same array: use a \
                       separate array for the result";

/// Returns the exception for memory that another call uses.
pub(crate) fn in_use(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is in use by another call, and one of the two calls changes it: give each PE a \
         separate array"
    ))
}
