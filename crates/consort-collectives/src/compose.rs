//! Composition: two algorithms, one after the other, are an algorithm for something larger.
//!
//! All-reduce is a reduction and a broadcast of its result, and all-gather a gather and a broadcast
//! (Bala et al. 1995, section 4.2); or all-reduce is a reduce-scatter and an all-gather of the
//! blocks (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.5). Nothing is written again: the
//! parts run as they are, the second on what the first has left in the target, which is all of it
//! at PE 0, or each PE's own block of it where the second is to gather these. (An all-gather of as
//! many broadcasts as there are PEs is composed in its own file, of the same `Part`s.)
//!
//! They share the call: the first uses the lower half of the inbox and the second the upper one,
//! and counters of their own. The first keeps the caller's mode at entry and the second that at
//! exit; between them a PE's buffers are its own. What the first lends is back when it ends.

use std::marker::PhantomData;

use consort_fabric::{
    Atomic, Candidate, Capabilities, Collective, Fabric, MachineModel, Mode, Op, Place, Query,
    Rank, Signal, Slot, Span, Step, Sync, Until,
};

use crate::{Algorithm, Parameter, PlanError, Setting};

/// What makes one algorithm of two.
pub trait Composition: 'static {
    /// The name of its file.
    const NAME: &'static str;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
    /// What runs first, to PE 0 if it has a root.
    type First: Algorithm;
    /// What runs then, on the result of the first, from PE 0 if it has a root.
    type Second: Algorithm;

    /// The parameters of the parts.
    fn parts(candidate: &Candidate) -> (Candidate, Candidate);
    /// What the parts are asked for, by a query about the whole. The blocks of both must be whole
    /// elements, and what the first leaves the second must find.
    fn queries(query: &Query) -> (Query, Query);
}

/// An algorithm that is composed of two.
#[derive(Debug)]
pub struct Composed<C>(PhantomData<C>);

/// What a PE does.
#[derive(Debug)]
pub struct Schedule<A, B> {
    first: A,
    second: B,
    /// Where PE `r` has what goes from one to the other: `r` times so far into the target.
    apart: usize,
}

/// What the part for `collective` says that cannot serve, said of the whole, which is what the
/// caller knows.
pub(crate) fn of_whole<A: Algorithm>(collective: Collective, error: PlanError) -> PlanError {
    A::incapable(match error {
        PlanError::Incapable { algorithm, why } => {
            format!("its {collective} by {algorithm}: {why}")
        }
        other => format!("its {collective}: {other}"),
    })
}

/// What the parts are asked for, with their modes: between the two a PE's buffers are its own.
fn parts<C: Composition>(query: &Query) -> (Query, Query) {
    let (first, second) = C::queries(query);
    let Sync { entry, exit } = query.sync;
    (
        Query { sync: Sync { entry, exit: Mode::Mine }, ..first },
        Query { sync: Sync { entry: Mode::Mine, exit }, ..second },
    )
}

