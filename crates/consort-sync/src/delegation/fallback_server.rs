//! A server that falls back to a lock: a waiting thread takes the place of a server that is late.
//!
//! A lock protects the data, and the thread that holds it executes operations. So any thread can
//! take the place of the server, as in flat combining (Hendler, Incze, Shavit and Tzafrir 2010).
//! RCL (Lozi et al. 2012, section 3.2) also replaces a server that does not run, by another server.
//!
//! While the server serves, threads append their requests to the queue of CC-SYNCH (Fatourou and
//! Kallimanis 2012). The server takes the lock, executes the requests, and releases the lock. If a
//! thread has waited for some time and the lock is free, the server is late: it has no core. Then
//! the thread takes the lock and executes the requests up to its own one, but no later ones. A
//! later one may wait for something that the thread holds. It also ends the server's turn.
//!
//! While the server does not serve, each thread executes its operations under the lock. Posted
//! operations are still queued, and the poster rings the server. The server tries both ways in turn
//! and counts the operations. It uses the faster way for a rest of 64 ms or more, then tries again.
//! So where threads outnumber the cores, at most one millisecond in 64 is worse than the lock. With
//! long operations it is longer, because the server reads the clock after each round of operations.
//!
//! `node.rs` has the words of a node. `STATE` is `WAITS`, then `DONE`; or `POSTED` if no thread
//! waits.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::{
    Locked, MAX_OPS, SECOND_SERVER, Scheme, ServerScheme, Service,
    node::{ARGUMENT, DONE, NEXT, OPERATION, OTHER, RESULT, STATE, WAITS, node},
};
use crate::locks::{Handoff, RawLock};
#[cfg(not(loom))]
use crate::machine::MACHINE;

const POSTED: u64 = OTHER;

/// Words of the line of the mode, which threads mostly read.
const MODE: usize = 0;
/// 1 once the server must end.
const ENDS: usize = 1;
/// 1 once there is a server.
const RUNS: usize = 2;

/// Modes: each thread executes its own operations, or the server executes all.
const LOCKS: u64 = 0;
const SERVES: u64 = 1;

/// A thread whose request has waited for this long looks whether the server is late: the first time
/// and the longest, in nanoseconds. The time doubles while a thread holds the lock.
const PATIENCE_NS: [u64; 2] = [50_000, 10_000_000];
/// A server without a request for this long stops serving.
const IDLE_NS: u64 = 200_000;
/// The length of a measurement, in nanoseconds.
const WINDOW_NS: u64 = 1_000_000;
/// The shortest and the longest time for which the faster way is used without a trial.
const RESTS_NS: [u64; 2] = [64_000_000, 1_024_000_000];

/// A server that falls back to a lock: if it is late, the waiting threads execute the operations.
#[derive(Debug)]
pub struct FallbackServer<R = Handoff> {
    locked: Locked<R>,
    /// The node of the next request to execute. Only the holder of the lock changes it.
    first: Word,
    /// The number of operations that threads executed for themselves. Only the holder changes it.
    executed: Word,
    /// The last node, which has no request yet; 0 before the server runs.
    last: Line,
    mode: Line,
    /// Set to 1 to wake a server that does not serve.
    bell: Line,
}

impl<R: RawLock> Default for FallbackServer<R> {
    fn default() -> Self {
        Self {
            locked: Locked::with(R::default()),
            first: Word::default(),
            executed: Word::default(),
            last: Line::default(),
            mode: Line::default(),
            bell: Line::default(),
        }
    }
}

#[cfg(not(loom))]
impl FallbackServer {
    /// Creates a scheme with the default lock. Until its server runs, threads execute their own
    /// operations.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Handoff::new())
    }
}

#[cfg(not(loom))]
impl<R: RawLock> FallbackServer<R> {
    /// Creates a scheme with this lock, which must be free.
    #[must_use]
    pub const fn with(lock: R) -> Self {
        Self {
            locked: Locked::with(lock),
            first: Word::new(0),
            executed: Word::new(0),
            last: Line::new(),
            mode: Line::new(),
            bell: Line::new(),
        }
    }
}

impl<R: RawLock> FallbackServer<R> {
    fn lock(&self) -> &R {
        self.locked.lock()
    }

    async fn serves<M: Machine>(&self, m: &M) -> bool {
        // Pairs with the release in `serve`: there is a queue.
        m.load(&self.mode[MODE], Acquire).await == SERVES
    }

    async fn ends<M: Machine>(&self, m: &M) -> bool {
        // Pairs with the release in `stop`: operations that were posted before are in the queue.
        m.load(&self.mode[ENDS], Acquire).await != 0
    }

    /// Counts an operation of the calling thread, which holds the lock.
    #[inline(always)]
    async fn count<M: Machine>(&self, m: &M) {
        let executed = m.load(&self.executed, Relaxed).await;
        m.store(&self.executed, executed.wrapping_add(1), Relaxed).await;
    }

