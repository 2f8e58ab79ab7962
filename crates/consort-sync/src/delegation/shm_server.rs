//! SHM-SERVER: Petrović 2015, section 7.1.1, Algorithm 5; a simplified RCL (Lozi et al. 2012).
//!
//! Each client has a slot, a line. It writes its request there and waits there for the answer. A
//! server scans all slots. In Algorithm 5 a flag says whose turn it is at a slot. Here the number
//! of the request does so, and the answer carries the number's lowest bit. So an answer is a single
//! word, which a nontemporal store can write (section 7.1.3). A result has 63 bits.
//!
//! Threads without their own slot share the last one. If a server finds no request for a long time,
//! it sleeps; a client that finds it asleep wakes it.
//!
//! | word of a slot | contents | written by |
//! | --- | --- | --- |
//! | `OPERATION`, `ARGUMENT` | the request | client |
//! | `REQUEST` | its number | client |
//! | `ANSWER` | 2 x the result + the number's lowest bit | server |
//! | `OWNER` | 1 while a thread uses a slot that several share | client |

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until};

use super::{
    SECOND_SERVER, Scheme, ServerScheme, Service,
    backoff::{Backoff, IntervalSearch},
};

const OPERATION: usize = 0;
const ARGUMENT: usize = 1;
const REQUEST: usize = 2;
const ANSWER: usize = 3;
const OWNER: usize = 4;

/// Words of the server's line.
const ENDS: usize = 0;
/// 1 while the server sleeps, or is about to.
const SLEEPS: usize = 1;
/// A client sets it to 1 to wake the server.
const BELL: usize = 2;
/// 1 once there is a server.
const RUNS: usize = 3;
/// The interval at which clients check, in cycles, if the server searches for it.
const PAUSE: usize = 4;

/// The server sleeps after this many scans without a request. Loom models use a small number.
const IDLE_SCANS: u32 = if cfg!(loom) { 1 } else { 10_000 };
/// The longest sleep, in nanoseconds. It is limited because a client that arrives just before the
/// sleep may not see that the server sleeps.
const SLEEP_NS: u64 = 1_000_000;
/// The number of streamed answers after which a fence makes them visible.
const MOST_STREAMED: u64 = 4096;
/// The number of checks after which a client that backs off waits like the others.
const CHECKS: u32 = 64;

/// SHM-SERVER: one thread executes the operations that it finds in the clients' slots.
#[derive(Debug)]
pub struct ShmServer {
    /// The slots, `stride` lines apart.
    lines: Box<[Line]>,
    stride: usize,
    /// The order in which the server scans the slots.
    order: Box<[usize]>,
    backoff: Backoff,
    streams: bool,
    /// Words that the server shares with its clients.
    server: Line,
}

impl ShmServer {
    /// Creates slots for `clients` clients. Threads with higher numbers share the last slot.
    ///
    /// # Panics
    /// When there is no slot.
    #[must_use]
    #[track_caller]
    pub fn new(clients: usize) -> Self {
        assert!(clients > 0, "SHM-SERVER with no slot for a client: use 1 or more");
        let lines = (0..clients).map(|_| Line::default()).collect();
        let order = (0..clients).collect();
        let backoff = Backoff::Spins;
        Self { lines, stride: 1, order, backoff, streams: false, server: Line::default() }
    }

    /// Uses only every second line, for processors that fetch lines in pairs (section 7.2.1).
    #[must_use]
    pub fn with_every_second_line(mut self) -> Self {
        self.stride = 2;
        self.lines = (0..self.order.len() * self.stride).map(|_| Line::default()).collect();
        self
    }

    /// Sets how clients wait.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Streams answers: writes them with nontemporal stores, so an operation's effects may become
    /// visible after its answer. Then no other thread may use the service's data, not even through
    /// the result of an operation.
    #[must_use]
    pub fn with_streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    /// Scans the slots in this order.
    ///
    /// # Panics
    /// When `order` does not name each slot once.
    #[must_use]
    #[track_caller]
    pub fn with_order(mut self, order: &[usize]) -> Self {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..self.order.len()), "the order must name each slot once");
        self.order = order.into();
        self
    }

    /// Returns the lines of all slots, which are contiguous. A simulated machine must know them.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn slot(&self, index: usize) -> &Line {
        &self.lines[index * self.stride]
    }

    /// Returns the slot of a thread, and whether other threads share it.
    fn slot_of<M: Machine>(&self, m: &M) -> (&Line, bool) {
        let (last, thread) = (self.order.len() - 1, m.thread().0 as usize);
        (self.slot(thread.min(last)), thread >= last)
    }
}

