//! A scheme whose sections are the only code that accesses their data, as in the thesis' objects
//! (Petrović 2015, section 6.2.2).

#![expect(unsafe_code, reason = "promises what the scheme inside promises")]

use consort_machine::Machine;
use consort_sim::PrivateSections;
use consort_sync::delegation::{Scheme, ServerScheme, Service};

/// A scheme that marks the sections that it executes.
pub(super) struct Private<S> {
    pub(super) scheme: S,
    pub(super) sections: PrivateSections,
}

/// A service that marks its operations as sections.
struct Marked<'s, V> {
    service: &'s V,
    sections: &'s PrivateSections,
}

impl<M: Machine, V: Service<M>> Service<M> for Marked<'_, V> {
    async fn serve(&self, m: &M, operation: u64, argument: u64) -> u64 {
        let section = self.service.serve(m, operation, argument);
        self.sections.execute(m.thread(), section).await
    }
}

impl<S> Private<S> {
    const fn mark<'s, V>(&'s self, service: &'s V) -> Marked<'s, V> {
        Marked { service, sections: &self.sections }
    }
}

// SAFETY: the scheme inside keeps the promises.
unsafe impl<S: Scheme> Scheme for Private<S> {
    const NAME: &'static str = S::NAME;
    type Local = S::Local;

    async fn apply<M: Machine, V: Service<M>>(
        &self,
        m: &M,
        local: &S::Local,
        service: &V,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        self.scheme.apply(m, local, &self.mark(service), operation, argument).await
    }

    fn streams(&self) -> bool {
        self.scheme.streams()
    }
}

impl<S: ServerScheme> ServerScheme for Private<S> {
    async fn run<M: Machine, V: Service<M>>(&self, m: &M, service: &V) -> Result<(), M::Stop> {
        self.scheme.run(m, &self.mark(service)).await
    }

    async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.scheme.stop(m).await
    }
}
