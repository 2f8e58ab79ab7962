//! Memory of far PEs, and operations on it. They are not complete when they return.

#![expect(unsafe_code, reason = "receives bytes into memory that the call keeps valid")]

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll},
};

use consort_fabric::{Op, Poisoned, Rank, VendorCall, VendorCollectives};

use super::{
    remote::{Remote, RemoteKind},
    view::{CallView, UNDER_WAY, UNSENT},
};
use crate::{
    far::{
        packet::{Exposure, FarMemory},
        pe::{FarGet, FarPe, FarTransfer, PendingReplies},
        transport::TransportError,
    },
    launch::{failure::Failure, job::Job},
    memory::{extent::SharedExtent, region::Memory},
};

impl CallView<'_> {
    /// Exposes memory to a peer if the peer is far. Returns whether it is.
    pub(super) fn expose_far(
        &self,
        to: Rank,
        number: u32,
        memory: Memory,
        kind: RemoteKind,
    ) -> bool {
        let Some(far) = self.job.far_to(self.group.in_world(to)) else { return false };
        let exposure = self.exposure(self.rank, to, number);
        // The owner and near peers may access a private target at the same time.
        let target = &self.operands.target;
        let shared = match kind {
            RemoteKind::Target => Some(SharedExtent::exposed(target.at, target.bytes)),
            _ => memory.shared,
        };
        far.expose(exposure, Memory { shared, ..memory }, kind != RemoteKind::Source);
        true
    }

    fn exposure(&self, owner: Rank, peer: Rank, number: u32) -> Exposure {
        Exposure { group: self.group.number(), owner, peer, position: self.position, number }
    }

    /// Returns the owner of far memory, and the memory's name and offset there. `at` is the offset
    /// in the remote buffer.
    fn place_of(&self, remote: &Remote, at: usize, bytes: usize) -> (FarPe<'_>, FarMemory, usize) {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= remote.bytes);
        assert!(inside, "a copy must lie in the exposed buffer");
        let place = match remote.kind {
            RemoteKind::FarHeap => FarMemory::Heap { pe: self.group.in_world(remote.owner) },
            _ => FarMemory::Exposed {
                exposure: self.exposure(remote.owner, self.rank, remote.exposure),
            },
        };
        (self.owner_of(remote), place, remote.at.addr() + at)
    }

    fn owner_of(&self, remote: &Remote) -> FarPe<'_> {
        let owner = self.job.far_to(self.group.in_world(remote.owner));
        owner.expect("the owner of far memory is far")
    }

    fn begun<'f>(&'f self, pending: Pending<'f>) -> RmaFuture<'f> {
        let (last_look, _under_way) = (LastLook::default(), UnderWay::count(self));
        RmaFuture::Far(FarFuture { call: self, pending, last_look, _under_way })
    }

    #[cold]
    pub(super) fn put_far(&self, remote: &Remote, at: usize, source: Memory) -> RmaFuture<'_> {
        let (owner, place, at) = self.place_of(remote, at, source.bytes);
        self.marks.store(self.marks.load(Relaxed) | UNSENT, Relaxed);
        // SAFETY: the source belongs to the call until the put has ended or is dropped.
        match unsafe { owner.put(place, at, source) } {
            Some(transfer) => self.begun(Pending::Transfer(transfer)),
            None => RmaFuture::Now(Ok(())),
        }
    }

    #[cold]
    pub(super) fn get_far(
        &self,
        remote: &Remote,
        at: usize,
        target: Memory,
        left: Option<Memory>,
    ) -> RmaFuture<'_> {
        let (owner, place, at) = self.place_of(remote, at, target.bytes);
        // SAFETY: the target belongs to the call until the get has ended or is dropped.
        let get = unsafe { owner.get(place, at, target, left.is_some()) };
        self.begin_receive();
        self.begun(Pending::Get(get, left))
    }

    /// Begins a collective of the transport.
    #[cold]
    pub(super) fn vendor_far(&self, call: VendorCall) -> RmaFuture<'_> {
        let (source, target) = (self.resolve(call.source), self.resolve_writable(call.target));
        // SAFETY: both belong to the call until the collective has ended or is dropped.
        match unsafe { self.job.begin_collective(&call, source, target) } {
            Ok(transfer) => self.begun(Pending::Transfer(transfer)),
            Err(TransportError(reason)) => {
                let rank = self.group.in_world(self.rank);
                self.job.poison(&Failure::Pe { rank, reason });
                RmaFuture::Now(Err(Poisoned))
            }
        }
    }

    /// Returns a future that is ready when far PEs have completed everything that was put.
    #[cold]
    pub(super) fn fence_far(&self) -> RmaFuture<'_> {
        self.begun(Pending::Fence(self.job.fence_writes()))
    }

    #[cold]
    pub(super) fn detach_far(&self, remote: &Remote) {
        self.owner_of(remote).detach(self.group.number(), remote.owner, remote.position);
        self.marks.store(self.marks.load(Relaxed) | UNSENT, Relaxed);
    }
}

