//! Memory of far PEs. Packets carry what is copied to and from it.

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
    view::{CallView, UNSENT},
};
use crate::{
    far::{
        dispatch::{append_memory, memory_of},
        link::Far,
        packet::{Exposure, FarMemory, Packet, Request},
        transfers::{LONG_GET, LONG_PUT, PendingGet},
        transport::{Transfer, TransportError},
    },
    launch::failure::Failure,
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

    /// Returns the link to the owner of far memory, the owner's rank in the world, and the memory's
    /// name there.
    fn place_of(&self, remote: &Remote) -> (&Far, Rank, FarMemory) {
        let far = self.job.far().expect("a job with far memory has a way to it");
        let pe = self.group.in_world(remote.owner);
        let place = match remote.kind {
            RemoteKind::FarHeap => FarMemory::Heap { pe },
            _ => FarMemory::Exposed {
                exposure: self.exposure(remote.owner, self.rank, remote.exposure),
            },
        };
        (far, pe, place)
    }

    /// Returns the offset in the far memory of byte `at` of the remote buffer.
    fn offset(remote: &Remote, at: usize, bytes: usize) -> usize {
        let inside = at.checked_add(bytes).is_some_and(|end| end <= remote.bytes);
        assert!(inside, "a copy must lie in the exposed buffer");
        remote.at.addr() + at
    }

    #[cold]
    pub(super) fn put_far(&self, remote: &Remote, at: usize, source: Memory) -> RmaFuture<'_> {
        let at = Self::offset(remote, at, source.bytes);
        let (far, pe, place) = self.place_of(remote);
        self.exposed.store(self.exposed.load(Relaxed) | UNSENT, Relaxed);
        if source.bytes < LONG_PUT {
            let packet = Packet::Put { place, at, bytes: source.bytes };
            far.write(pe, &packet, |frame| append_memory(frame, source));
            return RmaFuture::Now(Ok(()));
        }
        // SAFETY: the source belongs to the call until the put has ended or is dropped.
        let transfer = unsafe { far.begin_put(pe, (place, at), source) };
        RmaFuture::Transfer(FarTransfer {
            call: self,
            far,
            transfer,
            last_look: LastLook::default(),
        })
    }

    #[cold]
    pub(super) fn get_far(
        &self,
        remote: &Remote,
        at: usize,
        target: Memory,
        left: Option<Memory>,
    ) -> RmaFuture<'_> {
        let at = Self::offset(remote, at, target.bytes);
        let (far, pe, place) = self.place_of(remote);
        let bytes = target.bytes;
        let source = if bytes < LONG_GET {
            GetSource::Reply(far.request(pe, Request::Get { place, at, bytes }, |_| ()))
        } else {
            let mut kept = Vec::new();
            let into = match left {
                Some(_) => {
                    kept = far.buffer(bytes.div_ceil(8));
                    Memory::private(kept.as_mut_ptr().cast(), bytes)
                }
                None => target,
            };
            // SAFETY: the target belongs to the call until the get has ended or is dropped, and
            // `kept` belongs to the get.
            GetSource::Pulled(unsafe { far.begin_get(pe, (place, at), into) }, kept)
        };
        self.begin_receive();
        RmaFuture::Get(FarGet {
            call: self,
            far,
            source,
            target,
            left,
            last_look: LastLook::default(),
        })
    }

    /// Begins a collective of the transport.
    #[cold]
    pub(super) fn vendor_far(&self, call: VendorCall) -> RmaFuture<'_> {
        let far = self.job.far().expect("only a transport provides collectives");
        let (source, target) = (self.resolve(call.source), self.resolve_writable(call.target));
        // SAFETY: both belong to the call until the collective has ended or is dropped.
        match unsafe { far.begin_collective(&call, source, target) } {
            Ok(transfer) => RmaFuture::Transfer(FarTransfer {
                call: self,
                far,
                transfer: Some(transfer),
                last_look: LastLook::default(),
            }),
            Err(TransportError(reason)) => {
                let rank = self.group.in_world(self.rank);
                self.job.poison(&Failure::Pe { rank, reason });
                RmaFuture::Now(Err(Poisoned))
            }
        }
    }

    /// Returns a future that is ready when far PEs have completed everything that was put, if
    /// anything was.
    #[cold]
    pub(super) fn fence_far(&self) -> RmaFuture<'_> {
        match self.job.far() {
            Some(far) => RmaFuture::Fence(FarFence {
                call: self,
                far,
                ids: far.request_fences(),
                last_look: LastLook::default(),
            }),
            None => RmaFuture::Now(Ok(())),
        }
    }

    #[cold]
    pub(super) fn detach_far(&self, remote: &Remote) {
        let (far, pe, _) = self.place_of(remote);
        let (group, owner, position) = (self.group.number(), remote.owner, remote.position);
        far.send(pe, &Packet::Detached { group, owner, position }, |_| ());
        self.exposed.store(self.exposed.load(Relaxed) | UNSENT, Relaxed);
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
    Get(FarGet<'f>),
    Transfer(FarTransfer<'f>),
    Fence(FarFence<'f>),
}

/// The last look of this process whose outcome a wait has seen; `None` before the wait's first
/// poll.
#[derive(Default)]
struct LastLook(Option<u64>);

impl LastLook {
    /// Returns whether the wait has not been polled yet.
    fn is_new(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether this is the first poll, or the process has looked since.
    fn is_worth_a_test(&mut self, far: &Far) -> bool {
        let last = Some(far.last_look());
        std::mem::replace(&mut self.0, last) != last
    }
}

/// The source of a get's bytes.
enum GetSource {
    /// The reply to a request.
    Reply(u64),
    /// A transfer, into the target or into the kept buffer. `None` after it has ended.
    Pulled(Option<PendingGet>, Vec<u64>),
}

/// A future that is ready when bytes of a far PE have arrived and been copied or combined.
pub(super) struct FarGet<'f> {
    call: &'f CallView<'f>,
    far: &'f Far,
    source: GetSource,
    target: Memory,
    left: Option<Memory>,
    last_look: LastLook,
}

/// A future that is ready when a transfer is done: bytes for a far PE have left, or a collective of
/// the transport has ended.
pub(super) struct FarTransfer<'f> {
    call: &'f CallView<'f>,
    far: &'f Far,
    /// `None` after it has ended.
    transfer: Option<Transfer>,
    last_look: LastLook,
}

// SAFETY: as for `Receive` in `waits`: the memory belongs to the call, and a target is not exposed
// while a receive is counted.
unsafe impl Send for FarGet<'_> {}

/// A future that is ready when far PEs have replied.
pub(super) struct FarFence<'f> {
    call: &'f CallView<'f>,
    far: &'f Far,
    ids: Vec<u64>,
    last_look: LastLook,
}

impl Future for RmaFuture<'_> {
    type Output = Op;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Op> {
        match &mut *self {
            Self::Now(done) => Poll::Ready(*done),
            Self::Get(get) => get.poll_far(),
            Self::Transfer(transfer) => transfer.poll_far(),
            Self::Fence(fence) => fence.poll_far(),
        }
    }
}

