//! Broadcasts that only their source calls: the others are handed the messages.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    rc::Rc,
    task::{Context, Waker},
};

use consort_collectives::async_broadcast::{OcBcastAsync, Turns};
use consort_fabric::{Op, Rank};
use consort_native::{Failure, NotificationBuffers};

use crate::{Error, Result, Team};

/// Children of a PE, at most, unless said otherwise: few enough for one to serve.
const K: u32 = 7;

/// Bytes of a chunk: one that stays in a core's own caches.
const CHUNK_BYTES: usize = 32 << 10;

type Protocol = OcBcastAsync<NotificationBuffers>;

/// One PE's part in broadcasts that only their source calls; from [`Team::async_broadcasts`].
///
/// Any PE may broadcast at any time, and several at once. Each message is handed to the handler of
/// every other PE exactly once, those of one source in the order in which it sent them; of
/// different sources, in any order, which may differ from PE to PE.
///
/// Nothing interrupts a PE: its handler is called inside its own calls of `broadcast`, `poll`,
/// `wait` and `close`. Messages are taken and passed on to others also while it waits in any other
/// call of the library, but not while it computes: then its peers' broadcasts may wait for it.
/// Messages that have come and were not handed over are kept, however many they are.
///
/// End with [`AsyncBroadcasts::close`]. A PE that drops it otherwise fails the job, since others
/// may wait for it; so does a handler that panics in `close`. Elsewhere the panic of a handler
/// loses its message alone, if the program catches it.
///
/// ```
/// use consort::{Pes, Rank};
///
/// let received = Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let mut received = Vec::new();
///     let handler = |source, data: &[u8]| received.push((source, data.to_vec()));
///     let mut broadcasts = world.async_broadcasts(handler)?;
///     if world.rank() == Rank(1) {
///         broadcasts.broadcast(b"found it")?;
///     }
///     broadcasts.close()?; // hands over what still comes
///     Ok(received)
/// })?;
/// assert_eq!(received[0].1, [(Rank(1), b"found it".to_vec())]);
/// assert_eq!(received[1].1, []);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct AsyncBroadcasts<'p, H: FnMut(Rank, &[u8])> {
    team: Team<'p>,
    protocol: Rc<RefCell<Protocol>>,
    /// What the endpoint does for it while the PE waits elsewhere; kept for as long.
    _callback: Rc<dyn Fn()>,
    handler: H,
    is_closed: bool,
}

/// # Asynchronous broadcasts
impl<'p> Team<'p> {
    /// Begins to take part in broadcasts that only their source calls. `handler` is called with
    /// the source and the bytes of each message of the others. Collective; uses some 32 kB of each
    /// PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not so much left, and see [`Team`].
    pub fn async_broadcasts<H: FnMut(Rank, &[u8])>(
        &self,
        handler: H,
    ) -> Result<AsyncBroadcasts<'p, H>> {
        self.async_broadcasts_by(K, handler)
    }

    /// The same, with trees in which a PE passes a message on to `k` others at most, from 1 to the
    /// team's size less one (what lies outside is taken for the nearest). All PEs pass the same.
    ///
    /// # Errors
    /// As [`Team::async_broadcasts`].
    pub fn async_broadcasts_by<H: FnMut(Rank, &[u8])>(
        &self,
        k: u32,
        handler: H,
    ) -> Result<AsyncBroadcasts<'p, H>> {
        let name = format!("async_broadcasts with k = {k}");
        let part =
            self.allocate(&name, |endpoint| NotificationBuffers::allocate(endpoint, CHUNK_BYTES))?;
        let k = k.clamp(1, (self.size() - 1).max(1));
        let protocol = Rc::new(RefCell::new(OcBcastAsync::new(part, k, CHUNK_BYTES, Turns::Fair)));
        let callback: Rc<dyn Fn()> = Rc::new({
            let protocol = Rc::clone(&protocol);
            // It is borrowed where the PE waits for these very broadcasts. That the job has failed
            // is told by the call that waits.
            move || drop(protocol.try_borrow_mut().map(|mut protocol| at_once(protocol.poll())))
        });
        self.state.endpoint.add_progress_callback(&callback);
        Ok(AsyncBroadcasts {
            team: *self,
            protocol,
            _callback: callback,
            handler,
            is_closed: false,
        })
    }
}

