//! The suite on the toy fabric: in inboxes of any size, with sends that last until the message is
//! taken, without exposed buffers, and with PEs in several orders.

use std::{cell::Cell, collections::BTreeSet, future::Future, pin::Pin};

use consort_collectives::{Setting, names};
use consort_conformance::{
    Case, Counts, Coverage, Member, Program, Side, Space, data::kernel, run,
};
use consort_fabric::{Capabilities, Collective, Levels, Nodes, Place, Rank, Span, Vendor};

use crate::{
    simulated::listed,
    toy_fabric::{Buffers, Call, Run, plan},
    toy_world::World,
};

/// The number of operations of others while a PE is late.
const LATE: u32 = 300;
/// The number of calls of a program.
const CALLS: usize = 24;
static SIZES: [usize; 7] = [0, 1, 8, 57, 100, 300, 1100];

/// A PE of the toy fabric.
struct Toy<'w> {
    world: &'w World,
    rank: Rank,
    program: &'w Program,
    plans: Vec<Box<dyn Run>>,
    /// The number of PEs that have reached the alignment.
    aligned: &'w Cell<u32>,
}

impl Toy<'_> {
    fn span(&self, call: usize, side: Side) -> Span {
        let place = self.program.place(call).expect("a call on symmetric memory");
        match side {
            Side::Source => Span::heap(place.source_at, place.source_bytes),
            Side::Target => Span::heap(place.target_at, place.target_bytes),
        }
    }
}

impl Member for Toy<'_> {
    const ALONE_BETWEEN_WAITS: bool = true;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn read(&self, of: Rank, call: usize, side: Side) -> Vec<u8> {
        self.world.read(of, self.span(call, side))
    }

    fn write(&self, of: Rank, call: usize, side: Side, data: &[u8]) {
        self.world.write(of, Place::Heap, self.span(call, side).at, data);
    }

    async fn align(&self) {
        self.aligned.set(self.aligned.get() + 1);
        self.world.happens();
        let all = || (self.aligned.get() == self.world.pes).then_some(());
        self.world.wait_for(all).await;
    }

    async fn be_late(&self) {
        for _ in 0..LATE {
            self.world.happens();
            let mut is_due = true;
            self.world.wait_for(|| (!std::mem::take(&mut is_due)).then_some(())).await;
        }
    }

    async fn call(&mut self, call: usize, case: &Case, private: Option<[Vec<u8>; 2]>) -> Vec<u8> {
        let kernel = case.kind.collective.combines().then(|| kernel(case.bytes, case.kind.class()));
        let in_heap = || [Side::Source, Side::Target].map(|side| self.span(call, side).at);
        let buffers = private.map_or_else(|| Buffers::InHeap(in_heap()), Buffers::Private);
        let layouts = self.program.layouts(call, self.rank);
        let fabric = Call::new(self.world, (self.rank, call as u64), buffers, kernel, layouts);
        self.plans[call].run(&fabric).await.expect("a job on the toy cannot fail");
        fabric.finish()
    }
}

/// Runs a program in one order of PEs.
fn play_in(capabilities: Capabilities, program: &Program, (backwards, in_turn): (bool, bool)) {
    let mut world = World::new(program.pes, capabilities, program.heap_bytes());
    world.in_turn = in_turn;
    let (progress, aligned) = (Counts::of(program), Cell::new(0));
    let (world, progress, aligned) = (&world, &progress, &aligned);
    let member = |rank| -> Pin<Box<dyn Future<Output = ()> + '_>> {
        let plan_of = |case: &Case| {
            let candidate = case.kind.candidate.as_ref().expect("the toy selects nothing");
            let call = case.call(program.pes);
            let plan = plan((&call, rank), capabilities, candidate, &case.barrier);
            plan.unwrap_or_else(|error| panic!("{error}: {case}"))
        };
        let plans = program.cases.iter().map(plan_of).collect();
        let mut toy = Toy { world, rank, program, plans, aligned };
        Box::pin(async move { run(&mut toy, program, progress).await })
    };
    if let Err(stuck) = world.run(program.everyone().map(member).collect(), backwards) {
        panic!("PEs {stuck:?} of {} wait for each other, in{}", program.pes, listed(program));
    }
}

