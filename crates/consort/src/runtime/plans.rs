//! Plans of any algorithm, ready to be called or started.

use std::{
    any::Any,
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
};

use consort_collectives::{Algorithm, EntryAndExit, Plan};
use consort_fabric::{Candidate, Op};
use consort_native::{CallNumber, CallView, Endpoint, HeapError, Operands, Site, StartedCall};

/// The plan of any algorithm, behind one indirect call.
pub(crate) trait Ready: Send + std::marker::Sync {
    /// Makes one call, from `site` in the program. Sets `synchronized` if no PE leaves before all
    /// have entered.
    fn call(
        &self,
        endpoint: &Endpoint,
        synchronized: &Cell<bool>,
        operands: &Operands<'_>,
        site: Site,
    ) -> Op;
    /// Begins a call for an operation. As [`Ready::call`].
    fn begin(&self, endpoint: &Endpoint, site: Site) -> Result<StartedCall, HeapError>;
    /// Returns the algorithm's future, for an operation to drive.
    fn drive<'c>(&'c self, call: &'c CallView<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>>;
    /// Returns the algorithm and its parameters.
    fn candidate(&self) -> &Candidate;
    /// As [`Algorithm::may_replace_source`].
    fn may_replace_source(&self) -> bool;
}

/// A plan whose blocking calls a caller can drive itself.
pub(crate) trait Drivable: Ready {
    /// Begins a call, as [`Ready::call`] does.
    ///
    /// # Safety
    /// The caller drives the call by [`Ready::drive`], once and to its end.
    #[expect(unsafe_code, reason = "declares a requirement on its caller")]
    unsafe fn enter<'c>(
        &self,
        endpoint: &'c Endpoint,
        synchronized: &Cell<bool>,
        operands: &'c Operands<'c>,
        site: Site,
    ) -> CallView<'c>;
}

/// The plan of an algorithm, with the other data that a call needs.
pub(crate) struct Prepared<A: Algorithm> {
    pub(crate) plan: Plan<A>,
    pub(crate) identity: CallIdentity,
    pub(crate) may_replace_source: bool,
}

/// The data of a plan that does not depend on the algorithm's type.
pub(crate) struct CallIdentity {
    pub(crate) number: CallNumber,
    pub(crate) synchronizes: bool,
    pub(crate) candidate: Candidate,
}

impl<A: Algorithm> Ready for Prepared<A> {
    fn call(
        &self,
        endpoint: &Endpoint,
        synchronized: &Cell<bool>,
        operands: &Operands<'_>,
        site: Site,
    ) -> Op {
        // SAFETY: only this future drives the call, to its end.
        #[expect(unsafe_code, reason = "begins a call")]
        let call = unsafe { self.enter(endpoint, synchronized, operands, site) };
        fail_on_panic(endpoint, || {
            let algorithm = A::run(&call, self.plan.schedule());
            match self.plan.entry_and_exit() {
                None => endpoint.block_on(&call, algorithm),
                Some(entry_and_exit) => between(entry_and_exit, endpoint, &call, pin!(algorithm)),
            }
        })
    }

    fn begin(&self, endpoint: &Endpoint, site: Site) -> Result<StartedCall, HeapError> {
        endpoint.start(self.identity.number.get(), self.plan.steps(), site)
    }

    fn drive<'c>(&'c self, call: &'c CallView<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        self.plan.run(call)
    }

    fn candidate(&self) -> &Candidate {
        &self.identity.candidate
    }

    fn may_replace_source(&self) -> bool {
        self.may_replace_source
    }
}

impl<A: Algorithm> Drivable for Prepared<A> {
    #[expect(unsafe_code, reason = "begins a call")]
    #[inline(always)]
    unsafe fn enter<'c>(
        &self,
        endpoint: &'c Endpoint,
        synchronized: &Cell<bool>,
        operands: &'c Operands<'c>,
        site: Site,
    ) -> CallView<'c> {
        if self.identity.synchronizes {
            synchronized.set(true);
        }
        // SAFETY: only the caller drives the call, to its end, and a team rejects calls from within
        // a call.
        unsafe { endpoint.begin(self.identity.number.get(), self.plan.steps(), operands, site) }
    }
}

/// Drives a call. If it panics, peers wait for messages that it will never send. They are notified
/// before the call ends, which revokes the memory that it has exposed.
#[inline(always)]
pub(super) fn fail_on_panic(endpoint: &Endpoint, drive: impl FnOnce() -> Op) -> Op {
    match catch_unwind(AssertUnwindSafe(drive)) {
        Ok(done) => done,
        Err(panic) => fail(endpoint, panic),
    }
}

/// Fails the job because a call has panicked, and goes on with the panic.
#[cold]
fn fail(endpoint: &Endpoint, panic: Box<dyn Any + Send>) -> ! {
    endpoint.job().fail(endpoint.rank_in_world(), &panic);
    resume_unwind(panic)
}

/// Makes a call with entry and exit barriers; compiled once for all algorithms.
#[inline(never)]
fn between(
    entry_and_exit: &EntryAndExit,
    endpoint: &Endpoint,
    call: &CallView<'_>,
    algorithm: Pin<&mut dyn Future<Output = Op>>,
) -> Op {
    endpoint.block_on(call, entry_and_exit.run(call, algorithm))
}
