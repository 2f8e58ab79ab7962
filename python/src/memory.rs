//! Symmetric memory. Python code gets no reference to it: elements are copied in and out, so PEs
//! may access it at the same time.

use bytemuck::{cast_slice, cast_slice_mut};
use consort::{Rank, Symmetric};
use pyo3::{exceptions::PyTypeError, prelude::*};

use crate::{
    arrays::{Data, Read, Written, for_type_of},
    errors::rank,
    running::{Allocation, call, here},
};

impl<T: Data> Allocation for Symmetric<T> {
    fn put(&self, to: Rank, first: usize, elements: &[u8]) -> consort::Result<()> {
        Symmetric::put(self, to, first, cast_slice(elements))
    }

    fn get(&self, from: Rank, first: usize, elements: &mut [u8]) -> consort::Result<()> {
        Symmetric::get(self, from, first, cast_slice_mut(elements))
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
    name: &'static str,
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
    Ok(Memory { launch, index, size, name: T::NAME })
}

impl Memory {
    /// Accesses the memory with the interpreter's lock released.
    fn on(
        &self,
        py: Python<'_>,
        access: impl FnOnce(&dyn Allocation) -> consort::Result<()> + Send,
    ) -> PyResult<()> {
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
        self.on(array.py(), |memory| memory.put(to, first, elements))
    }

    fn get_of<T: Data>(&self, from: i64, first: usize, array: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check::<T>()?;
        let from = rank(from, self.size)?;
        let mut elements = Written::<T>::new(array, "the result")?;
        let elements = cast_slice_mut(elements.slice());
        self.on(array.py(), |memory| memory.get(from, first, elements))
    }
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
        // A thread that is not the PE has no memory to free.
        drop(here(self.launch, |running| {
            let memory =
                running.memory.try_borrow_mut().ok().and_then(|mut all| all[self.index].take());
            drop(memory);
            Ok(())
        }));
    }
}