impl<C: Composition> Algorithm for Composed<C> {
    const NAME: &'static str = C::NAME;
    const PARAMETERS: &'static [Parameter] = C::PARAMETERS;
    type Schedule = Schedule<<C::First as Algorithm>::Schedule, <C::Second as Algorithm>::Schedule>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError> {
        Self::check_names(candidate)?;
        for index in 0..C::PARAMETERS.len() {
            Self::parameter(candidate, index)?;
        }
        let (first, second) = C::parts(candidate);
        let (of_first, of_second) = parts::<C>(&setting.query());
        let bytes = |query: &Query| usize::try_from(query.bytes).unwrap_or(usize::MAX);
        let result = |Query { collective, bytes, .. }: Query| {
            u64::from(collective.target_blocks(setting.pes, false)) * bytes
        };
        let is_whole = bytes(&of_first).is_multiple_of(setting.element_bytes.max(1));
        if !is_whole || result(of_second) != result(setting.query()) {
            return Err(Self::incapable("the data is not divided into equal blocks of elements"));
        }
        let middle = setting.first_slot + setting.lines() / 2;
        let part = |query: &Query| Setting {
            collective: query.collective,
            root: Rank(0),
            bytes: bytes(query),
            sync: query.sync,
            ..*setting
        };
        let capabilities = Capabilities { inbox_lines: middle, ..setting.capabilities };
        let lower = Setting { capabilities, ..part(&of_first) };
        let upper =
            Setting { first_slot: middle, counter: setting.counter + 2, ..part(&of_second) };
        let gathers = of_second.collective == Collective::AllGather;
        Ok(Schedule {
            first: C::First::schedule(&lower, &first)
                .map_err(|error| of_whole::<Self>(lower.collective, error))?,
            second: C::Second::schedule(&upper, &second)
                .map_err(|error| of_whole::<Self>(upper.collective, error))?,
            apart: if gathers { upper.bytes } else { 0 },
        })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        C::First::steps(&schedule.first).max(C::Second::steps(&schedule.second))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (first, second) = C::parts(candidate);
        let (of_first, of_second) = parts::<C>(query);
        C::First::cost_ns(&of_first, &first, model) + C::Second::cost_ns(&of_second, &second, model)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        let Schedule { first, second, apart } = schedule;
        C::First::run(&Part::<_, false>::new(f, 0, *apart), first).await?;
        C::Second::run(&Part::<_, true>::new(f, 0, *apart), second).await
    }
}

/// One part's view of the call: the first's target and the second's source are what goes from one
/// to the other, a place in the caller's target. One of several parts that each have a place in the
/// target, and share the source, is like a first one.
pub(crate) struct Part<'f, F, const IS_SECOND: bool> {
    f: &'f F,
    /// Where the place is on this PE, and on PE 0, and how far apart those of successive PEs are.
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

    /// A span of the part, where the place begins at `place`.
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

