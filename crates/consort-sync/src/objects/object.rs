//! Sequential code that a scheme makes concurrent.
//!
//! One scheme executes all operations, or one scheme puts and another takes. In the second case,
//! the code itself must coordinate the two.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use std::future::Future;

use consort_machine::Machine;
#[cfg(not(loom))]
use consort_machine::{at_once, block_on};

use super::{Container, EMPTY, VALUES, check};
use crate::delegation::{Scheme, ServerScheme, Service};
#[cfg(not(loom))]
use crate::machine::MACHINE;

/// The operations of a container. If an object has two schemes, each executes one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectPart {
    /// Putting. If the object has one scheme, also taking.
    Put,
    /// Taking.
    Take,
}

/// Data in words, with operations that run one at a time and never wait.
pub trait Sequential {
    /// Executes an operation. No other operation of its part is executed meanwhile.
    fn serve<M: Machine>(
        &self,
        m: &M,
        operation: ObjectPart,
        argument: u64,
    ) -> impl Future<Output = u64>;

    /// Gives the memory of the data back to the machine.
    fn retire<M: Machine>(&mut self, m: &M) {
        let _ = m;
    }
}

/// Sequential code under one scheme or two.
#[derive(Debug)]
pub struct Object<S, D> {
    put: S,
    /// `None` if the other scheme serves both.
    take: Option<S>,
    data: ContainerService<D>,
}

/// Makes data a [`Service`], for schemes.
#[derive(Debug)]
struct ContainerService<D>(D);

impl<M: Machine, D: Sequential> Service<M> for ContainerService<D> {
    #[inline]
    async fn serve(&self, m: &M, operation: u64, argument: u64) -> u64 {
        let part =
            if operation == ObjectPart::Put as u64 { ObjectPart::Put } else { ObjectPart::Take };
        self.0.serve(m, part, argument).await
    }
}

impl<S, D> Object<S, D> {
    pub(super) const fn of(put: S, take: Option<S>, data: D) -> Self {
        Self { put, take, data: ContainerService(data) }
    }

    /// Returns the scheme that executes a part.
    pub fn scheme(&self, part: ObjectPart) -> &S {
        self.take.as_ref().filter(|_| part == ObjectPart::Take).unwrap_or(&self.put)
    }

    /// Returns the parts, each with its own scheme.
    pub fn parts(&self) -> &'static [ObjectPart] {
        if self.take.is_some() { &[ObjectPart::Put, ObjectPart::Take] } else { &[ObjectPart::Put] }
    }
}

impl<S: Scheme, D: Sequential> Object<S, D> {
    /// Returns the scheme's answer. `local` is the thread's state of both schemes.
    #[inline]
    pub(super) async fn apply<M: Machine>(
        &self,
        m: &M,
        local: &[S::Local; 2],
        part: ObjectPart,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let second = usize::from(self.take.is_some() && part == ObjectPart::Take);
        let scheme = self.scheme(part);
        scheme.apply(m, &local[second], &self.data, part as u64, argument).await
    }

    /// Like `apply`, on the native machine.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn apply_here(&self, local: &[S::Local; 2], part: ObjectPart, argument: u64) -> u64 {
        let serve = |argument| at_once(self.data.0.serve(&MACHINE, part, argument));
        self.scheme(part).in_place(argument, serve).unwrap_or_else(|argument| {
            let Ok(result) = block_on(self.apply(&MACHINE, local, part, argument));
            result
        })
    }

    /// As for [`Container::retire_local`].
    pub fn retire_local<M: Machine>(m: &M, local: &mut [S::Local; 2]) {
        local.iter_mut().for_each(|local| S::retire_local(m, local));
    }

    /// As for [`Container::retire`].
    pub fn retire<M: Machine>(&mut self, m: &M) {
        self.data.0.retire(m);
        self.put.retire(m);
        self.take.iter_mut().for_each(|scheme| scheme.retire(m));
    }
}

impl<S: ServerScheme, D: Sequential> Object<S, D> {
    /// Runs the server of one of the object's [`parts`](Self::parts), until [`stop`](Self::stop) is
    /// called.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn run<M: Machine>(&self, m: &M, part: ObjectPart) -> Result<(), M::Stop> {
        self.scheme(part).run(m, &self.data).await
    }

    /// Ends the server of a part.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn stop<M: Machine>(&self, m: &M, part: ObjectPart) -> Result<(), M::Stop> {
        self.scheme(part).stop(m).await
    }
}

/// Returns the value of a result; `None` if the object was empty.
fn taken(result: u64) -> Option<u64> {
    (result != EMPTY).then_some(result)
}

/// A list of nodes that contains each value once.
///
/// # Safety
/// As for [`Container`], if operations of one part are executed one at a time.
pub unsafe trait Nodes: Sequential {}

// SAFETY: a scheme serves each request once, and no other request of the part at the same time; the
// rest is the promise of `Nodes`.
unsafe impl<S: Scheme, D: Nodes> Container for Object<S, D> {
    type Local = [S::Local; 2];

    #[inline]
    async fn put<M: Machine>(&self, m: &M, local: &Self::Local, value: u64) -> Result<(), M::Stop> {
        check(value, VALUES);
        self.apply(m, local, ObjectPart::Put, value).await.map(|_| ())
    }

    #[inline]
    async fn take<M: Machine>(&self, m: &M, local: &Self::Local) -> Result<Option<u64>, M::Stop> {
        Ok(taken(self.apply(m, local, ObjectPart::Take, 0).await?))
    }

    #[cfg(not(loom))]
    #[inline]
    unsafe fn put_here(&self, local: &Self::Local, value: u64) {
        check(value, VALUES);
        self.apply_here(local, ObjectPart::Put, value);
    }

    #[cfg(not(loom))]
    #[inline]
    unsafe fn take_here(&self, local: &Self::Local) -> Option<u64> {
        taken(self.apply_here(local, ObjectPart::Take, 0))
    }

    fn retire_local<M: Machine>(m: &M, local: &mut Self::Local) {
        Self::retire_local(m, local);
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        self.retire(m);
    }
}
