//! Data and the scheme that executes closures on it.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use std::ptr;

use consort_machine::{Machine, at_once, block_on};

use crate::{
    closure::{ClosureCall, SharedData, frame, refuse},
    delegation::Scheme,
    detached::{Pending, backlog_request, detached, execute_detached_here, submitted},
    machine::MACHINE,
    threads::PerThread,
};

/// If about this many detached closures are pending, a thread that detaches another one waits.
const MOST_DETACHED: u64 = 1 << 12;

/// A scheme, and its state for each thread.
pub(crate) struct SchemeState<S: Scheme> {
    pub(crate) scheme: S,
    locals: PerThread<S::Local>,
}

impl<S: Scheme> Drop for SchemeState<S> {
    fn drop(&mut self) {
        self.locals.each(|local| S::retire_local(&MACHINE, local));
        self.scheme.retire(&MACHINE);
    }
}

/// Data with the scheme that executes closures on it: the contents of a `Delegate` or a `Server`.
pub(crate) struct DelegatedData<T, S: Scheme> {
    pub(crate) scheme_state: SchemeState<S>,
    pub(crate) shared: SharedData<T>,
}

impl<T, S: Scheme> DelegatedData<T, S> {
    pub(crate) const fn new(scheme: S, data: T) -> Self {
        Self {
            scheme_state: SchemeState { scheme, locals: PerThread::new() },
            shared: SharedData::new(data),
        }
    }

    /// Has a closure executed, by this thread or another, and returns its result.
    #[inline]
    #[track_caller]
    pub(crate) fn apply<R>(&self, closure: impl FnOnce(&mut T) -> R) -> R {
        self.shared.refuse_circular_wait();
        // SAFETY: the scheme executes nothing else meanwhile.
        let section = |closure| unsafe { self.shared.execute_here(closure) };
        match self.scheme_state.scheme.in_place(closure, section) {
            Ok(Ok(result)) => result,
            Ok(Err(closure)) => refuse(closure),
            Err(closure) => self.apply_by_request(closure),
        }
    }

    #[inline]
    #[track_caller]
    fn apply_by_request<R>(&self, closure: impl FnOnce(&mut T) -> R) -> R {
        let call = ClosureCall::new(closure);
        self.request(call.request::<T>());
        call.finish()
    }

    /// Has a request executed, and waits for it.
    #[inline]
    fn request(&self, (operation, argument): (u64, u64)) {
        let SchemeState { scheme, locals } = &self.scheme_state;
        let local = locals.mine();
        let Ok(_) = block_on(scheme.apply(&MACHINE, local, &self.shared, operation, argument));
    }

    #[inline]
    #[track_caller]
    pub(crate) fn detach(&self, closure: impl FnOnce(&mut T) + Send + 'static) {
        self.shared.refuse_circular_wait();
        // SAFETY: the scheme executes nothing else meanwhile.
        let section = |closure| unsafe { execute_detached_here(&self.shared, closure) };
        if let Err(closure) = self.scheme_state.scheme.in_place_if_free(closure, section) {
            self.push_to_backlog(detached(closure));
        }
    }

    #[track_caller]
    pub(crate) fn submit<R: Send + 'static>(
        &self,
        closure: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Pending<R> {
        self.shared.refuse_circular_wait();
        let (request, pending) = submitted(closure);
        self.push(request);
        pending
    }

    /// Has a request of the backlog executed, without waiting for it if possible.
    pub(crate) fn push(&self, request: (u64, u64)) {
        // SAFETY: the scheme executes nothing else meanwhile.
        let section = |request| unsafe { self.shared.execute_request_here(request) };
        if let Err(request) = self.scheme_state.scheme.in_place_if_free(request, section) {
            self.push_to_backlog(request);
        }
    }

    /// Waits until the requests that this thread has added to the backlog have been executed, or
    /// executes them.
    pub(crate) fn execute_backlog(&self) {
        self.request(backlog_request::<T>(frame()));
    }

    /// Adds a request to the backlog, and ensures that it is executed.
    pub(crate) fn push_to_backlog(&self, (operation, argument): (u64, u64)) {
        Machine::thread(&MACHINE); // before the push, because it panics if no number is free
        let before = at_once(self.shared.backlog.push(&MACHINE, operation, argument));
        if before == 0 {
            if self.shared.note_request() {
                return;
            }
            let (operation, argument) = backlog_request::<T>(ptr::null());
            let Ok(is_posted) =
                block_on(self.scheme_state.scheme.post(&MACHINE, operation, argument));
            if is_posted {
                return;
            }
        }
        if before == 0 || before >= MOST_DETACHED {
            self.execute_backlog();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::delegation::Service;

    /// Executes closures in place, and keeps what is posted.
    #[derive(Default)]
    struct KeepsPosts(RefCell<Vec<(u64, u64)>>);

    // SAFETY: one thread uses it, and the test executes what is posted.
    unsafe impl Scheme for KeepsPosts {
        const NAME: &'static str = "keeps posts";
        type Local = ();

        async fn apply<M: Machine, S: Service<M>>(
            &self,
            m: &M,
            (): &(),
            service: &S,
            operation: u64,
            argument: u64,
        ) -> Result<u64, M::Stop> {
            Ok(service.serve(m, operation, argument).await)
        }

        async fn post<M: Machine>(
            &self,
            _: &M,
            operation: u64,
            argument: u64,
        ) -> Result<bool, M::Stop> {
            self.0.borrow_mut().push((operation, argument));
            Ok(true)
        }
    }

    #[test]
    fn only_one_request_for_the_backlog_is_posted_at_a_time() {
        let data = DelegatedData::new(KeepsPosts::default(), 0);
        let posts = &data.scheme_state.scheme.0;
        for round in 1..=3 {
            for _ in 0..10 {
                data.detach(|count| *count += 1);
                data.apply(|count| *count += 1);
            }
            assert_eq!(posts.borrow().len(), 1, "round {round}");
            data.detach(|count| *count += 1);
            let (operation, argument) = posts.borrow_mut().pop().expect("it was posted");
            at_once(Service::serve(&data.shared, &MACHINE, operation, argument));
            assert!(at_once(data.shared.backlog.is_empty(&MACHINE)), "round {round}");
        }
        assert_eq!(data.shared.into_inner(), 63);
    }
}