/// Returns whether an answer is that of the request with this number.
const fn answers(answer: u64, request: u64) -> bool {
    answer & 1 == request & 1
}

// SAFETY: only the thread that runs the server executes operations. There is no second server. A
// client writes its request before it releases the number, and the server writes its answer after
// the operation; the wait for it acquires.
unsafe impl Scheme for ShmServer {
    const NAME: &'static str = "SHM-SERVER";
    type Local = ();

    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        _: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let (slot, shared) = self.slot_of(m);
        while shared && m.swap(&slot[OWNER], 1, Acquire).await != 0 {
            m.wait_until(&slot[OWNER], Until::Equals(0)).await?;
        }
        let request = m.load(&slot[REQUEST], Relaxed).await.wrapping_add(1);
        let last = m.load(&slot[ANSWER], Relaxed).await;
        m.store(&slot[OPERATION], operation, Relaxed).await;
        m.store(&slot[ARGUMENT], argument, Relaxed).await;
        m.store(&slot[REQUEST], request, Release).await; // pairs with the acquire of the scan
        if m.load(&self.server[SLEEPS], Relaxed).await != 0 {
            m.store(&self.server[BELL], 1, Release).await;
            m.wake(&self.server[BELL]);
        }
        let cycles = match self.backoff {
            Backoff::Spins => 0,
            Backoff::Every(cycles) => cycles,
            Backoff::Tuned => m.load(&self.server[PAUSE], Relaxed).await,
        };
        let mut checks = if cycles == 0 { CHECKS } else { 0 };
        while checks < CHECKS && m.load(&slot[ANSWER], Relaxed).await == last {
            m.pause(cycles).await;
            checks += 1;
        }
        let answer = m.wait_until(&slot[ANSWER], Until::Differs(last)).await?;
        if shared {
            m.store(&slot[OWNER], 0, Release).await;
            m.wake(&slot[OWNER]);
        }
        Ok(answer >> 1)
    }

    fn streams(&self) -> bool {
        self.streams
    }
}

impl ServerScheme for ShmServer {
    async fn run<M: Machine, S: Service<M>>(&self, m: &M, service: &S) -> Result<(), M::Stop> {
        assert!(m.swap(&self.server[RUNS], 1, Relaxed).await == 0, "{SECOND_SERVER}");
        let mut search = IntervalSearch::new(self.order.len());
        let mut idle = 0;
        let mut streamed = 0;
        loop {
            let mut found = 0;
            for &index in &self.order {
                let slot = self.slot(index);
                // Pairs with the release of the client.
                let request = m.load(&slot[REQUEST], Acquire).await;
                if answers(m.load(&slot[ANSWER], Relaxed).await, request) {
                    continue;
                }
                found += 1;
                let operation = m.load(&slot[OPERATION], Relaxed).await;
                let argument = m.load(&slot[ARGUMENT], Relaxed).await;
                let result = service.serve(m, operation, argument).await;
                let answer = result << 1 | request & 1;
                if self.streams {
                    m.stream(&slot[ANSWER], answer).await;
                } else {
                    m.store(&slot[ANSWER], answer, Release).await;
                }
                m.wake(&slot[ANSWER]);
            }
            if self.streams {
                // Streamed answers may stay in the core for a long time.
                streamed += found;
                if streamed > 0 && found == 0 || streamed >= MOST_STREAMED {
                    m.fence(Release).await;
                    streamed = 0;
                }
            }
            if found > 0 {
                if idle == IDLE_SCANS {
                    m.store(&self.server[SLEEPS], 0, Relaxed).await;
                }
                idle = 0;
                if self.backoff == Backoff::Tuned
                    && let Some(cycles) = search.note(found, || m.now_ns())
                {
                    m.store(&self.server[PAUSE], cycles, Relaxed).await;
                }
                continue;
            }
            idle += 1;
            if m.load(&self.server[ENDS], Acquire).await != 0 {
                return Ok(());
            }
            // The server scans once more after it has announced its sleep.
            if idle == IDLE_SCANS {
                m.store(&self.server[BELL], 0, Relaxed).await;
                m.swap(&self.server[SLEEPS], 1, AcqRel).await;
                search.forget_window();
            } else if idle > IDLE_SCANS {
                let bell = &self.server[BELL];
                m.wait_until_time(bell, Until::Differs(0), m.now_ns() + SLEEP_NS).await?;
                m.store(&self.server[SLEEPS], 0, Relaxed).await;
                idle = 0;
            }
        }
    }

    async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        m.store(&self.server[ENDS], 1, Release).await;
        m.store(&self.server[BELL], 1, Release).await;
        m.wake(&self.server[BELL]);
        Ok(())
    }
}
