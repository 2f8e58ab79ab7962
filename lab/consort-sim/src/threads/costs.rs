//! The costs of a machine's operations on lines, in virtual time.

use crate::{
    engine::{Time, picoseconds},
    machines::{AtomicOp, AtomicsAt, Coherent, Prefetch, State, StoreOrder},
};

/// The operations on lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store,
    Atomic(AtomicOp),
}

impl Access {
    const fn row(self) -> usize {
        match self {
            Self::Load => 0,
            Self::Store => 1,
            Self::Atomic(op) => 2 + op as usize,
        }
    }
}

/// The states of a line whose costs differ.
const STATES: [State; 3] = [State::Modified, State::Shared, State::Invalid];

/// The costs of hardware message queues.
#[derive(Clone, Debug)]
pub(super) struct MessageCosts {
    pub(super) buffer_words: usize,
    pub(super) word: Time,
    pub(super) network: Time,
    pub(super) hop: Time,
}

/// The costs of stores past the caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamingCosts {
    pub(super) buffers: usize,
    pub(super) write: Time,
    pub(super) spun_write: Time,
}

/// The costs of a machine.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    cycle_ns: f64,
    cores: u32,
    /// The number of cores of a NUMA node: those of a die, or all cores of a mesh.
    pub(super) cores_per_node: u32,
    distances: Box<[u8]>,
    /// The costs by operation, state and distance.
    accesses: Vec<[Box<[Time]>; STATES.len()]>,
    pub(super) cycle: Time,
    pub(super) hit: Time,
    pub(super) operation: Time,
    pub(super) serve: Time,
    pub(super) sharer: Time,
    pub(super) fence: Time,
    pub(super) spin: Time,
    pub(super) loop_cycles: f64,
    /// The time to draw a random number.
    pub(super) random: Time,
    /// The time to take a line from the pool, or to give it back, besides accesses to the pool.
    pub(super) allocation: Time,
    /// Whether atomic operations are executed at the line's home.
    pub(super) atomics_at_home: bool,
    /// Whether stores are, too, so that no core owns a line.
    pub(super) stores_at_home: bool,
    /// Whether a core then keeps its copy of a line to which it stores.
    pub(super) stores_keep_copies: bool,
    /// Whether a compare-exchange can work on two words at once.
    pub(super) pairs: bool,
    pub(super) in_order: bool,
    pub(super) claims_lines: bool,
    pub(super) loads_wait: bool,
    pub(super) loads_take_lines: bool,
    pub(super) store_buffer: usize,
    pub(super) prefetch: Option<Prefetch>,
    /// The largest number of lines that a core's prefetcher waits for.
    pub(super) in_flight: usize,
    pub(super) streaming: Option<StreamingCosts>,
    pub(super) messages: Option<MessageCosts>,
}

impl Costs {
    /// Returns the costs of a machine, if its description has those of threads.
    pub(super) fn new(machine: &Coherent) -> Option<Self> {
        let threads = machine.threads.as_ref()?;
        let cycle_ns = 1.0 / machine.ghz;
        let cycles = |count: f64| picoseconds(count * cycle_ns);
        let a_core = machine.layout.threads_per_core();
        let cores = machine.threads() / a_core;
        let pairs = (0..cores).flat_map(|a| (0..cores).map(move |b| (a, b)));
        let distance = |(a, b)| machine.distance(a * a_core, b * a_core);
        let distances = pairs.map(|pair| u8::try_from(distance(pair)).unwrap_or(u8::MAX)).collect();
        let row = |cost: &dyn Fn(State, usize) -> f64| {
            STATES.map(|state| {
                (0..machine.distances.len()).map(|to| picoseconds(cost(state, to))).collect()
            })
        };
        let mut accesses = vec![
            row(&|state, to| machine.load_ns(state, to)),
            row(&|state, to| machine.store_ns(state, to)),
        ];
        accesses.extend(AtomicOp::ALL.map(|op| row(&|state, to| machine.atomic_ns(op, state, to))));
        let operation = cycles(threads.operation_cycles);
        Some(Self {
            cycle_ns,
            cores,
            cores_per_node: machine.layout.cores_per_die(),
            distances,
            accesses,
            cycle: cycles(1.0),
            hit: cycles(threads.hit_cycles),
            operation,
            serve: picoseconds(machine.line_serve_ns),
            sharer: cycles(threads.sharer_cycles),
            fence: cycles(threads.fence_cycles),
            spin: cycles(threads.spin_cycles),
            loop_cycles: threads.loop_cycles,
            random: cycles(threads.random_cycles),
            allocation: cycles(threads.allocation_cycles),
            atomics_at_home: threads.atomics == AtomicsAt::Home,
            stores_at_home: threads.stores_at_home,
            stores_keep_copies: threads.stores_keep_copies,
            pairs: threads.pairs,
            in_order: threads.stores == StoreOrder::InOrder,
            claims_lines: threads.claims_lines,
            loads_wait: threads.loads_wait,
            loads_take_lines: threads.loads_take_lines,
            store_buffer: threads.store_buffer,
            prefetch: threads.prefetch.clone(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "lines are few"
            )]
            in_flight: machine.lines_in_flight.ceil() as usize,
            streaming: threads.streaming.as_ref().map(|streaming| StreamingCosts {
                buffers: streaming.buffers as usize,
                write: cycles(streaming.cycles),
                spun_write: cycles(streaming.cycles * streaming.spun_factor),
            }),
            messages: machine.queue.as_ref().map(|queue| MessageCosts {
                buffer_words: queue.words,
                word: cycles(queue.word_cycles),
                network: cycles(queue.message_cycles),
                hop: cycles(queue.hop_cycles),
            }),
        })
    }

    pub(super) const fn cores(&self) -> u32 {
        self.cores
    }

    /// Returns the time of this many cycles.
    pub(super) fn cycles(&self, count: f64) -> Time {
        picoseconds(count * self.cycle_ns)
    }

    /// Returns the distance between two cores.
    pub(super) fn distance(&self, a: u32, b: u32) -> usize {
        self.distances[(a * self.cores + b) as usize].into()
    }

    /// Returns the time of an operation on a line in a state, at a distance.
    pub(super) fn access(&self, access: Access, state: State, distance: usize) -> Time {
        let column = STATES.iter().position(|&known| known == state).unwrap_or(0);
        self.accesses[access.row()][column][distance]
    }
}