/// Runs a program in several orders: each PE as far as possible, starting with the first or with
/// the last one, and one operation of each PE in turn.
fn play(capabilities: Capabilities, program: &Program) {
    for order in [(false, false), (true, false), (false, true)] {
        play_in(capabilities, program, order);
    }
}

/// Returns the capabilities of a toy with this many inbox lines for an algorithm's own messages.
fn toy(pes: u32, lines: u32, buffered: bool) -> Capabilities {
    Capabilities {
        inbox_channels: Setting::first_channel(Collective::Broadcast, pes) + lines,
        scratch_bytes: 1024,
        buffer_bytes: 2048,
        exposes: true,
        buffered,
        pairwise_bytes: consort_fabric::PAIRWISE_BYTES,
        counts: pes % 5 != 4,
        vendor: Vendor { team: pes % 4 != 1, leaders: pes % 5 != 3 },
        nodes: match pes % 3 {
            0 => Nodes::One,
            1 => Nodes::InTurn(2 + pes % 2),
            _ => Nodes::Blocks(2),
        },
        levels: Levels::NONE,
    }
}

/// Returns all small teams, and some larger ones.
fn teams() -> impl Iterator<Item = u32> {
    (1..20).chain([32, 33, 64])
}

/// Runs random programs on toys that expose buffers, or do not; returns the algorithms that served.
fn serve_in_any_inbox(exposes: bool, calls: usize) -> BTreeSet<String> {
    let (mut served, mut number) = (BTreeSet::new(), 0);
    for pes in teams() {
        let space = Space::of(pes, &SIZES);
        for lines in [3, 8, 12, 30, 80, 600, 4000] {
            for buffered in [true, false] {
                number += 1;
                let toy = Capabilities { exposes, ..toy(pes, lines + 2 * pes, buffered) };
                let cases = space.from(number * calls).take(8 * calls);
                let able = cases.filter(|case| case.settles() && case.is_served(pes, toy));
                let cases: Vec<Case> = able.take(calls).collect();
                served.extend(cases.iter().map(name));
                play(toy, &Program::new(pes, number as u64, &cases).uneven());
            }
        }
    }
    served
}

fn name(case: &Case) -> String {
    format!("{} {}", case.kind.collective, case.kind.algorithm())
}

#[test]
fn every_algorithm_works_in_any_inbox() {
    let mut served = serve_in_any_inbox(true, 24);
    // The cases that those leave out, in a large inbox.
    let mut coverage = Coverage::default();
    for (pes, buffered) in [(2, true), (3, false), (5, true), (8, false), (17, true)] {
        let toy = toy(pes, 4000, buffered);
        let can_be = |case: &Case| case.settles() && case.is_served(pes, toy);
        let is_new = |case: &Case| coverage.note_if_new(pes, case, can_be);
        let cases: Vec<Case> = Space::of(pes, &SIZES).in_few_modes().filter(is_new).collect();
        served.extend(cases.iter().map(name));
        for (cases, number) in cases.chunks(CALLS).zip(0..) {
            play(toy, &Program::new(pes, number, cases));
        }
    }
    for collective in Collective::EVERY {
        for algorithm in names(collective) {
            let name = format!("{collective} {algorithm}");
            assert!(served.contains(&name), "{name} serves on no toy");
        }
    }
}

#[test]
fn messages_serve_if_nothing_is_exposed() {
    let served = serve_in_any_inbox(false, 12);
    for collective in Collective::regulars() {
        let start = format!("{collective} ");
        let by_messages = served.iter().any(|name| name.starts_with(&start));
        assert!(by_messages, "{collective} has no algorithm of messages alone: {served:?}");
    }
}

/// Messages with blocks of different lengths are longer than the inbox, so their senders wait until
/// chunks are taken.
#[test]
fn uneven_blocks_pass_through_narrow_inboxes() {
    for (pes, number) in [2, 3, 5, 8].into_iter().zip(0..) {
        for (lines, buffered) in [(8, true), (8, false), (12, true), (16, true)] {
            let toy = toy(pes, lines + 2 * pes, buffered);
            let able = |case: &Case| {
                name(case) == "all_to_all_vector two_phase_bruck"
                    && case.settles()
                    && case.is_served(pes, toy)
            };
            let cases: Vec<Case> = Space::of(pes, &SIZES).in_few_modes().filter(able).collect();
            for cases in cases.chunks(CALLS).take(4) {
                play(toy, &Program::new(pes, number, cases).uneven());
            }
        }
    }
}
