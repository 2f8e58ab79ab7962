//! Broadcasts where a send lasts until the receiver has taken the message, as RCCE's does: no PEs
//! may then wait for each other in a ring.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::{Future, poll_fn, ready},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use consort_collectives::{
    Algorithm, PlanError, Setting,
    broadcast::{Flat, Knomial, Pipelined, ScatterAllgather},
};
use consort_fabric::{
    Atomic, Candidate, Capabilities, Collective, Fabric, Op, OperatorClass, Place, Query, Rank,
    Signal, Slot, Span, Step, Sync, Until, not_reached,
};

type Message = (Step, Vec<u8>);

/// What the PEs share.
#[derive(Default)]
struct Exchange {
    /// Messages that are sent and not taken, by receiver and slot.
    offered: RefCell<BTreeMap<(Rank, Slot), Message>>,
    signalled: RefCell<BTreeMap<(Rank, Slot), Step>>,
    /// Messages that have been offered or taken, and signals.
    events: Cell<u64>,
}

/// One PE's view of them. Slots are those of one call, its data one message.
struct Synchronous<'e> {
    exchange: &'e Exchange,
    capabilities: Capabilities,
    rank: Rank,
    pes: u32,
    source: Vec<u8>,
    target: RefCell<Vec<u8>>,
}

impl Synchronous<'_> {
    fn happens(&self) {
        self.exchange.events.set(self.exchange.events.get() + 1);
    }
}

/// What a broadcast by messages does not use.
fn unused<T>() -> std::future::Ready<T> {
    panic!("a broadcast by messages does not use this")
}