impl FarGet<'_> {
    #[cold]
    fn poll_far(&mut self) -> Poll<Op> {
        let is_new = self.last_look.is_new();
        if !self.last_look.is_worth_a_test(self.far) {
            return self.call.pending_unwatched(is_new);
        }
        let bytes = self.target.bytes;
        let reply;
        let data = match &mut self.source {
            GetSource::Reply(id) => match self.far.take_reply(*id) {
                Some(words) => {
                    reply = words;
                    memory_of(&reply, bytes)
                }
                None => return self.call.pending_unwatched(is_new),
            },
            GetSource::Pulled(get, kept) => {
                let arrived = get.and_then(|get| self.far.poll_get(&get));
                if arrived.is_some() {
                    *get = None;
                }
                if arrived != Some(true) {
                    return self.call.pending_unwatched(is_new);
                }
                if self.left.is_some() { memory_of(kept, bytes) } else { Some(self.target) }
            }
        };
        // If there is no data, the call has failed in another process, which will notify this
        // process.
        let Some(data) = data else { return self.call.pending_unwatched(is_new) };
        match self.left {
            Some(left) => self.call.combine_now(self.target, left, data),
            None if data.at == self.target.at => {} // it was pulled into the target
            None => self.target.copy_from(data),
        }
        self.call.end_far_receive();
        Poll::Ready(Ok(()))
    }
}

impl Drop for FarGet<'_> {
    fn drop(&mut self) {
        match &self.source {
            GetSource::Reply(id) => self.far.forget_request(*id),
            GetSource::Pulled(Some(get), _) => self.call.job.finish_get(self.far, get),
            GetSource::Pulled(None, _) => {}
        }
        if let GetSource::Pulled(_, kept) = &mut self.source {
            self.far.recycle(std::mem::take(kept));
        }
    }
}

impl FarTransfer<'_> {
    #[cold]
    fn poll_far(&mut self) -> Poll<Op> {
        let is_new = self.last_look.is_new();
        let is_done = |transfer| self.far.poll_transfer(transfer);
        if !self.last_look.is_worth_a_test(self.far) || !self.transfer.is_some_and(is_done) {
            return self.call.pending_unwatched(is_new);
        }
        self.transfer = None;
        Poll::Ready(Ok(()))
    }
}

impl Drop for FarTransfer<'_> {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer {
            self.call.job.finish_transfer(self.far, transfer);
        }
    }
}

impl FarFence<'_> {
    #[cold]
    fn poll_far(&mut self) -> Poll<Op> {
        let is_new = self.last_look.is_new();
        if self.last_look.is_worth_a_test(self.far) {
            self.ids.retain(|&id| self.far.take_reply(id).is_none());
        }
        if self.ids.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.call.pending_unwatched(is_new)
    }
}

impl Drop for FarFence<'_> {
    fn drop(&mut self) {
        self.ids.iter().for_each(|&id| self.far.forget_request(id));
    }
}
