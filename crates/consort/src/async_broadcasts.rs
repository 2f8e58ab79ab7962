//! Asynchronous broadcasts: only the source makes a call; handlers on the other PEs get the
//! messages. [`Team::async_broadcasts`] joins them.

use std::{
    cell::{RefCell, RefMut},
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::pin,
    rc::Rc,
    task::{Context, Waker},
};

use consort_collectives::async_broadcast::OcBcastAsync;
pub use consort_collectives::async_broadcast::Variant as AsyncVariant;
use consort_fabric::{Op, Rank};
use consort_native::{Failure, NotificationBuffers};

use crate::{Error, Result, Team, error::CallError};

/// The default limit on the children of a PE in a tree: few enough for one PE to serve.
const K: usize = 7;

/// Bytes of a chunk: small enough for a core's private caches.
const CHUNK_BYTES: usize = 32 << 10;

type Protocol = OcBcastAsync<NotificationBuffers>;

/// One PE's part in asynchronous broadcasts, in which only the source makes a call; from
/// [`Team::async_broadcasts`].
///
/// Any PE may broadcast at any time, and several PEs at once. The handler of every other PE gets
/// each message exactly once. Messages of one source arrive in the order in which it sent them.
/// Messages of different sources arrive in any order, which may differ from PE to PE.
///
/// Nothing interrupts a PE, because a signal to a thread takes hundreds of times as long as reading
/// a cache line, and its handler may call next to nothing (`consort-lab reproduce T4` times both).
/// The handler runs inside the PE's own calls of `broadcast`, `poll`, `wait` and `close`. While the
/// PE waits in any other call of the library, it receives and forwards messages, but calls no
/// handler. While the PE computes, it does neither, and its peers' broadcasts may wait for it.
/// Messages that were received but not yet passed to the handler are kept, without a limit on their
/// number.
///
/// End with [`AsyncBroadcasts::close`]. A PE that drops this value without closing it fails the
/// job, because others may wait for it. So does a handler that panics in `close`. If a handler
/// panics in any other call and the program catches the panic, only that message is lost.
///
/// ```
/// use consort::{Job, Rank};
///
/// let received = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let mut received = Vec::new();
///     let handler = |source, data: &[u8]| received.push((source, data.to_vec()));
///     let mut broadcasts = world.async_broadcasts(handler)?;
///     if world.rank() == Rank(1) {
///         broadcasts.broadcast(b"found it")?;
///     }
///     broadcasts.close()?; // delivers the remaining messages
///     Ok(received)
/// })?;
/// assert_eq!(received[0], [(Rank(1), b"found it".to_vec())]);
/// assert_eq!(received[1], []);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct AsyncBroadcasts<H: FnMut(Rank, &[u8])> {
    team: Team,
    protocol: Rc<RefCell<Protocol>>,
    /// The progress callback, which the endpoint runs while the PE waits elsewhere. The endpoint
    /// does not keep it alive; this does.
    _callback: Rc<dyn Fn()>,
    handler: H,
    is_closed: bool,
}

/// # Asynchronous broadcasts
impl Team {
    /// Joins the team's asynchronous broadcasts. Calls `handler` with the source and the bytes of
    /// each message of another PE. Collective; uses some 32 kB of each PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when less than that is left; [`CallError::NeedsSharedMemory`] when PEs share
    /// no memory; and see [`Team`].
    #[track_caller]
    pub fn async_broadcasts<H: FnMut(Rank, &[u8])>(
        &self,
        handler: H,
    ) -> Result<AsyncBroadcasts<H>> {
        self.async_broadcasts_by(K, AsyncVariant::Fair, handler)
    }