    /// Appends a request, and returns its node.
    async fn publish<M: Machine>(
        &self,
        m: &M,
        state: u64,
        operation: u64,
        argument: u64,
    ) -> &'static Line {
        let empty = m.take_line();
        m.store(&empty[NEXT], 0, Relaxed).await;
        // Pairs with the swap of the next thread, which uses the node.
        let mine = node(m.swap(&self.last[0], empty.address(), AcqRel).await);
        m.store(&mine[OPERATION], operation, Relaxed).await;
        m.store(&mine[ARGUMENT], argument, Relaxed).await;
        m.store(&mine[STATE], state, Relaxed).await;
        m.store(&mine[NEXT], empty.address(), Release).await; // pairs with the acquires of `NEXT`
        m.wake(&mine[NEXT]);
        mine
    }

    /// Executes the next request, if there is one. The caller holds the lock.
    async fn serve_next<M: Machine, S: Service<M>>(&self, m: &M, service: &S) -> bool {
        let request = node(m.load(&self.first, Relaxed).await);
        let next = m.load(&request[NEXT], Acquire).await;
        if next == 0 {
            return false;
        }
        let operation = m.load(&request[OPERATION], Relaxed).await;
        let argument = m.load(&request[ARGUMENT], Relaxed).await;
        let state = m.load(&request[STATE], Relaxed).await;
        let result = service.serve(m, operation, argument).await;
        m.store(&self.first, next, Release).await; // pairs with the acquire in `serve`
        if state == POSTED {
            m.give_line(request);
        } else {
            m.store(&request[RESULT], result, Relaxed).await;
            m.store(&request[STATE], DONE, Release).await; // pairs with the acquire of the wait
            m.wake(&request[STATE]);
        }
        true
    }

    /// Executes up to [`MAX_OPS`] requests as the server. Returns their number.
    async fn serve_some<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
    ) -> Result<u64, M::Stop> {
        let token = self.lock().acquire(m).await?;
        let mut served = 0;
        while served < MAX_OPS && self.serve_next(m, service).await {
            served += 1;
        }
        // SAFETY: the lock was acquired with this token.
        unsafe { self.lock().release(m, token) }.await?;
        Ok(served)
    }

    /// Executes requests as the server until there are none. Waits for requests whose threads have
    /// appended their nodes but have not linked them yet.
    async fn serve_all<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
    ) -> Result<(), M::Stop> {
        let mut is_empty = false;
        while !is_empty {
            let token = self.lock().acquire(m).await?;
            for _ in 0..MAX_OPS {
                let first = m.load(&self.first, Relaxed).await;
                is_empty = first == m.load(&self.last[0], Relaxed).await;
                if is_empty {
                    break;
                }
                m.wait_until(&node(first)[NEXT], Until::Differs(0)).await?;
                self.serve_next(m, service).await;
            }
            // SAFETY: the lock was acquired with this token.
            unsafe { self.lock().release(m, token) }.await?;
        }
        Ok(())
    }

    /// Waits for a request's result, and executes the request if the server is late.
    async fn wait<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
        mine: &'static Line,
    ) -> Result<(), M::Stop> {
        let [mut patience, longest] = PATIENCE_NS;
        let token = loop {
            if !self.serves(m).await {
                break self.lock().acquire(m).await?;
            }
            let at = m.now_ns() + patience;
            patience = (2 * patience).min(longest);
            if m.wait_until_time(&mine[STATE], Until::Equals(DONE), at).await?.is_some() {
                return Ok(());
            }
            if let Some(token) = self.lock().try_acquire(m).await {
                m.store(&self.mode[MODE], LOCKS, Relaxed).await;
                break token;
            }
        };
        // The lock orders this thread after the one that executed the request, if there is one.
        while m.load(&mine[STATE], Relaxed).await != DONE {
            let first = node(m.load(&self.first, Relaxed).await);
            m.wait_until(&first[NEXT], Until::Differs(0)).await?;
            self.serve_next(m, service).await;
        }
        // SAFETY: the lock was acquired with this token.
        unsafe { self.lock().release(m, token) }.await
    }

    /// Serves for `ns` nanoseconds. Stops earlier if no request arrives, or if a thread ends the
    /// server's turn. Returns the rate. When the time is up, it still executes up to [`MAX_OPS`]
    /// operations of the current round, and as many again that threads have already requested.
    async fn serve<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
        ns: u64,
    ) -> Result<Rate, M::Stop> {
        let (begun, mut operations) = (m.now_ns(), 0);
        m.store(&self.mode[MODE], SERVES, Release).await; // pairs with the acquire in `serves`
        let rate = loop {
            if !self.serves(m).await || self.ends(m).await {
                break Rate::NONE;
            }
            let now = m.now_ns();
            if now - begun >= ns {
                break Rate { operations, ns: now - begun };
            }
            // Pairs with the release of the thread that executed the request before: this node has
            // been initialized. Another thread may execute its request and reuse the node. Then the
            // mode has changed, or that thread saw the mode before this turn. In the second case
            // the wait may end early, or as if there were no request.
            let next = &node(m.load(&self.first, Acquire).await)[NEXT];
            let at = now + IDLE_NS;
            if m.wait_until_time(next, Until::Differs(0), at).await?.is_none() {
                break Rate::NONE;
            }
            operations += self.serve_some(m, service).await?;
        };
        m.store(&self.mode[MODE], LOCKS, Relaxed).await;
        // Threads with a request would otherwise wait until they look whether the server is late.
        self.serve_some(m, service).await?;
        Ok(rate)
    }

    /// Lets the threads execute their own operations for `ns` nanoseconds, and executes what is
    /// posted. Returns the threads' rate. Ends early if the server must end.
    async fn rest<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
        ns: u64,
    ) -> Result<Rate, M::Stop> {
        let (begun, before) = (m.now_ns(), m.load(&self.executed, Relaxed).await);
        loop {
            let rung = m.wait_until_time(&self.bell[0], Until::Differs(0), begun + ns).await?;
            if rung.is_some() {
                // An exchange, so that a ring between the wait and this is not lost.
                m.swap(&self.bell[0], 0, Acquire).await;
                self.serve_all(m, service).await?;
            }
            let passed = m.now_ns() - begun;
            if passed >= ns || self.ends(m).await {
                let operations = m.load(&self.executed, Relaxed).await.wrapping_sub(before);
                return Ok(Rate { operations, ns: passed });
            }
        }
    }

    /// Rings a server that does not serve.
    async fn ring<M: Machine>(&self, m: &M) {
        // Pairs with the acquire in `rest`. A swap, so that it also orders what other threads
        // posted before they rang.
        m.swap(&self.bell[0], 1, Release).await;
        m.wake(&self.bell[0]);
    }
}

