//! A part of a composition: the fabric that one of its algorithms runs on.

use std::future::Future;

use consort_fabric::{
    Channel, Counters, Fabric, Local, Messages, Op, Place, Rank, Rendezvous, Rma, Signal, Span,
    Step, VendorCall, VendorCollectives,
};

/// How a part sees the call: which PEs take part, and where its buffers are.
#[doc(hidden)]
pub trait View {
    /// Returns the calling PE's rank in the part, given its rank in the team.
    fn rank(&self, in_team: Rank) -> Rank;
    /// Returns the number of PEs of the part, given that of the team.
    fn size(&self, of_team: u32) -> u32;
    /// Returns a PE's rank in the team, given its rank in the part.
    fn peer(&self, rank: Rank) -> Rank;
    /// Returns the caller's span for a span of the part, on the calling PE.
    fn own(&self, span: Span) -> Span;
    /// Returns the caller's span for a span of the part, on a peer, given its rank in the part.
    fn of(&self, peer: Rank, span: Span) -> Span;
    /// Whether the PEs of the part are the first PEs of the nodes. `Capabilities::vendor` of the
    /// part says whether the fabric has collectives for them.
    const ARE_LEADERS: bool;
}

/// The fabric for a part of a call, with the part's view of the call.
#[doc(hidden)]
pub struct PartFabric<'f, F, V> {
    f: &'f F,
    view: V,
}

impl<'f, F: Fabric, V: View> PartFabric<'f, F, V> {
    #[inline(always)]
    pub(crate) fn new(f: &'f F, view: V) -> Self {
        Self { f, view }
    }

    #[inline(always)]
    fn own(&self, span: Span) -> Span {
        self.view.own(span)
    }

    #[inline(always)]
    fn peer(&self, rank: Rank) -> Rank {
        self.view.peer(rank)
    }
}

/// All PEs, one part after the other. The target of the first part and the source of the second are
/// the intermediate result, a place in the caller's target. If several parts share the source and
/// each has its own place in the target, each of them is like a first part.
pub(crate) struct SequentialParts<const IS_SECOND: bool> {
    /// The offset of the place on this PE, its offset on PE 0, and the distance between the places
    /// of successive PEs.
    own: usize,
    first: usize,
    apart: usize,
}

impl<const IS_SECOND: bool> SequentialParts<IS_SECOND> {
    /// Returns a part whose place begins at `first + r * apart` on PE `r`; the calling PE is
    /// `rank`.
    #[inline(always)]
    pub(crate) fn new(rank: Rank, first: usize, apart: usize) -> Self {
        Self { own: first + rank.index() * apart, first, apart }
    }

    /// Returns the caller's span for a span of the part whose place begins at `place`.
    #[inline(always)]
    fn at(place: usize, span: Span) -> Span {
        match span.place {
            Place::Source if IS_SECOND => Span::target(place + span.at, span.bytes),
            Place::Target if !IS_SECOND => Span::target(place + span.at, span.bytes),
            _ => span,
        }
    }
}

impl<const IS_SECOND: bool> View for SequentialParts<IS_SECOND> {
    const ARE_LEADERS: bool = false;

    #[inline(always)]
    fn rank(&self, in_team: Rank) -> Rank {
        in_team
    }

    #[inline(always)]
    fn size(&self, of_team: u32) -> u32 {
        of_team
    }

    #[inline(always)]
    fn peer(&self, rank: Rank) -> Rank {
        rank
    }

    #[inline(always)]
    fn own(&self, span: Span) -> Span {
        Self::at(self.own, span)
    }

    #[inline(always)]
    fn of(&self, peer: Rank, span: Span) -> Span {
        Self::at(self.first + peer.index() * self.apart, span)
    }
}

impl<F: Fabric, V: View> Local for PartFabric<'_, F, V> {
    #[inline(always)]
    fn rank(&self) -> Rank {
        self.view.rank(self.f.rank())
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        self.view.size(self.f.size())
    }

    #[inline(always)]
    async fn copy(&self, target: Span, source: Span) -> Op {
        let (target, source) = (self.own(target), self.own(source));
        // The block to be gathered may already be in its place.
        if target == source { Ok(()) } else { self.f.copy(target, source).await }
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        self.f.combine(self.own(target), self.own(left), self.own(right))
    }

    fn store(&self, target: Span, bytes: &[u8]) -> impl Future<Output = Op> {
        self.f.store(self.own(target), bytes)
    }

    fn load(&self, source: Span, bytes: &mut [u8]) -> impl Future<Output = Op> {
        self.f.load(self.own(source), bytes)
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        self.own(self.f.vector_block(place, self.peer(Rank(index)).0))
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        self.f.yield_now()
    }
}