/// Polls a future that never waits.
fn at_once<T>(future: impl Future<Output = Op<T>>) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready(), "polling waits for nothing");
}

impl<H: FnMut(Rank, &[u8])> AsyncBroadcasts<'_, H> {
    /// Sends `data`, of any length, to all other PEs, and hands over what has come. Returns when
    /// `data` may be changed, which is before all have it; it waits until the PEs to whom this one
    /// passes messages on have taken what they got before.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn broadcast(&mut self, data: &[u8]) -> Result<()> {
        self.run(async |protocol| protocol.broadcast(data).await)
    }

    /// Hands over what has come, and passes on what is to be passed on. Waits for nothing.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn poll(&mut self) -> Result<()> {
        self.run(async |protocol| protocol.poll().await)
    }

    /// Waits until something has come, and hands it over; `false` once all other PEs have closed
    /// and nothing more can come.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn wait(&mut self) -> Result<bool> {
        let mut came = false;
        self.run(async |protocol| {
            while !protocol.has_delivered() && protocol.gone() < protocol.peers() {
                protocol.serve().await?;
            }
            came = protocol.has_delivered();
            Ok(())
        })?;
        Ok(came)
    }

    /// Waits until all PEs close, and hands over all that still comes. Collective. A PE that only
    /// listens may close at once.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn close(mut self) -> Result<()> {
        let closed = catch_unwind(AssertUnwindSafe(|| {
            // A call like any other, so that a PE that calls something else gets an error.
            let all_close = self.team.start_named_barrier("async_broadcasts.close()")?;
            let number = Some(all_close.number());
            self.run_in(number, async |protocol| protocol.leave().await)?;
            while !self.protocol.borrow().is_over() {
                self.run_in(number, async |protocol| protocol.serve().await)?;
            }
            all_close.wait()
        }));
        let closed = closed.unwrap_or_else(|panic| {
            // The handler's: its PE is in a call that others wait in.
            let endpoint = &self.team.state.endpoint;
            endpoint.job().fail(endpoint.rank_in_world(), &panic);
            resume_unwind(panic)
        });
        self.is_closed = closed.is_ok();
        closed
    }

    /// Does something, and hands over what has come by then.
    fn run(&mut self, operation: impl AsyncFnOnce(&mut Protocol) -> Op) -> Result<()> {
        self.run_in(None, operation)
    }

    /// The same, in a call of this number, if it is one.
    fn run_in(
        &mut self,
        number: Option<u64>,
        operation: impl AsyncFnOnce(&mut Protocol) -> Op,
    ) -> Result<()> {
        let endpoint = &self.team.state.endpoint;
        let inside = self.team.state.enter()?;
        let mut protocol: RefMut<'_, Protocol> = self.protocol.borrow_mut();
        let done = endpoint.block_on_notifications(number, operation(&mut protocol));
        drop(protocol);
        drop(inside);
        done.map_err(|_| Error::of_job(endpoint.job()))?;
        // The protocol is not borrowed while the handler runs: it may call the library, which may
        // wait.
        loop {
            let delivered = self.protocol.borrow_mut().next_delivered();
            let Some((source, data)) = delivered else { return Ok(()) };
            (self.handler)(source, &data);
            self.protocol.borrow_mut().reuse(data);
        }
    }
}

impl<H: FnMut(Rank, &[u8])> Drop for AsyncBroadcasts<'_, H> {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        let state = self.team.state;
        if std::thread::panicking() {
            state.abandon();
        } else if !state.endpoint.job().is_poisoned() {
            let rank = state.endpoint.rank_in_world();
            let reason = "it dropped its asynchronous broadcasts without closing them".to_owned();
            state.endpoint.job().poison(&Failure::Pe { rank, reason });
            state.abandon(); // a PE that makes no more calls gets the error at its end
        }
    }
}

impl<H: FnMut(Rank, &[u8])> fmt::Debug for AsyncBroadcasts<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.team.rank();
        f.debug_struct("AsyncBroadcasts").field("rank", &rank).finish_non_exhaustive()
    }
}