/// The operations that were executed in some time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    operations: u64,
    ns: u64,
}

impl Rate {
    const NONE: Self = Self { operations: 0, ns: 1 };

    fn is_above(self, other: Self) -> bool {
        let product = |rate: Self, time: Self| u128::from(rate.operations) * u128::from(time.ns);
        product(self, other) > product(other, self)
    }
}

/// The results of the trials so far.
#[derive(Debug)]
struct Trials {
    /// Whether the server was faster than the lock in the last trial.
    server_wins: bool,
    /// How long the faster way is used.
    rest_ns: u64,
}

impl Trials {
    const fn new() -> Self {
        Self { server_wins: false, rest_ns: 0 }
    }

    /// Returns how long the server serves before it is measured, and how long the lock is used.
    const fn rests_ns(&self) -> [u64; 2] {
        if self.server_wins { [self.rest_ns, 0] } else { [0, self.rest_ns] }
    }

    /// Records the rates of the server and of the lock in a trial.
    fn note(&mut self, [server, lock]: [Rate; 2]) {
        let [shortest, longest] = RESTS_NS;
        let server_wins = server.is_above(lock);
        let same = server_wins == self.server_wins;
        self.rest_ns = if same { (2 * self.rest_ns).clamp(shortest, longest) } else { shortest };
        self.server_wins = server_wins;
    }
}

// SAFETY: only the holder of the lock executes operations, and it is the only one that changes
// `first`. So it executes each request of the queue once. A thread waits until its request is done,
// by the acquire of its wait or under the lock.
unsafe impl<R: RawLock> Scheme for FallbackServer<R> {
    const NAME: &'static str = "fallback server";
    type Local = ();

    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        if self.serves(m).await {
            let mine = self.publish(m, WAITS, operation, argument).await;
            self.wait(m, service, mine).await?;
            let result = m.load(&mine[RESULT], Relaxed).await;
            m.give_line(mine);
            return Ok(result);
        }
        let token = self.lock().acquire(m).await?;
        let result = service.serve(m, operation, argument).await;
        self.count(m).await;
        // SAFETY: the lock was acquired with this token.
        unsafe { self.lock().release(m, token) }.await?;
        Ok(result)
    }

    async fn post<M: Machine>(
        &self,
        m: &M,
        operation: u64,
        argument: u64,
    ) -> Result<bool, M::Stop> {
        // Pairs with the release in `run`: there is a queue.
        m.wait_until(&self.last[0], Until::Differs(0)).await?;
        self.publish(m, POSTED, operation, argument).await;
        self.ring(m).await;
        Ok(true)
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        self.locked.retire(m);
        let last = std::mem::take(&mut self.last)[0].atomic().load(Relaxed);
        if last != 0 {
            m.give_line(node(last));
        }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn in_place<I, T>(&self, input: I, section: impl FnOnce(I) -> T) -> Result<T, I> {
        use consort_machine::at_once;
        if at_once(self.serves(&MACHINE)) {
            return Err(input);
        }
        self.locked.in_place(input, |input| {
            at_once(self.count(&MACHINE));
            section(input)
        })
    }
}