impl<F: Fabric, V: View> Messages for PartFabric<'_, F, V> {
    #[inline(always)]
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op> {
        self.f.send(self.peer(to), channel, step, self.own(source))
    }

    #[inline(always)]
    fn receive(&self, channel: Channel, step: Step, target: Span) -> impl Future<Output = Op> {
        self.f.receive(channel, step, self.own(target))
    }

    #[inline(always)]
    fn receive_combine(
        &self,
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.receive_combine(channel, step, self.own(left), self.own(target))
    }

    #[inline(always)]
    fn signal(&self, to: Rank, channel: Channel, step: Step) -> impl Future<Output = Op> {
        self.f.signal(self.peer(to), channel, step)
    }

    #[inline(always)]
    fn wait(&self, channel: Channel, step: Step) -> impl Future<Output = Op> {
        self.f.wait(channel, step)
    }

    #[inline(always)]
    fn pairwise_exchange(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Option<Span>,
        target: Option<Span>,
    ) -> impl Future<Output = Op> {
        let [own, target] = [own, target].map(|span| span.map(|span| self.own(span)));
        self.f.pairwise_exchange(self.peer(peer), channel, step, own, target)
    }

    #[inline(always)]
    fn pairwise_combine(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.pairwise_combine(self.peer(peer), channel, step, self.own(own), self.own(target))
    }
}

impl<F: Fabric, V: View> Rma for PartFabric<'_, F, V> {
    type Remote = F::Remote;

    fn reach(&self, peer: Rank, span: Span) -> F::Remote {
        self.f.reach(self.peer(peer), self.view.of(peer, span))
    }

    fn get(&self, remote: &F::Remote, at: usize, target: Span) -> impl Future<Output = Op> {
        self.f.get(remote, at, self.own(target))
    }

    fn get_combine(
        &self,
        remote: &F::Remote,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.get_combine(remote, at, self.own(left), self.own(target))
    }

    fn get_both_combine(
        &self,
        left: &F::Remote,
        right: &F::Remote,
        at: usize,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.get_both_combine(left, right, at, self.own(target))
    }

    fn put(&self, remote: &F::Remote, at: usize, source: Span) -> impl Future<Output = Op> {
        self.f.put(remote, at, self.own(source))
    }

    fn put_notify(
        &self,
        (to, remote): (Rank, &F::Remote),
        at: usize,
        source: Span,
        channel: Channel,
        step: Step,
    ) -> impl Future<Output = Op> {
        self.f.put_notify((self.peer(to), remote), at, self.own(source), channel, step)
    }

    fn put_signal(
        &self,
        remote: &F::Remote,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        self.f.put_signal(remote, at, self.own(source), word, how)
    }

    fn fence(&self) -> impl Future<Output = Op> {
        self.f.fence()
    }

    fn quiet(&self) -> impl Future<Output = Op> {
        self.f.quiet()
    }
}

impl<F: Fabric, V: View> Rendezvous for PartFabric<'_, F, V> {
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.f.expose(self.peer(to), exposure, self.own(span))
    }

    fn expose_without_wake(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.f.expose_without_wake(self.peer(to), exposure, self.own(span))
    }

    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<F::Remote>> {
        self.f.attach(self.peer(from), exposure)
    }

    fn check_length(&self, remote: &F::Remote, bytes: usize) -> impl Future<Output = Op> {
        self.f.check_length(remote, bytes)
    }

    fn check_stated_length(
        &self,
        owner: Rank,
        theirs: usize,
        own: usize,
    ) -> impl Future<Output = Op> {
        self.f.check_stated_length(self.peer(owner), theirs, own)
    }

    fn detach(&self, remote: F::Remote) -> impl Future<Output = Op> {
        self.f.detach(remote)
    }

    fn detach_without_wake(&self, remote: F::Remote) -> impl Future<Output = Op> {
        self.f.detach_without_wake(remote)
    }

    fn await_detached(&self) -> impl Future<Output = Op> {
        self.f.await_detached()
    }
}

impl<F: Fabric, V: View> Counters for PartFabric<'_, F, V> {
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.f.count(self.peer(at), counter, by)
    }

    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        self.f.arrive(self.peer(at), counter, pes)
    }
}

impl<F: Fabric, V: View> VendorCollectives for PartFabric<'_, F, V> {
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        let (source, target) = (self.own(call.source), self.own(call.target));
        self.f.vendor(VendorCall { source, target, leaders: V::ARE_LEADERS, ..call })
    }
}
