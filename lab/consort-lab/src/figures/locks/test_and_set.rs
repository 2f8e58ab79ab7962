//! The test-and-set lock of the thesis, without backoff (Petrović 2015, section 6.4). The library
//! only has a lock with backoff.

#![expect(unsafe_code, reason = "promises exclusive access, as a lock does")]

use std::sync::atomic::Ordering::{Acquire, Release};

use consort_machine::{Machine, Word};
use consort_sync::delegation::{Scheme, Service};

/// A lock that a thread tries to take with an atomic operation again and again. Its word is 1 while
/// a thread executes its operation.
#[derive(Debug, Default)]
pub(super) struct PlainTestAndSet {
    held: Word,
}

// SAFETY: only the thread that changes the word from 0 to 1 executes its operation, once, and only
// that thread changes it back. The acquire of that exchange pairs with the release of the store.
unsafe impl Scheme for PlainTestAndSet {
    const NAME: &'static str = "test-and-set without backoff";
    type Local = ();

    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        while m.swap(&self.held, 1, Acquire).await != 0 {}
        let result = service.serve(m, operation, argument).await;
        m.store(&self.held, 0, Release).await; // pairs with the acquire of the next holder
        Ok(result)
    }
}
