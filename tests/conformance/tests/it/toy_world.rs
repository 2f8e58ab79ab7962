//! The state that the PEs of the toy fabric share, and the order in which they run.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use consort_fabric::{Capabilities, Channel, Place, Rank, Span, Step};

/// Sent messages that were not taken yet, by receiver, call and channel.
pub(crate) type Sent = BTreeMap<(Rank, u64, Channel), (Step, Vec<u8>)>;

/// The contributions to a collective so far, by contributor.
pub(crate) type Contributed = BTreeMap<u32, Vec<u8>>;

/// The state that the PEs share. A key ends with the number of a call, except for memory.
pub(crate) struct World {
    pub(crate) pes: u32,
    pub(crate) capabilities: Capabilities,
    /// Whether PEs run one operation each in turn, or each runs as far as it can.
    pub(crate) in_turn: bool,
    pub(crate) memory: RefCell<HashMap<(Rank, Place), Vec<u8>>>,
    pub(crate) messages: RefCell<Sent>,
    /// The latest step that was signalled, by receiver and channel.
    pub(crate) signals: RefCell<HashMap<(Rank, Channel, u64), Step>>,
    /// Buffers that are exposed but not attached, by the PE that may attach and the owner.
    pub(crate) exposed: RefCell<HashMap<(Rank, Rank, u32, u64), Span>>,
    /// The number of buffers that a PE has exposed and that are not detached.
    pub(crate) undetached: RefCell<HashMap<(Rank, u64), u32>>,
    pub(crate) counters: RefCell<HashMap<(Rank, u32, u64), u64>>,
    /// Contributions to vendor collectives, by whether only leaders take part.
    pub(crate) contributed: RefCell<HashMap<(bool, u64), Contributed>>,
    /// The number of events so far.
    events: Cell<u64>,
}

impl World {
    pub(crate) fn new(pes: u32, capabilities: Capabilities, heap_bytes: usize) -> Self {
        let lengths = [
            (Place::Accumulator, capabilities.scratch_bytes),
            (Place::Incoming, capabilities.scratch_bytes),
            (Place::Buffer, capabilities.buffer_bytes),
            (Place::Heap, heap_bytes),
        ];
        let of = |rank| lengths.map(|(place, bytes)| ((Rank(rank), place), vec![0; bytes]));
        Self {
            pes,
            capabilities,
            in_turn: false,
            memory: RefCell::new((0..pes).flat_map(of).collect()),
            messages: RefCell::default(),
            signals: RefCell::default(),
            exposed: RefCell::default(),
            undetached: RefCell::default(),
            counters: RefCell::default(),
            contributed: RefCell::default(),
            events: Cell::new(0),
        }
    }

    pub(crate) fn read(&self, pe: Rank, span: Span) -> Vec<u8> {
        self.memory.borrow()[&(pe, span.place)][span.at..span.at + span.bytes].to_vec()
    }

    pub(crate) fn write(&self, pe: Rank, place: Place, at: usize, data: &[u8]) {
        let mut memory = self.memory.borrow_mut();
        let bytes = memory.get_mut(&(pe, place)).expect("every place has memory");
        bytes[at..at + data.len()].copy_from_slice(data);
    }

    /// Records an event that other PEs may wait for.
    pub(crate) fn happens(&self) {
        self.events.set(self.events.get() + 1);
    }

    /// Waits until `test` returns a value.
    pub(crate) async fn wait_for<T>(&self, mut test: impl FnMut() -> Option<T>) -> T {
        poll_fn(|_| test().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Lets the others continue before each operation, if PEs take turns.
    pub(crate) async fn turn(&self) {
        let mut is_due = self.in_turn;
        self.happens();
        self.wait_for(|| (!std::mem::take(&mut is_due)).then_some(())).await;
        self.happens();
    }

    /// Runs the programs of all PEs, starting with the first one or the last one.
    ///
    /// # Errors
    /// The ranks of PEs that wait for each other.
    pub(crate) fn run(
        &self,
        programs: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>,
        backwards: bool,
    ) -> Result<(), Vec<usize>> {
        let mut running: Vec<_> = programs.into_iter().enumerate().collect();
        if backwards {
            running.reverse();
        }
        let mut context = Context::from_waker(Waker::noop());
        while !running.is_empty() {
            let before = (self.events.get(), running.len());
            running.retain_mut(|(_, program)| program.as_mut().poll(&mut context).is_pending());
            if before == (self.events.get(), running.len()) {
                return Err(running.iter().map(|(rank, _)| *rank).collect());
            }
        }
        Ok(())
    }
}