impl Fabric for Synchronous<'_> {
    type Lease = ();

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.pes
    }

    fn send(&self, to: Rank, slot: Slot, step: Step, source: Span) -> impl Future<Output = Op> {
        let range = source.at..source.at + source.bytes;
        let message = match source.place {
            Place::Source => self.source[range].to_vec(),
            Place::Target => self.target.borrow()[range].to_vec(),
            place => panic!("{place:?} holds nothing"),
        };
        let before = self.exchange.offered.borrow_mut().insert((to, slot), (step, message));
        assert_eq!(before, None, "a message overwrites one that is not taken");
        self.happens();
        poll_fn(move |_| {
            let waits = self.exchange.offered.borrow().contains_key(&(to, slot));
            if waits { Poll::Pending } else { Poll::Ready(Ok(())) }
        })
    }

    fn receive(&self, slot: Slot, step: Step, target: Span) -> impl Future<Output = Op> {
        poll_fn(move |_| {
            let Some((sent, message)) =
                self.exchange.offered.borrow_mut().remove(&(self.rank, slot))
            else {
                return Poll::Pending;
            };
            assert_eq!((sent, message.len()), (step, target.bytes));
            assert_eq!(target.place, Place::Target);
            self.target.borrow_mut()[target.at..][..target.bytes].copy_from_slice(&message);
            self.happens();
            Poll::Ready(Ok(()))
        })
    }

    fn signal(&self, to: Rank, slot: Slot, step: Step) -> impl Future<Output = Op> {
        self.exchange.signalled.borrow_mut().insert((to, slot), step);
        self.happens();
        ready(Ok(()))
    }

    fn wait(&self, slot: Slot, step: Step) -> impl Future<Output = Op> {
        poll_fn(move |_| {
            let signalled = self.exchange.signalled.borrow().get(&(self.rank, slot)).copied();
            let reached = signalled.is_some_and(|signalled| signalled >= step);
            if reached { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
    }

    fn receive_combine(&self, _: Slot, _: Step, _: Span, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn meet(&self, _: Rank, _: Slot, _: Step) -> impl Future<Output = Op> {
        unused()
    }

    fn copy(&self, _: Span, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn combine(&self, _: Span, _: Span, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn count(&self, _: Rank, _: u32, _: u64) -> impl Future<Output = Op<u64>> {
        unused()
    }

    fn lend(&self, _: Rank, _: u32, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn borrow(&self, _: Rank, _: u32) -> impl Future<Output = Op> {
        unused()
    }

    fn piece(&self, _: Place, _: u32) -> Span {
        panic!("a broadcast has no pieces")
    }

    fn agree(&self, (): &(), _: usize) -> impl Future<Output = Op> {
        unused()
    }

    fn give_back(&self, (): ()) -> impl Future<Output = Op> {
        unused()
    }

    fn reclaim(&self) -> impl Future<Output = Op> {
        unused()
    }

    fn reach(&self, peer: Rank, span: Span) {
        not_reached(self.rank, peer, span)
    }

    fn get(&self, (): &(), _: usize, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn get_combine(&self, (): &(), _: usize, _: Span, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn put(&self, (): &(), _: usize, _: Span) -> impl Future<Output = Op> {
        unused()
    }

    fn put_signal(
        &self,
        (): &(),
        _: usize,
        _: Span,
        _: usize,
        _: Signal,
    ) -> impl Future<Output = Op> {
        unused()
    }

    fn atomic(&self, _: Rank, _: usize, _: Atomic) -> impl Future<Output = Op<u64>> {
        unused()
    }

    fn wait_until(&self, _: usize, _: Until) -> impl Future<Output = Op<u64>> {
        unused()
    }

    fn fence(&self) -> impl Future<Output = Op> {
        unused()
    }

    fn quiet(&self) -> impl Future<Output = Op> {
        unused()
    }

    fn credit(&self, _: Rank, _: u64) -> impl Future<Output = Op> {
        unused()
    }

    fn await_credits(&self, _: u64) -> impl Future<Output = Op> {
        unused()
    }
}

/// Polls all in turn to their ends; whether they get there.
fn ends<'f>(mut running: Vec<Pin<Box<dyn Future<Output = Op> + 'f>>>, events: &Cell<u64>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    while !running.is_empty() {
        let (before, count) = (events.get(), running.len());
        running.retain_mut(|one| match one.as_mut().poll(&mut context) {
            Poll::Ready(ended) => {
                assert_eq!(ended, Ok(()));
                false
            }
            Poll::Pending => true,
        });
        if events.get() == before && running.len() == count {
            return false;
        }
    }
    true
}

/// One broadcast; `spare` lines of the inbox are beyond those that its slots take.
fn broadcasts<A: Algorithm>(candidate: &Candidate, pes: u32, root: Rank, bytes: usize, spare: u32) {
    let capabilities = Capabilities {
        inbox_lines: 1 + 2 * pes + spare,
        scratch_bytes: 0,
        buffer_bytes: 0,
        lending: false,
        buffered: false,
    };
    let query = Query {
        collective: Collective::Broadcast,
        sync: Sync::MINE,
        pes,
        bytes: bytes as u64,
        operator: OperatorClass::Commutative,
        symmetric: false,
    };
    let setting = Setting { root, ..Setting::of(&query, capabilities) };
    let ranks = (0..pes).map(Rank);
    let schedules: Result<Vec<_>, PlanError> =
        ranks.clone().map(|rank| A::schedule(&setting.at(rank), candidate)).collect();
    let schedules = schedules.expect("it can serve");
    let exchange = Exchange::default();
    let message: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 251).expect("small")).collect();
    let fabrics: Vec<_> = ranks
        .map(|rank| Synchronous {
            exchange: &exchange,
            capabilities,
            rank,
            pes,
            source: if rank == root { message.clone() } else { Vec::new() },
            target: RefCell::new(vec![0; if rank == root { 0 } else { bytes }]),
        })
        .collect();
    let running =
        fabrics.iter().zip(&schedules).map(|(f, schedule)| -> Pin<Box<dyn Future<Output = Op>>> {
            Box::pin(A::run(f, schedule))
        });
    let what = format!("{candidate}: {bytes} B, {pes} PEs, root {root}, {spare} lines to spare");
    assert!(ends(running.collect(), &exchange.events), "nobody gets on: {what}");
    assert!(exchange.offered.borrow().is_empty(), "a message is left: {what}");
    for f in fabrics.iter().filter(|f| f.rank != root) {
        assert!(*f.target.borrow() == message, "PE {}: {what}", f.rank);
    }
}

#[test]
fn broadcasts_end_where_sends_are_synchronous() {
    for pes in (1..20).chain([48]) {
        for root in [0, pes / 2, pes - 1].map(Rank) {
            for bytes in [0, 1, 8, 100, 3000, 20_000] {
                for spare in [12, 400] {
                    let named = Candidate::new;
                    broadcasts::<ScatterAllgather>(
                        &named("scatter_allgather"),
                        pes,
                        root,
                        bytes,
                        spare,
                    );
                    for radix in [1, 2, 3] {
                        let knomial = named("knomial").with("radix", radix);
                        broadcasts::<Knomial>(&knomial, pes, root, bytes, spare);
                        let pipelined =
                            named("pipelined").with("radix", radix).with("chunk_bytes", 1000);
                        broadcasts::<Pipelined>(&pipelined, pes, root, bytes, spare);
                    }
                    broadcasts::<Flat>(&named("flat"), pes, root, bytes, spare);
                }
            }
        }
    }
}