impl<R: RawLock> ServerScheme for FallbackServer<R> {
    async fn run<M: Machine, S: Service<M>>(&self, m: &M, service: &S) -> Result<(), M::Stop> {
        assert!(m.swap(&self.mode[RUNS], 1, Relaxed).await == 0, "{SECOND_SERVER}");
        let empty = m.take_line();
        m.store(&empty[NEXT], 0, Relaxed).await;
        m.store(&self.first, empty.address(), Relaxed).await;
        m.store(&self.last[0], empty.address(), Release).await; // pairs with the wait in `post`
        m.wake(&self.last[0]);
        let mut trials = Trials::new();
        while !self.ends(m).await {
            let [served_ns, locked_ns] = trials.rests_ns();
            if served_ns > 0 {
                self.serve(m, service, served_ns).await?;
            }
            let server = self.serve(m, service, WINDOW_NS).await?;
            if locked_ns > 0 {
                self.rest(m, service, locked_ns).await?;
            }
            let lock = self.rest(m, service, WINDOW_NS).await?;
            trials.note([server, lock]);
        }
        // What was posted between the end of the last rest and the stop.
        self.serve_all(m, service).await
    }

    async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        m.store(&self.mode[ENDS], 1, Release).await; // pairs with the acquire in `ends`
        self.ring(m).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        future::Future,
        pin::pin,
        task::{Context, Waker},
        thread,
        time::Duration,
    };

    use consort_machine::at_once;

    use super::*;

    #[derive(Default)]
    struct Executed(RefCell<Vec<u64>>);

    impl<M: Machine> Service<M> for Executed {
        async fn serve(&self, _: &M, operation: u64, _: u64) -> u64 {
            self.0.borrow_mut().push(operation);
            0
        }
    }

    /// Its thread has appended the node, but has not yet linked it.
    #[test]
    fn server_does_not_end_before_posts_behind_an_unlinked_node() {
        let (m, scheme, executed) = (&MACHINE, FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(m, &executed));
        let mut is_over = || {
            let mut context = Context::from_waker(Waker::noop());
            server.as_mut().poll(&mut context).is_ready()
        };
        assert!(!is_over(), "it serves");
        let empty = m.take_line();
        empty[NEXT].atomic().store(0, Relaxed);
        let unlinked = node(at_once(m.swap(&scheme.last[0], empty.address(), AcqRel)));
        assert_eq!(at_once(scheme.post(m, 2, 0)), Ok(true));
        assert_eq!(at_once(scheme.stop(m)), Ok(()));
        thread::sleep(Duration::from_nanos(2 * IDLE_NS)); // the server's turn ends
        assert!(!is_over(), "the first node is not linked");
        for (word, value) in [(OPERATION, 1), (ARGUMENT, 0), (STATE, POSTED)] {
            unlinked[word].atomic().store(value, Relaxed);
        }
        unlinked[NEXT].atomic().store(empty.address(), Release);
        assert!(is_over());
        assert_eq!(*executed.0.borrow(), [1, 2]);
    }

    const fn rate(operations: u64, ns: u64) -> Rate {
        Rate { operations, ns }
    }

    #[test]
    fn faster_way_rests_longer_while_it_wins() {
        let mut trials = Trials::new();
        assert_eq!(trials.rests_ns(), [0, 0]);
        let [shortest, longest] = RESTS_NS;
        let (slow, fast) = (rate(99, 10), rate(100, 10));
        trials.note([fast, slow]);
        assert_eq!(trials.rests_ns(), [shortest, 0]);
        trials.note([fast, slow]);
        assert_eq!(trials.rests_ns(), [2 * shortest, 0]);
        trials.note([slow, fast]);
        assert_eq!(trials.rests_ns(), [0, shortest]);
        for _ in 0..10 {
            trials.note([slow, fast]);
        }
        assert_eq!(trials.rests_ns(), [0, longest]);
    }

    #[test]
    fn lock_is_used_if_the_server_is_not_faster() {
        let mut trials = Trials::new();
        trials.note([rate(10, 1000), rate(1, 100)]);
        assert!(!trials.server_wins, "equal rates");
        trials.note([Rate::NONE, rate(0, 1000)]);
        assert!(!trials.server_wins, "nothing to do");
        trials.note([rate(u64::MAX, 2), rate(u64::MAX - 1, 2)]);
        assert!(trials.server_wins);
    }
}
