//! What the PEs of a simulation share: memory, what has arrived, and what is on its way.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
};

use consort_fabric::{Capabilities, Place, Rank, Signal, Slot, Span, Step};

use crate::{
    account::Account,
    costs::{Costs, Site},
    engine::{Engine, Time, What},
    trace::Recorder,
};

/// Calls that may be under way at once, unless said otherwise.
pub(crate) const WINDOW: u64 = 16;

/// Something on its way to a PE.
#[derive(Debug)]
pub(crate) enum Parcel {
    Signal { from: Rank, call: u64, slot: Slot, step: Step },
    Message { from: Rank, call: u64, slot: Slot, step: Step, data: Vec<u8> },
    Taken,
    Loan { call: u64, from: Rank, loan: u32, lease: Lease },
    GivenBack,
    Credit { from: Rank, quarter: u64 },
    Put { place: Place, at: usize, data: Vec<u8> },
    HeapSignal { word: usize, how: Signal },
}

/// A peer's memory on loan.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub(crate) lender: Rank,
    pub(crate) span: Span,
    /// Reached without asking: nothing to give back.
    pub(crate) reached: bool,
}

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) from: Rank,
    pub(crate) call: u64,
    pub(crate) step: Step,
    pub(crate) data: Vec<u8>,
}

/// A place of a call in the window and a slot.
type Key = (u64, Slot);

/// What has arrived at one PE.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Calls that may be under way at once.
    pub(crate) window: u64,
    signals: HashMap<Key, (u64, Step, Rank)>,
    messages: HashMap<Key, VecDeque<Message>>,
    loans: HashMap<(u64, Rank, u32), Lease>,
    /// Two-sided messages that were taken.
    pub(crate) taken: u64,
    pub(crate) given_back: u64,
    /// The latest quarter that each peer gave a credit for, plus one.
    pub(crate) credits: HashMap<Rank, u64>,
}

impl Mail {
    /// The sender on `slot`, if it has got as far as `step` of `call`.
    pub(crate) fn signal(&self, call: u64, slot: Slot, step: Step) -> Option<Rank> {
        let &(latest, reached, from) = self.signals.get(&(call % self.window, slot))?;
        assert!(latest <= call, "a signal of call {latest} came before call {call} was over");
        (latest == call && reached >= step).then_some(from)
    }

    /// Takes message `step` of `call`.
    pub(crate) fn take(&mut self, call: u64, slot: Slot, step: Step) -> Option<Message> {
        let messages = self.messages.get_mut(&(call % self.window, slot))?;
        let at = messages.iter().position(|m| m.call == call && m.step == step)?;
        messages.remove(at)
    }

    pub(crate) fn take_loan(&mut self, call: u64, from: Rank, loan: u32) -> Option<Lease> {
        self.loans.remove(&(call, from, loan))
    }
}

/// One PE's part of the world.
#[derive(Debug, Default)]
pub(crate) struct Local {
    pub(crate) mail: RefCell<Mail>,
    pub(crate) source: RefCell<Vec<u8>>,
    pub(crate) target: RefCell<Vec<u8>>,
    pub(crate) accumulator: RefCell<Vec<u8>>,
    pub(crate) incoming: RefCell<Vec<u8>>,
    pub(crate) heap: RefCell<Vec<u8>>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    pub(crate) counters: RefCell<HashMap<(u64, u32), u64>>,
    pub(crate) account: Account,
    /// When the last of this PE's puts lands.
    pub(crate) puts_land: Cell<Time>,
    /// What it sends from now on arrives no earlier.
    pub(crate) fenced: Cell<Time>,
}

impl Local {
    /// The bytes of a place.
    pub(crate) fn place(&self, place: Place) -> &RefCell<Vec<u8>> {
        match place {
            Place::Source => &self.source,
            Place::Target => &self.target,
            Place::Accumulator => &self.accumulator,
            Place::Incoming => &self.incoming,
            Place::Heap => &self.heap,
            Place::Buffer => &self.buffer,
        }
    }

    /// A copy of a span's bytes. Scratch memory grows as it is used.
    pub(crate) fn read(&self, span: Span) -> Vec<u8> {
        let bytes = self.place(span.place).borrow();
        bytes[span.at..span.at + span.bytes].to_vec()
    }

    /// Writes a span's bytes.
    pub(crate) fn write(&self, place: Place, at: usize, data: &[u8]) {
        self.place(place).borrow_mut()[at..at + data.len()].copy_from_slice(data);
    }

