//! A part of the team as a fabric, for an algorithm that serves it alone.

use std::future::Future;

use consort_fabric::{
    Channel, Counters, Fabric, Local, Messages, Op, Place, Rank, Ranks, Rendezvous, Rma, Signal,
    Span, Step,
};

/// The view of some PEs of the team, whose ranks count from 0 among them, and of buffers that may
/// be elsewhere than the caller's.
pub(crate) struct Sub<'f, F> {
    f: &'f F,
    ranks: Ranks,
    own: u32,
    buffers: Buffers,
}

/// Where the buffers of a part are: each at an offset of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) source: (Place, usize),
    pub(crate) target: (Place, usize),
}

impl<'f, F: Fabric> Sub<'f, F> {
    /// The view of the calling PE, which is the `own`th of `ranks`.
    pub(crate) fn new(f: &'f F, ranks: Ranks, own: u32, buffers: Buffers) -> Self {
        Self { f, ranks, own, buffers }
    }

    fn at(&self, span: Span) -> Span {
        let (place, at) = match span.place {
            Place::Source => self.buffers.source,
            Place::Target => self.buffers.target,
            place => (place, 0),
        };
        Span { place, at: at + span.at, bytes: span.bytes }
    }

    fn peer(&self, rank: Rank) -> Rank {
        Rank(self.ranks.rank(rank.0))
    }
}

impl<F: Fabric> Local for Sub<'_, F> {
    fn rank(&self) -> Rank {
        Rank(self.own)
    }

    fn size(&self) -> u32 {
        self.ranks.count
    }

    async fn copy(&self, target: Span, source: Span) -> Op {
        let (target, source) = (self.at(target), self.at(source));
        // What is to be copied is in its place already.
        if target == source { Ok(()) } else { self.f.copy(target, source).await }
    }

    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        self.f.combine(self.at(target), self.at(left), self.at(right))
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        self.at(self.f.vector_block(place, self.ranks.rank(index)))
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        self.f.yield_now()
    }
}

impl<F: Fabric> Messages for Sub<'_, F> {
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op> {
        self.f.send(self.peer(to), channel, step, self.at(source))
    }

    fn receive(&self, channel: Channel, step: Step, target: Span) -> impl Future<Output = Op> {
        self.f.receive(channel, step, self.at(target))
    }

    fn receive_combine(
        &self,
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.receive_combine(channel, step, self.at(left), self.at(target))
    }

    fn signal(&self, to: Rank, channel: Channel, step: Step) -> impl Future<Output = Op> {
        self.f.signal(self.peer(to), channel, step)
    }

    fn wait(&self, channel: Channel, step: Step) -> impl Future<Output = Op> {
        self.f.wait(channel, step)
    }

    fn pairwise_exchange(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Option<Span>,
        target: Option<Span>,
    ) -> impl Future<Output = Op> {
        let [own, target] = [own, target].map(|span| span.map(|span| self.at(span)));
        self.f.pairwise_exchange(self.peer(peer), channel, step, own, target)
    }

    fn pairwise_combine(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.pairwise_combine(self.peer(peer), channel, step, self.at(own), self.at(target))
    }
}

impl<F: Fabric> Rma for Sub<'_, F> {
    type Remote = F::Remote;

    fn reach(&self, peer: Rank, span: Span) -> F::Remote {
        self.f.reach(self.peer(peer), self.at(span))
    }

    fn get(&self, remote: &F::Remote, at: usize, target: Span) -> impl Future<Output = Op> {
        self.f.get(remote, at, self.at(target))
    }

    fn get_combine(
        &self,
        remote: &F::Remote,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.get_combine(remote, at, self.at(left), self.at(target))
    }

    fn put(&self, remote: &F::Remote, at: usize, source: Span) -> impl Future<Output = Op> {
        self.f.put(remote, at, self.at(source))
    }

    fn put_signal(
        &self,
        remote: &F::Remote,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        self.f.put_signal(remote, at, self.at(source), word, how)
    }

    fn fence(&self) -> impl Future<Output = Op> {
        self.f.fence()
    }

    fn quiet(&self) -> impl Future<Output = Op> {
        self.f.quiet()
    }
}

impl<F: Fabric> Rendezvous for Sub<'_, F> {
    fn expose(&self, to: Rank, exposure: u32, span: Span) -> impl Future<Output = Op> {
        self.f.expose(self.peer(to), exposure, self.at(span))
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

impl<F: Fabric> Counters for Sub<'_, F> {
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.f.count(self.peer(at), counter, by)
    }

    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        self.f.arrive(self.peer(at), counter, pes)
    }
}
