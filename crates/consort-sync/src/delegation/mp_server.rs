//! MP-SERVER: Petrović 2015, section 6.1.2.
//!
//! A server receives requests as messages, executes them, and answers. It reads only its own queue
//! and does not wait for answers to arrive, so it touches no memory that others write.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use std::sync::atomic::Ordering::Relaxed;

use consort_machine::{Line, Machine, Queue, Thread, Until};

use super::{SECOND_SERVER, Scheme, ServerScheme, Service};

/// Words of the server's line: its thread plus one, or 0 before it runs.
const SERVER: usize = 0;
/// 1 once the server must end.
const ENDS: usize = 1;

/// Sent in place of a client: the server must end.
const STOP: u64 = u64::MAX;
/// Sent in place of a client: no thread waits for the answer.
const NOBODY: u64 = u64::MAX - 1;

/// MP-SERVER: one thread executes the operations that it receives.
#[derive(Debug, Default)]
pub struct MpServer {
    server: Line,
}

#[cfg(not(loom))]
impl MpServer {
    /// Creates a scheme that has no server yet. Clients wait until one runs.
    #[must_use]
    pub const fn new() -> Self {
        Self { server: Line::new() }
    }
}

impl MpServer {
    /// Returns the queue of the requests. It is empty before the server runs.
    fn queue(&self) -> Queue {
        Queue(std::ptr::from_ref(self).addr() as u64)
    }

    async fn send<M: Machine>(&self, m: &M, message: [u64; 3]) -> Result<(), M::Stop> {
        let server = m.wait_until(&self.server[SERVER], Until::Differs(0)).await?;
        let server = u32::try_from(server - 1).expect("the word holds the number of a thread");
        m.send(Thread(server), self.queue(), &message).await
    }
}

// SAFETY: only the thread that runs the server executes operations. There is no second server.
unsafe impl Scheme for MpServer {
    const NAME: &'static str = "MP-SERVER";
    type Local = ();

    #[inline]
    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        _: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        self.send(m, [u64::from(m.thread().0), operation, argument]).await?;
        m.receive_answer().await
    }

    async fn post<M: Machine>(
        &self,
        m: &M,
        operation: u64,
        argument: u64,
    ) -> Result<bool, M::Stop> {
        self.send(m, [NOBODY, operation, argument]).await?;
        Ok(true)
    }
}

impl ServerScheme for MpServer {
    async fn run<M: Machine, S: Service<M>>(&self, m: &M, service: &S) -> Result<(), M::Stop> {
        let me = u64::from(m.thread().0) + 1;
        let first = m.compare_exchange(&self.server[SERVER], 0, me, Relaxed).await;
        assert!(first.is_ok(), "{SECOND_SERVER}");
        m.wake(&self.server[SERVER]);
        loop {
            let [client, operation, argument] = m.receive(self.queue()).await?;
            if client == STOP {
                return Ok(());
            }
            let result = service.serve(m, operation, argument).await;
            if client == NOBODY {
                continue;
            }
            let client = u32::try_from(client).expect("the word holds the number of a thread");
            m.answer(Thread(client), result).await;
        }
    }

    async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        // A second message would stay in the queue for a later scheme at the same address.
        if m.swap(&self.server[ENDS], 1, Relaxed).await == 0 {
            self.send(m, [STOP, 0, 0]).await?;
        }
        Ok(())
    }
}
