//! A part of a composition: a fabric for one of its algorithms.

use std::future::Future;

use consort_fabric::{
    Channel, Counters, Fabric, Local, Messages, Op, Place, Rank, Rendezvous, Rma, Signal, Span,
    Step, VendorCall, VendorCollectives,
};

/// How a part sees the call: who takes part, and where its buffers are.
#[doc(hidden)]
pub trait View {
    /// The calling PE's rank in the part, by that in the team.
    fn rank(&self, in_team: Rank) -> Rank;
    /// The number of PEs of the part, by that of the team.
    fn size(&self, of_team: u32) -> u32;
    /// A PE's rank in the team, by that in the part.
    fn peer(&self, rank: Rank) -> Rank;
    /// The caller's span for a span of the part, on the calling PE.
    fn own(&self, span: Span) -> Span;
    /// The same on a peer, by its rank in the part.
    fn of(&self, peer: Rank, span: Span) -> Span;
    /// Whether those who take part are the first PEs of the nodes, where `Capabilities::vendor` of
    /// the part says that the fabric has collectives for them.
    const ARE_LEADERS: bool;
}

/// The fabric for a part of a call, as it sees the call.
#[doc(hidden)]
pub struct Part<'f, F, V> {
    f: &'f F,
    view: V,
}

impl<'f, F: Fabric, V: View> Part<'f, F, V> {
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
/// the intermediate result, a place in the caller's target. If several parts each have a place in
/// the target and share the source, each of them is like a first part.
pub(crate) struct InTurn<const IS_SECOND: bool> {
    /// The offset of the place on this PE, its offset on PE 0, and the distance between those of
    /// successive PEs.
    own: usize,
    first: usize,
    apart: usize,
}

impl<const IS_SECOND: bool> InTurn<IS_SECOND> {
    /// A part whose place begins at `first + r * apart` on PE `r`; the calling PE is `rank`.
    #[inline(always)]
    pub(crate) fn new(rank: Rank, first: usize, apart: usize) -> Self {
        Self { own: first + rank.index() * apart, first, apart }
    }

    /// The caller's span for a span of the part whose place begins at `place`.
    #[inline(always)]
    fn at(place: usize, span: Span) -> Span {
        match span.place {
            Place::Source if IS_SECOND => Span::target(place + span.at, span.bytes),
            Place::Target if !IS_SECOND => Span::target(place + span.at, span.bytes),
            _ => span,
        }
    }
}

impl<const IS_SECOND: bool> View for InTurn<IS_SECOND> {
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

impl<F: Fabric, V: View> Local for Part<'_, F, V> {
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
        // The block to be gathered is in its place already.
        if target == source { Ok(()) } else { self.f.copy(target, source).await }
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        self.f.combine(self.own(target), self.own(left), self.own(right))
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        self.own(self.f.vector_block(place, self.peer(Rank(index)).0))
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        self.f.yield_now()
    }
}

impl<F: Fabric, V: View> Messages for Part<'_, F, V> {
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

impl<F: Fabric, V: View> Rma for Part<'_, F, V> {
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

impl<F: Fabric, V: View> Rendezvous for Part<'_, F, V> {
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.f.expose(self.peer(to), exposure, self.own(span))
    }

    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<F::Remote>> {
        self.f.attach(self.peer(from), exposure)
    }

    fn check_length(&self, remote: &F::Remote, bytes: usize) -> impl Future<Output = Op> {
        self.f.check_length(remote, bytes)
    }

    fn detach(&self, remote: F::Remote) -> impl Future<Output = Op> {
        self.f.detach(remote)
    }

    fn await_detached(&self) -> impl Future<Output = Op> {
        self.f.await_detached()
    }
}

impl<F: Fabric, V: View> Counters for Part<'_, F, V> {
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.f.count(self.peer(at), counter, by)
    }

    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        self.f.arrive(self.peer(at), counter, pes)
    }
}

impl<F: Fabric, V: View> VendorCollectives for Part<'_, F, V> {
    fn vendor(&self, call: VendorCall) -> impl Future<Output = Op> {
        let (source, target) = (self.own(call.source), self.own(call.target));
        self.f.vendor(VendorCall { source, target, leaders: V::ARE_LEADERS, ..call })
    }
}
