//! Symmetric memory. Puts and gets copy elements in and out, so PEs may access it at the same time.
//! A `Part` gives NumPy the address of a PE's elements, and keeps the memory.

use std::{any::Any, ptr, sync::Arc};

use bytemuck::{cast_slice, cast_slice_mut};
use consort::{Rank, Symmetric, bindings};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};

use crate::{
    arrays::{Read, Written, for_type_of},
    dispatch::{call, forget},
    errors::rank,
    running::{Allocation, Dropped},
    types::Data,
};

impl<T: Data> Allocation for Symmetric<T> {
    fn put(&self, to: Rank, first: usize, elements: &[u8]) -> consort::Result<()> {
        Symmetric::put(self, to, first, cast_slice(elements))
    }

    fn get(&self, from: Rank, first: usize, elements: &mut [u8]) -> consort::Result<()> {
        Symmetric::get(self, from, first, cast_slice_mut(elements))
    }

    fn address(&self, pe: Rank, first: usize) -> consort::Result<usize> {
        Symmetric::address(self, pe, first).map(|at| at.addr())
    }

    fn keep(&self) -> Arc<dyn Any + Send + Sync> {
        bindings::keep(self)
    }

    fn fence(&self) -> consort::Result<()> {
        Symmetric::fence(self)
    }

    fn quiet(&self) -> consort::Result<()> {
        Symmetric::quiet(self)
    }
}

/// The Python class of symmetric memory: a number, and the type of its elements.
#[pyclass(frozen, module = "consort._consort")]
pub(crate) struct Memory {
    launch: u64,
    index: usize,
    /// The number of PEs.
    size: usize,
    /// The number of elements on each PE.
    length: usize,
    element_bytes: usize,
    name: &'static str,
}

/// The Python class of a PE's part of symmetric memory, from which NumPy makes an array. It keeps
/// the memory, also after the job has ended.
#[pyclass(frozen, module = "consort._consort")]
pub(crate) struct Part {
    address: usize,
    length: usize,
    element_bytes: usize,
    _memory: Arc<dyn Any + Send + Sync>,
}

#[pymethods]
impl Part {
    /// Version 3 of NumPy's array interface.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.length,))?;
        // The Python layer sets the type, since bfloat16 has none here.
        interface.set_item("typestr", format!("|V{}", self.element_bytes))?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}

/// Allocates memory for `length` elements of the type of `like`.
pub(crate) fn allocate(
    py: Python<'_>,
    team: (u64, usize),
    size: usize,
    like: &Bound<'_, PyAny>,
    length: usize,
) -> PyResult<Memory> {
    for_type_of!(like, T => allocate_of::<T>(py, team, size, length))
}

fn allocate_of<T: Data>(
    py: Python<'_>,
    (launch, team): (u64, usize),
    size: usize,
    length: usize,
) -> PyResult<Memory> {
    let index = call(py, launch, team, |team, running| {
        let memory: Symmetric<T> = team.symmetric(length)?;
        let mut all = running.memory.borrow_mut();
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        if free == all.len() {
            all.push(None);
        }
        all[free] = Some(Box::new(memory));
        Ok(free)
    })?;
    Ok(Memory { launch, index, size, length, element_bytes: size_of::<T>(), name: T::NAME })
}

impl Memory {
    /// Accesses the memory with the interpreter's lock released.
    fn on<R: Send>(
        &self,
        py: Python<'_>,
        access: impl FnOnce(&dyn Allocation) -> consort::Result<R> + Send,
    ) -> PyResult<R> {
        call(py, self.launch, 0, |_, running| {
            let memory = running.memory.borrow();
            memory[self.index]
                .as_deref()
                .map_or(Err(consort::Error::Call(consort::error::CallError::Freed)), access)
        })
    }

    fn check<T: Data>(&self) -> PyResult<()> {
        if T::NAME == self.name {
            return Ok(());
        }
        let name = self.name;
        Err(PyTypeError::new_err(format!(
            "the array has type {}, but the memory has type {name}",
            T::NAME
        )))
    }

    fn put_of<T: Data>(&self, to: i64, first: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check::<T>()?;
        let to = rank(to, self.size)?;
        let elements = Read::<T>::new(array, "the array")?;
        let elements = cast_slice(elements.slice());
        self.on(array.py(), |memory| {
            if overlap(memory, to, first, elements) {
                let copy = elements.to_vec();
                return memory.put(to, first, &copy);
            }
            memory.put(to, first, elements)
        })
    }

    fn get_of<T: Data>(&self, from: i64, first: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check::<T>()?;
        let from = rank(from, self.size)?;
        let mut elements = Written::<T>::new(array, None, "the result")?;
        let elements = cast_slice_mut(elements.slice());
        self.on(array.py(), |memory| {
            if overlap(memory, from, first, elements) {
                let mut copy = elements.to_vec();
                memory.get(from, first, &mut copy)?;
                elements.copy_from_slice(&copy);
                return Ok(());
            }
            memory.get(from, first, elements)
        })
    }
}

/// Returns whether an array lies in the elements of a PE that a put or a get of its length
/// accesses from `first` on. It may be a view of them.
fn overlap(memory: &dyn Allocation, pe: Rank, first: usize, array: &[u8]) -> bool {
    let begin = array.as_ptr().addr();
    let at = memory.address(pe, first);
    !array.is_empty() && at.is_ok_and(|at| at.abs_diff(begin) < array.len())
}

#[pymethods]
impl Memory {
    /// Copies an array to the part of PE `to`, from element `first` on.
    fn put(&self, to: i64, first: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
        for_type_of!(array, T => self.put_of::<T>(to, first, array))
    }

    /// Copies elements of the part of PE `from`, from element `first` on, to an array.
    fn get(&self, from: i64, first: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
        for_type_of!(array, T => self.get_of::<T>(from, first, array))
    }

    /// Returns the elements of a PE, for an array.
    fn part(&self, py: Python<'_>, pe: i64) -> PyResult<Part> {
        let (pe, length) = (rank(pe, self.size)?, self.length);
        // Zero elements have no address, but NumPy needs one.
        let (address, memory) = self.on(py, |memory| {
            let nowhere = ptr::dangling::<u128>().addr();
            let address = if length > 0 { memory.address(pe, 0)? } else { nowhere };
            Ok((address, memory.keep()))
        })?;
        Ok(Part { address, length, element_bytes: self.element_bytes, _memory: memory })
    }

    /// Orders this PE's earlier puts before its later ones.
    fn fence(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, |memory| memory.fence())
    }

    /// Waits until this PE's puts are complete.
    fn quiet(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, |memory| memory.quiet())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        forget(self.launch, Dropped::Memory(self.index));
    }
}
