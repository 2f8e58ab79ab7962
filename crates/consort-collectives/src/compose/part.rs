//! A part of a composition: a fabric for one of its algorithms.

use std::future::Future;

use consort_fabric::{
    Channel, Counters, Fabric, Local, Messages, Op, Place, Rank, Rendezvous, Rma, Signal, Span,
    Step,
};

/// One part's view of the call. The target of the first part and the source of the second are the
/// intermediate result, a place in the caller's target. If several parts each have a place in the
/// target and share the source, each of them is like a first part.
pub(crate) struct Part<'f, F, const IS_SECOND: bool> {
    f: &'f F,
    /// The offset of the place on this PE, its offset on PE 0, and the distance between those of
    /// successive PEs.
    own: usize,
    first: usize,
    apart: usize,
}

impl<'f, F: Fabric, const IS_SECOND: bool> Part<'f, F, IS_SECOND> {
    /// The view of a part whose place begins at `first + r * apart` on PE `r`.
    #[inline(always)]
    pub(crate) fn new(f: &'f F, first: usize, apart: usize) -> Self {
        Self { f, own: first + f.rank().index() * apart, first, apart }
    }

    /// The caller's span for a span of the part whose place begins at `place`.
    #[inline(always)]
    fn at(&self, place: usize, span: Span) -> Span {
        match span.place {
            Place::Source if IS_SECOND => Span::target(place + span.at, span.bytes),
            Place::Target if !IS_SECOND => Span::target(place + span.at, span.bytes),
            _ => span,
        }
    }

    #[inline(always)]
    fn own(&self, span: Span) -> Span {
        self.at(self.own, span)
    }
}

impl<F: Fabric, const IS_SECOND: bool> Local for Part<'_, F, IS_SECOND> {
    #[inline(always)]
    fn rank(&self) -> Rank {
        self.f.rank()
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        self.f.size()
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
        self.own(self.f.vector_block(place, index))
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        self.f.yield_now()
    }
}

impl<F: Fabric, const IS_SECOND: bool> Messages for Part<'_, F, IS_SECOND> {
    #[inline(always)]
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op> {
        self.f.send(to, channel, step, self.own(source))
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
        self.f.signal(to, channel, step)
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
        self.f.pairwise_exchange(peer, channel, step, own, target)
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
        self.f.pairwise_combine(peer, channel, step, self.own(own), self.own(target))
    }
}

impl<F: Fabric, const IS_SECOND: bool> Rma for Part<'_, F, IS_SECOND> {
    type Remote = F::Remote;

    fn reach(&self, peer: Rank, span: Span) -> F::Remote {
        self.f.reach(peer, self.at(self.first + peer.index() * self.apart, span))
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

impl<F: Fabric, const IS_SECOND: bool> Rendezvous for Part<'_, F, IS_SECOND> {
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.f.expose(to, exposure, self.own(span))
    }

    fn attach(&self, from: Rank, exposure: u32) -> impl Future<Output = Op<F::Remote>> {
        self.f.attach(from, exposure)
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

impl<F: Fabric, const IS_SECOND: bool> Counters for Part<'_, F, IS_SECOND> {
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.f.count(at, counter, by)
    }

    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        self.f.arrive(at, counter, pes)
    }
}
