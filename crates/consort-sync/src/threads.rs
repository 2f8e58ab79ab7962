//! The state of an object for each thread, by the thread's number.

#![expect(unsafe_code, reason = "each thread uses only its own state")]

use std::{array, cell::UnsafeCell, sync::OnceLock};

use consort_machine::{Machine, Thread};

use crate::machine::MACHINE;

/// The number of threads in a block.
const BLOCK: usize = 64;
/// The number of blocks: enough for all thread numbers of the native machine.
const BLOCKS: usize = 256;

type Block<L> = Box<[UnsafeCell<L>; BLOCK]>;

/// A value for each thread that has used an object. A thread that reuses the number of a finished
/// thread continues with its value.
pub(crate) struct PerThread<L> {
    blocks: OnceLock<Box<[OnceLock<Block<L>>; BLOCKS]>>,
}

// SAFETY: only the thread with its number uses a value, and the next thread with that number only
// after the first has ended: the machine gives a number to one thread at a time, under a lock. So
// values only move between threads.
unsafe impl<L: Send> Sync for PerThread<L> {}

impl<L> PerThread<L> {
    pub(crate) const fn new() -> Self {
        Self { blocks: OnceLock::new() }
    }

    /// Passes all values to `use_it`.
    pub(crate) fn each(&mut self, use_it: impl FnMut(&mut L)) {
        let blocks = self.blocks.get_mut().into_iter().flat_map(|blocks| blocks.iter_mut());
        let values = blocks.filter_map(OnceLock::get_mut).flat_map(|block| block.iter_mut());
        values.map(UnsafeCell::get_mut).for_each(use_it);
    }
}

impl<L: Default> PerThread<L> {
    /// Returns the value of the calling thread.
    #[inline]
    pub(crate) fn mine(&self) -> &L {
        if size_of::<L>() == 0 {
            return Box::leak(Box::default()); // allocates nothing
        }
        self.get_or_create()
    }

    fn get_or_create(&self) -> &L {
        let Thread(number) = MACHINE.thread();
        let blocks = self.blocks.get_or_init(|| Box::new(array::from_fn(|_| OnceLock::new())));
        let block = blocks[number as usize / BLOCK]
            .get_or_init(|| Box::new(array::from_fn(|_| UnsafeCell::default())));
        // SAFETY: only this thread uses the value, and only by shared references; `each` has the
        // object to itself.
        unsafe { &*block[number as usize % BLOCK].get() }
    }
}