impl<F: Fabric, const IS_SECOND: bool> Fabric for Part<'_, F, IS_SECOND> {
    type Lease = F::Lease;

    fn capabilities(&self) -> Capabilities {
        self.f.capabilities()
    }

    #[inline(always)]
    fn rank(&self) -> Rank {
        self.f.rank()
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        self.f.size()
    }

    #[inline(always)]
    fn send(&self, to: Rank, slot: Slot, step: Step, source: Span) -> impl Future<Output = Op> {
        self.f.send(to, slot, step, self.own(source))
    }

    #[inline(always)]
    fn receive(&self, slot: Slot, step: Step, target: Span) -> impl Future<Output = Op> {
        self.f.receive(slot, step, self.own(target))
    }

    #[inline(always)]
    fn receive_combine(
        &self,
        slot: Slot,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.receive_combine(slot, step, self.own(left), self.own(target))
    }

    #[inline(always)]
    fn signal(&self, to: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.f.signal(to, slot, step)
    }

    #[inline(always)]
    fn wait(&self, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.f.wait(slot, step)
    }

    #[inline(always)]
    fn meet(&self, peer: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.f.meet(peer, slot, step)
    }

    #[inline(always)]
    fn meet_combine(
        &self,
        peer: Rank,
        slot: Slot,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.meet_combine(peer, slot, step, self.own(own), self.own(target))
    }

    #[inline(always)]
    async fn copy(&self, target: Span, source: Span) -> Op {
        let (target, source) = (self.own(target), self.own(source));
        // What is to be gathered lies in its place.
        if target == source { Ok(()) } else { self.f.copy(target, source).await }
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        self.f.combine(self.own(target), self.own(left), self.own(right))
    }

    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.f.count(at, counter, by)
    }

    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        self.f.arrive(at, counter, pes)
    }

    fn lend(&self, to: Rank, loan: u32, span: Span) -> impl Future<Output = Op> {
        self.f.lend(to, loan, self.own(span))
    }

    fn borrow(&self, from: Rank, loan: u32) -> impl Future<Output = Op<F::Lease>> {
        self.f.borrow(from, loan)
    }

    fn piece(&self, place: Place, index: u32) -> Span {
        self.own(self.f.piece(place, index))
    }

    fn agree(&self, lease: &F::Lease, bytes: usize) -> impl Future<Output = Op> {
        self.f.agree(lease, bytes)
    }

    fn give_back(&self, lease: F::Lease) -> impl Future<Output = Op> {
        self.f.give_back(lease)
    }

    fn reclaim(&self) -> impl Future<Output = Op> {
        self.f.reclaim()
    }

    fn reach(&self, peer: Rank, span: Span) -> F::Lease {
        self.f.reach(peer, self.at(self.first + peer.index() * self.apart, span))
    }

    fn get(&self, lease: &F::Lease, at: usize, target: Span) -> impl Future<Output = Op> {
        self.f.get(lease, at, self.own(target))
    }

    fn get_combine(
        &self,
        lease: &F::Lease,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.f.get_combine(lease, at, self.own(left), self.own(target))
    }

    fn put(&self, lease: &F::Lease, at: usize, source: Span) -> impl Future<Output = Op> {
        self.f.put(lease, at, self.own(source))
    }

    fn put_signal(
        &self,
        lease: &F::Lease,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        self.f.put_signal(lease, at, self.own(source), word, how)
    }

    fn atomic(&self, at: Rank, word: usize, operation: Atomic) -> impl Future<Output = Op<u64>> {
        self.f.atomic(at, word, operation)
    }

    fn wait_until(&self, word: usize, until: Until) -> impl Future<Output = Op<u64>> {
        self.f.wait_until(word, until)
    }

    fn fence(&self) -> impl Future<Output = Op> {
        self.f.fence()
    }

    fn quiet(&self) -> impl Future<Output = Op> {
        self.f.quiet()
    }

    fn yield_now(&self) -> impl Future<Output = Op> {
        self.f.yield_now()
    }

    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op> {
        self.f.credit(to, quarter)
    }

    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op> {
        self.f.await_credits(quarter)
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::OperatorClass;

    use super::*;
    use crate::{Visitor, visit};

    /// Why a candidate cannot serve a call of 8 PEs.
    struct Refused<'c>(&'c Setting, &'c Candidate);

    impl Visitor for Refused<'_> {
        type Output = String;

        fn visit<A: Algorithm>(self) -> String {
            A::schedule(self.0, self.1).err().map_or_else(String::new, |error| error.to_string())
        }
    }

    fn refused(collective: Collective, bytes: u64, inbox_lines: u32, candidate: &str) -> String {
        let query = Query {
            collective,
            sync: Sync::STRICT,
            pes: 8,
            bytes,
            operator: OperatorClass::Ordered,
            symmetric: false,
        };
        let capabilities = Capabilities {
            inbox_lines,
            scratch_bytes: 4096,
            buffer_bytes: 8192,
            lending: false,
            buffered: true,
        };
        let candidate: Candidate = candidate.parse().expect("a candidate");
        let setting = Setting::of(&query, capabilities);
        let refused = Refused(&setting, &candidate);
        visit(collective, &candidate.algorithm, refused).expect("a name of the registry")
    }

    #[test]
    fn what_was_asked_for_is_named_and_the_part_that_cannot() {
        let part_of_all_reduce = |candidate| refused(Collective::AllReduce, 64, 256, candidate);
        assert_eq!(
            part_of_all_reduce("oc_bcast(chunk_bytes=3072,k=65536)"),
            "oc_bcast cannot serve this call: its reduce: knomial_get needs radix from 1 to 65536"
        );
        assert_eq!(
            part_of_all_reduce("oc_bcast(chunk_bytes=8192,k=2)"),
            "oc_bcast cannot serve this call: its broadcast by oc_bcast: \
             two chunks of 8192 B do not fit the message buffer, 8192 B"
        );
        assert_eq!(
            part_of_all_reduce("reduce_scatter_all_gather(piece_bytes=16384)"),
            "reduce_scatter_all_gather cannot serve this call: its reduce_scatter by direct: \
             the fabric cannot lend buffers"
        );
        assert_eq!(
            refused(Collective::AllGather, 8, 10, "all_broadcast(radix=2)"),
            "all_broadcast cannot serve this call: its broadcast by knomial: the inbox is too small"
        );
    }
}
