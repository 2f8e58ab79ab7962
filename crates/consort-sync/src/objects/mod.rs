//! Concurrent objects whose values are words, on any [`Machine`]: counters, stacks and queues.
//!
//! | object | source |
//! | --- | --- |
//! | [`CounterObject`], [`Stack`] | sequential code under a scheme |
//! | [`Queue`] | the same; or under two schemes, Michael and Scott 1996 |
//! | [`FetchAdd`] | a counter that the processor increments |
//! | [`Treiber`] | a lock-free stack, Treiber 1986 |
//! | [`Lcrq`] | a lock-free queue, Morrison and Afek 2013; also for clusters of cores |
//!
//! Values are words: each [`Container`] documents how many bits. [`WordContainer`] is a container
//! for the threads of a program; for values of any type use [`Stack`](crate::Stack) and
//! [`Queue`](crate::Queue). [`Counter`](crate::Counter) is a counter for the threads of a program.

#![expect(unsafe_code, reason = "relies on containers of addresses to return each address once")]

mod counter;
mod crq;
mod fetch_add;
mod lcrq;
mod object;
mod queue;
mod stack;
mod treiber;
#[cfg(not(loom))]
mod word_container;

use std::future::Future;

use consort_machine::Machine;
#[cfg(not(loom))]
use consort_machine::{at_once, block_on};

#[cfg(not(loom))]
use crate::machine::MACHINE;

pub use counter::{CounterObject, SequentialCounter};
pub use fetch_add::FetchAdd;
pub use lcrq::{Clusters, Lcrq, MyRings};
pub use object::{Object, ObjectPart, Sequential};
pub use queue::{Queue, SequentialQueue};
pub use stack::{SequentialStack, Stack};
pub use treiber::Treiber;

#[cfg(not(loom))]
pub use word_container::WordContainer;

/// The first number that is not a value.
///
/// Values have 62 bits: some schemes return only 63 bits, and one further number means that an
/// object is empty.
pub const VALUES: u64 = 1 << 62;

/// The result of taking from an empty object.
const EMPTY: u64 = VALUES;

/// A queue or a stack of words.
///
/// # Safety
/// [`take`](Self::take) returns only words that were put, and each at most once. What precedes a
/// `put` happens before what follows the `take` of its word, unless a scheme
/// [streams](crate::delegation::Scheme::streams).
pub unsafe trait Container {
    /// State that each thread keeps between its operations. It belongs to one thread and this
    /// object; the next thread with the same number may take it over.
    type Local: Default;

    /// Returns the first number that is not a value of this container.
    fn values(&self) -> u64 {
        VALUES
    }

    /// Appends a value to a queue, or puts it on a stack.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Panics
    /// When the number is not a value.
    fn put<M: Machine>(
        &self,
        m: &M,
        local: &Self::Local,
        value: u64,
    ) -> impl Future<Output = Result<(), M::Stop>>;

    /// Takes the first value of a queue, or the top value of a stack; `None` if it is empty.
    ///
    /// # Errors
    /// When a wait ends early.
    fn take<M: Machine>(
        &self,
        m: &M,
        local: &Self::Local,
    ) -> impl Future<Output = Result<Option<u64>, M::Stop>>;

    /// Returns whether operations may wait.
    fn waits(&self) -> bool {
        true
    }

    /// Like [`put`](Self::put), on the native machine.
    ///
    /// # Panics
    /// When the number is not a value.
    ///
    /// # Safety
    /// `local` belongs to the calling thread and to this container. That of another queue would not
    /// keep rings of this one from being freed:
    ///
    /// ```compile_fail,E0133
    /// use consort_sync::objects::{Container, Lcrq, MyRings};
    ///
    /// let mine = MyRings::default();
    /// Lcrq::packed(8).put_here(&mine, 1);
    /// Lcrq::packed(8).put_here(&mine, 2);
    /// ```
    #[cfg(not(loom))]
    #[inline]
    unsafe fn put_here(&self, local: &Self::Local, value: u64) {
        let Ok(()) = drive(self.put(&MACHINE, local, value), self.waits());
    }

    /// Like [`take`](Self::take), on the native machine.
    ///
    /// # Safety
    /// As for [`put_here`](Self::put_here).
    #[cfg(not(loom))]
    #[inline]
    unsafe fn take_here(&self, local: &Self::Local) -> Option<u64> {
        let Ok(value) = drive(self.take(&MACHINE, local), self.waits());
        value
    }

    /// Gives a thread's state back to the machine. No thread may use the container any more.
    fn retire_local<M: Machine>(m: &M, local: &mut Self::Local) {
        let _ = (m, local);
    }

    /// Gives the container's memory back to the machine, with the remaining values. No thread may
    /// use the container any more.
    fn retire<M: Machine>(&mut self, m: &M);
}

/// Returns the result of a future on the native machine. It is inlined if the future never waits.
#[cfg(not(loom))]
#[inline(always)]
fn drive<T>(future: impl Future<Output = T>, waits: bool) -> T {
    if waits { block_on(future) } else { at_once(future) }
}

/// # Panics
/// When a number is not a value.
#[inline]
fn check(value: u64, values: u64) {
    assert!(value < values, "invalid value {value:#x}: values are less than {values:#x}");
}