impl VendorCollectives for CallView<'_> {
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        self.vendor_far(call)
    }
}

/// A copy to or from a peer's memory. It is complete at once if the peer is near.
pub(super) enum RmaFuture<'f> {
    Now(Op),
    Far(FarFuture<'f>),
}

/// The number of this process's last look when a wait was polled; `None` before the wait's first
/// poll.
#[derive(Default)]
struct LastLook(Option<u64>);

impl LastLook {
    /// Returns whether the wait has not been polled yet.
    fn is_new(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether this is the first poll, or the process has looked since the last one.
    fn is_worth_a_test(&mut self, job: &Job) -> bool {
        let last = Some(job.last_look());
        std::mem::replace(&mut self.0, last) != last
    }
}

/// An operation that has begun.
enum Pending<'f> {
    /// A get. If there is a left operand, the call's operator combines it with the bytes.
    Get(FarGet<'f>, Option<Memory>),
    Transfer(FarTransfer<'f>),
    Fence(PendingReplies<'f>),
}

/// A future that is ready when an operation on far PEs is complete. Dropping it waits until the
/// operation no longer accesses the call's memory. A future that is forgotten stays counted, and
/// the call notices it at its end. The fields are dropped in this order.
pub(super) struct FarFuture<'f> {
    call: &'f CallView<'f>,
    pending: Pending<'f>,
    last_look: LastLook,
    _under_way: UnderWay<'f>,
}

/// Counts as an operation of a call until this is dropped.
struct UnderWay<'f>(&'f CallView<'f>);

impl<'f> UnderWay<'f> {
    fn count(call: &'f CallView<'f>) -> Self {
        call.marks.fetch_add(UNDER_WAY, Relaxed);
        Self(call)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.marks.fetch_sub(UNDER_WAY, Relaxed);
    }
}

// SAFETY: as for `Receive` in `waits`: the memory belongs to the call, and a target is not exposed
// while a receive is counted.
unsafe impl Send for FarFuture<'_> {}

impl Future for RmaFuture<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        match &mut *self {
            Self::Now(done) => Poll::Ready(*done),
            Self::Far(future) => future.poll_far(),
        }
    }
}

impl FarFuture<'_> {
    #[cold]
    fn poll_far(&mut self) -> Poll<Op> {
        let is_new = self.last_look.is_new();
        if self.last_look.is_worth_a_test(self.call.job) && self.is_complete() {
            return Poll::Ready(Ok(()));
        }
        self.call.pending_unwatched(is_new)
    }

    /// Completes the operation if everything that it needs has arrived.
    fn is_complete(&mut self) -> bool {
        match &mut self.pending {
            Pending::Get(get, left) => {
                let Some(bytes) = get.poll() else { return false };
                match *left {
                    Some(left) => self.call.combine_now(get.target(), left, bytes),
                    None => get.copy(bytes),
                }
                self.call.end_far_receive();
                true
            }
            Pending::Transfer(transfer) => transfer.has_ended(),
            Pending::Fence(replies) => replies.are_all_there(),
        }
    }
}