    /// The word of the heap at byte `at`.
    pub(crate) fn word(&self, at: usize) -> u64 {
        let heap = self.heap.borrow();
        let mut word = [0; 8];
        word.copy_from_slice(&heap[at..at + 8]);
        u64::from_ne_bytes(word)
    }

    pub(crate) fn set_word(&self, at: usize, value: u64) {
        self.write(Place::Heap, at, &value.to_ne_bytes());
    }
}

/// All that is simulated.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) costs: Costs,
    pub(crate) recorder: Recorder,
    pub(crate) locals: Vec<Local>,
    /// On its way, to whom; places are used again.
    parcels: RefCell<Vec<Option<(Rank, Parcel)>>>,
    free: RefCell<Vec<u32>>,
    /// How many PEs have come to the next alignment, and how many alignments there were.
    aligned: Cell<(u32, u64)>,
}

impl World {
    pub(crate) fn new(
        engine: Engine,
        costs: Costs,
        recorder: Recorder,
        pes: u32,
        heap_bytes: usize,
        window: u64,
    ) -> Self {
        let Capabilities { scratch_bytes, buffer_bytes, .. } = costs.capabilities(pes);
        let local = || {
            let local = Local::default();
            local.mail.borrow_mut().window = window;
            local.heap.borrow_mut().resize(heap_bytes, 0);
            local.buffer.borrow_mut().resize(buffer_bytes, 0);
            local.accumulator.borrow_mut().resize(scratch_bytes, 0);
            local.incoming.borrow_mut().resize(scratch_bytes, 0);
            local
        };
        Self {
            engine,
            costs,
            recorder,
            locals: (0..pes).map(|_| local()).collect(),
            parcels: RefCell::default(),
            free: RefCell::default(),
            aligned: Cell::default(),
        }
    }

    /// Waits until all PEs are here.
    pub(crate) async fn align(&self, me: Rank) {
        let (here, before) = self.aligned.get();
        if here + 1 < self.pes() {
            self.aligned.set((here + 1, before));
            self.engine.wait(|| (self.aligned.get().1 > before).then_some(())).await;
            return;
        }
        self.aligned.set((0, before + 1));
        for peer in (0..self.pes()).filter(|&peer| peer != me.0) {
            self.engine.wake(peer);
        }
    }

    pub(crate) fn pes(&self) -> u32 {
        u32::try_from(self.locals.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn local(&self, pe: Rank) -> &Local {
        &self.locals[pe.index()]
    }

    /// Where and on whose account an operation of `pe` happens.
    pub(crate) fn site(&self, pe: Rank) -> Site<'_> {
        Site { engine: &self.engine, account: &self.local(pe).account, me: pe.0 }
    }

    /// Has `parcel` arrive at `to` at a time.
    pub(crate) fn post(&self, to: Rank, at: Time, parcel: Parcel) {
        let mut parcels = self.parcels.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| {
            parcels.push(None);
            u32::try_from(parcels.len() - 1).expect("fewer than 4 billion parcels are on their way")
        });
        parcels[number as usize] = Some((to, parcel));
        self.engine.at(at, What::Arrive(number));
    }

    /// A parcel arrives, and wakes the PE that may wait for it.
    pub(crate) fn arrive(&self, number: u32) {
        let taken = self.parcels.borrow_mut()[number as usize].take();
        self.free.borrow_mut().push(number);
        let Some((to, parcel)) = taken else { return };
        let local = self.local(to);
        let mut mail = local.mail.borrow_mut();
        let window = mail.window;
        match parcel {
            Parcel::Signal { from, call, slot, step } => {
                let seen = mail.signals.entry((call % window, slot)).or_insert((0, 0, from));
                *seen = (*seen).max((call, step, from));
            }
            Parcel::Message { from, call, slot, step, data } => {
                let messages = mail.messages.entry((call % window, slot)).or_default();
                messages.push_back(Message { from, call, step, data });
            }
            Parcel::Taken => mail.taken += 1,
            Parcel::Loan { call, from, loan, lease } => {
                mail.loans.insert((call, from, loan), lease);
            }
            Parcel::GivenBack => mail.given_back += 1,
            Parcel::Credit { from, quarter } => {
                let credit = mail.credits.entry(from).or_default();
                *credit = (*credit).max(quarter + 1);
            }
            Parcel::Put { place, at, data } => local.write(place, at, &data),
            Parcel::HeapSignal { word, how } => {
                let value = match how {
                    Signal::Set(value) => value,
                    Signal::Add(by) => local.word(word).wrapping_add(by),
                };
                local.set_word(word, value);
            }
        }
        drop(mail);
        self.engine.wake(to.0);
    }
}
