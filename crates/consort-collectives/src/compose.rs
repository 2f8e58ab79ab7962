//! Composition: two algorithms, one after the other, are an algorithm for something larger.
//!
//! All-reduce is a reduction and a broadcast of its result, and all-gather a gather and a broadcast
//! (Bala et al. 1995, section 4.2). Nothing is written again: the parts run as they are, the second
//! on what the first has left in the target. They share the call: the first uses the lower half of
//! the inbox and the second the upper one, and counters of their own. What a part lends to a PE,
//! the other must not lend to the same.

use std::marker::PhantomData;

use consort_fabric::{
    Atomic, Candidate, Capabilities, Collective, Fabric, MachineModel, Op, Place, Query, Rank,
    Signal, Slot, Span, Step, Sync, Until,
};

use crate::{Algorithm, Parameter, PlanError, Setting};

/// What makes one algorithm of two.
pub trait Composition: 'static {
    /// The name of its file.
    const NAME: &'static str;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
    /// What the parts do: the first to PE 0, the second from there.
    const COLLECTIVES: (Collective, Collective);
    /// What runs first.
    type First: Algorithm;
    /// What runs then, on the result of the first.
    type Second: Algorithm;

    /// The parameters of the parts.
    fn parts(candidate: &Candidate) -> (Candidate, Candidate);
}

/// An algorithm that is composed of two.
#[derive(Debug)]
pub struct Composed<C>(PhantomData<C>);

/// What a PE does.
#[derive(Debug)]
pub struct Schedule<A, B> {
    first: A,
    second: B,
}

/// How many blocks of the first part's result are one of the second.
fn joined_blocks((first, second): (Collective, Collective), pes: u32) -> u32 {
    first.target_blocks(pes, true) / second.source_blocks(pes, true).max(1)
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
        let middle = setting.first_slot + setting.lines() / 2;
        let part = Setting { root: Rank(0), sync: Sync::MINE, ..*setting };
        let capabilities = Capabilities { inbox_lines: middle, ..setting.capabilities };
        let lower = Setting { collective: C::COLLECTIVES.0, capabilities, ..part };
        let blocks = joined_blocks(C::COLLECTIVES, setting.pes) as usize;
        let upper = Setting {
            collective: C::COLLECTIVES.1,
            bytes: setting.bytes.saturating_mul(blocks),
            first_slot: middle,
            counter: setting.counter + 2,
            ..part
        };
        let of_part = |error| match error {
            PlanError::Incapable { why, .. } => Self::incapable(why),
            other => other,
        };
        Ok(Schedule {
            first: C::First::schedule(&lower, &first).map_err(of_part)?,
            second: C::Second::schedule(&upper, &second).map_err(of_part)?,
        })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        C::First::steps(&schedule.first).max(C::Second::steps(&schedule.second))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (first, second) = C::parts(candidate);
        let of_first = Query { collective: C::COLLECTIVES.0, sync: Sync::MINE, ..*query };
        let blocks = joined_blocks(C::COLLECTIVES, query.pes);
        let bytes = query.bytes.saturating_mul(blocks.into());
        let of_second = Query { collective: C::COLLECTIVES.1, bytes, ..of_first };
        C::First::cost_ns(&of_first, &first, model) + C::Second::cost_ns(&of_second, &second, model)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        C::First::run(f, &schedule.first).await?;
        C::Second::run(&OnTarget(f), &schedule.second).await
    }
}

/// A call whose source is its target: what a first part has left there.
struct OnTarget<'f, F>(&'f F);

fn on_target(span: Span) -> Span {
    match span.place {
        Place::Source => Span { place: Place::Target, ..span },
        _ => span,
    }
}

impl<F: Fabric> Fabric for OnTarget<'_, F> {
    type Lease = F::Lease;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    #[inline(always)]
    fn rank(&self) -> Rank {
        self.0.rank()
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        self.0.size()
    }

    #[inline(always)]
    fn send(&self, to: Rank, slot: Slot, step: Step, source: Span) -> impl Future<Output = Op> {
        self.0.send(to, slot, step, on_target(source))
    }

    #[inline(always)]
    fn receive(&self, slot: Slot, step: Step, target: Span) -> impl Future<Output = Op> {
        self.0.receive(slot, step, target)
    }

    #[inline(always)]
    fn receive_combine(
        &self,
        slot: Slot,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.0.receive_combine(slot, step, on_target(left), target)
    }

    #[inline(always)]
    fn signal(&self, to: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.0.signal(to, slot, step)
    }

    #[inline(always)]
    fn wait(&self, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.0.wait(slot, step)
    }

    #[inline(always)]
    fn meet(&self, peer: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.0.meet(peer, slot, step)
    }

    #[inline(always)]
    fn copy(&self, target: Span, source: Span) -> impl Future<Output = Op> {
        self.0.copy(target, on_target(source))
    }

    #[inline(always)]
    fn combine(&self, target: Span, left: Span, right: Span) -> impl Future<Output = Op> {
        self.0.combine(target, on_target(left), on_target(right))
    }

    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>> {
        self.0.count(at, counter, by)
    }

    fn lend(&self, to: Rank, loan: u32, span: Span) -> impl Future<Output = Op> {
        self.0.lend(to, loan, on_target(span))
    }

    fn borrow(&self, from: Rank, loan: u32) -> impl Future<Output = Op<F::Lease>> {
        self.0.borrow(from, loan)
    }

    fn give_back(&self, lease: F::Lease) -> impl Future<Output = Op> {
        self.0.give_back(lease)
    }

    fn reclaim(&self) -> impl Future<Output = Op> {
        self.0.reclaim()
    }

    fn reach(&self, peer: Rank, span: Span) -> Option<F::Lease> {
        self.0.reach(peer, on_target(span))
    }

    fn get(&self, lease: &F::Lease, at: usize, target: Span) -> impl Future<Output = Op> {
        self.0.get(lease, at, target)
    }

    fn get_combine(
        &self,
        lease: &F::Lease,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        self.0.get_combine(lease, at, on_target(left), target)
    }

    fn put(&self, lease: &F::Lease, at: usize, source: Span) -> impl Future<Output = Op> {
        self.0.put(lease, at, on_target(source))
    }

    fn put_signal(
        &self,
        lease: &F::Lease,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        self.0.put_signal(lease, at, on_target(source), word, how)
    }

    fn atomic(&self, at: Rank, word: usize, operation: Atomic) -> impl Future<Output = Op<u64>> {
        self.0.atomic(at, word, operation)
    }

    fn wait_until(&self, word: usize, until: Until) -> impl Future<Output = Op<u64>> {
        self.0.wait_until(word, until)
    }

    fn fence(&self) -> impl Future<Output = Op> {
        self.0.fence()
    }

    fn quiet(&self) -> impl Future<Output = Op> {
        self.0.quiet()
    }

    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op> {
        self.0.credit(to, quarter)
    }

    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op> {
        self.0.await_credits(quarter)
    }
}