    /// As [`Team::async_broadcasts`], with trees in which a PE forwards messages to at most `k`
    /// children. `k` is from 1 to the team's size minus one; other values are clamped. `variant` is
    /// the order in which a PE does its work. With the published order, a source waits forever
    /// while others keep broadcasting, and received messages fill the memory. All PEs must pass the
    /// same values.
    ///
    /// # Errors
    /// As [`Team::async_broadcasts`].
    #[track_caller]
    pub fn async_broadcasts_by<H: FnMut(Rank, &[u8])>(
        &self,
        k: usize,
        variant: AsyncVariant,
        handler: H,
    ) -> Result<AsyncBroadcasts<H>> {
        self.state.ensure_alive()?;
        if self.state.choices.borrow().algorithms().is_between() {
            return Err(CallError::NeedsSharedMemory(
                "asynchronous broadcasts need PEs that share memory",
            )
            .into());
        }
        let name = match variant {
            AsyncVariant::Fair => format!("async_broadcasts with k = {k}"),
            AsyncVariant::Published => format!("async_broadcasts with k = {k} as published"),
        };
        let part =
            self.allocate(&name, |endpoint| NotificationBuffers::allocate(endpoint, CHUNK_BYTES))?;
        let most = (self.pes() - 1).max(1);
        let k = u32::try_from(k).map_or(most, |k| k.clamp(1, most));
        let protocol = Rc::new(RefCell::new(OcBcastAsync::new(part, k, CHUNK_BYTES, variant)));
        let callback: Rc<dyn Fn()> = Rc::new({
            let protocol = Rc::clone(&protocol);
            // The protocol is already borrowed while the PE waits for these same broadcasts. An
            // error is dropped: it means that the job has failed, and the waiting call returns that
            // error.
            move || drop(protocol.try_borrow_mut().map(|mut protocol| at_once(protocol.poll())))
        });
        self.state.endpoint.add_progress_callback(&callback);
        Ok(AsyncBroadcasts {
            team: self.clone(),
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

impl<H: FnMut(Rank, &[u8])> AsyncBroadcasts<H> {
    /// Sends `data`, of any length, to all other PEs, and calls the handler with the messages that
    /// were received. Returns when `data` may be changed, possibly before the others have all of
    /// it. Waits until this PE's children in the tree have taken all earlier chunks.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn broadcast(&mut self, data: &[u8]) -> Result<()> {
        self.run(async |protocol| protocol.broadcast(data).await)
    }

    /// Receives and forwards messages, and calls the handler with those received. Does not wait.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn poll(&mut self) -> Result<()> {
        self.run(async |protocol| protocol.poll().await)
    }

    /// Waits until a message is received, and calls the handler with it. Returns `false` once all
    /// other PEs have closed and no message can follow.
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

    /// Waits until all PEs close, and calls the handler with all messages that are still received.
    /// Collective. A PE that sends nothing may close at once.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    #[track_caller]
    pub fn close(mut self) -> Result<()> {
        let site = Location::caller();
        let closed = catch_unwind(AssertUnwindSafe(|| {
            // A regular call, so that a PE that makes a different call gets an error.
            let all_close = self.team.start_named_barrier("async_broadcasts.close()", site)?;
            let number = Some(all_close.number());
            self.run_in(number, async |protocol| protocol.leave().await)?;
            while !self.protocol.borrow().is_over() {
                self.run_in(number, async |protocol| protocol.serve().await)?;
            }
            all_close.wait()
        }));
        let closed = closed.unwrap_or_else(|panic| {
            // The panic is the handler's. Other PEs wait for this one in `close`, so the job fails.
            let endpoint = &self.team.state.endpoint;
            endpoint.job().fail(endpoint.rank_in_world(), &panic);
            resume_unwind(panic)
        });
        self.is_closed = closed.is_ok();
        closed
    }

    /// Runs an operation of the protocol, then calls the handler with the messages received so far.
    fn run(&mut self, operation: impl AsyncFnOnce(&mut Protocol) -> Op) -> Result<()> {
        self.run_in(None, operation)
    }

    /// As `run`, while the call with this number is pending, if there is one.
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
        // The protocol is not borrowed while the handler runs: the handler may make calls of the
        // library that wait, and run the progress callback.
        loop {
            let delivered = self.protocol.borrow_mut().next_delivered();
            let Some((source, data)) = delivered else { return Ok(()) };
            (self.handler)(source, &data);
            self.protocol.borrow_mut().reuse(data);
        }
    }
}

impl<H: FnMut(Rank, &[u8])> Drop for AsyncBroadcasts<H> {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        let state = &self.team.state;
        if std::thread::panicking() {
            state.abandon();
        } else if !state.endpoint.job().is_poisoned() {
            let rank = state.endpoint.rank_in_world();
            let reason = "it dropped its asynchronous broadcasts without closing them".to_owned();
            state.endpoint.job().poison(&Failure::Pe { rank, reason });
            state.abandon(); // a PE that makes no more calls gets the error when it returns
        }
    }
}

impl<H: FnMut(Rank, &[u8])> fmt::Debug for AsyncBroadcasts<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.team.rank();
        f.debug_struct("AsyncBroadcasts").field("rank", &rank).finish_non_exhaustive()
    }
}
