//! The state that the PEs of a simulation share: memory, mail, and parcels in transit.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::HashMap,
};

use consort_fabric::{
    Capabilities, Channel, Credit, Notification, Place, Rank, Signal, Span, Step,
};

use crate::{
    account::Account,
    costs::{Costs, Site},
    engine::{Engine, Time, What},
    mail::{Mail, Message, Post, Remote},
    trace::Recorder,
};

/// Data or a signal on its way to a PE.
#[derive(Debug)]
pub(crate) enum Parcel {
    Signal {
        call: u64,
        channel: Channel,
        step: Step,
    },
    Message {
        call: u64,
        channel: Channel,
        step: Step,
        data: Vec<u8>,
    },
    Taken,
    Exposure {
        call: u64,
        number: u32,
        remote: Remote,
    },
    Detached,
    Credit {
        credit: Credit,
        quarter: u64,
    },
    Put {
        place: Place,
        at: usize,
        data: Vec<u8>,
        notify: Notify,
    },
    /// A change of a word of the heap.
    HeapSignal(HeapSignal),
    Notification(Notification),
    Acknowledged {
        from: Rank,
        number: u64,
    },
}

/// The notification that a put delivers at its target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notify {
    Nothing,
    Signal { call: u64, channel: Channel, step: Step },
    Word(HeapSignal),
}

/// A change of the word at an offset of the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapSignal {
    pub(crate) word: usize,
    pub(crate) how: Signal,
}

impl Parcel {
    fn bytes(&self) -> usize {
        match self {
            Self::Message { data, .. } | Self::Put { data, .. } => data.len(),
            _ => 0,
        }
    }
}

/// A parcel with its sender and receiver, and whether it has reached the receiver's interface.
#[derive(Debug)]
struct InTransit {
    from: Rank,
    to: Rank,
    has_come: bool,
    parcel: Parcel,
}

/// The state of one PE.
#[derive(Debug)]
pub(crate) struct PeState {
    pub(crate) mail: RefCell<Mail>,
    pub(crate) source: RefCell<Vec<u8>>,
    pub(crate) target: RefCell<Vec<u8>>,
    pub(crate) accumulator: RefCell<Vec<u8>>,
    pub(crate) incoming: RefCell<Vec<u8>>,
    pub(crate) heap: RefCell<Vec<u8>>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// The largest sizes of scratch memory and of the message buffer, in bytes.
    scratch_bytes: usize,
    buffer_bytes: usize,
    pub(crate) post: Post,
    pub(crate) counters: RefCell<HashMap<(u64, u32), u64>>,
    pub(crate) account: Account,
    /// The time when all of this PE's puts have landed.
    pub(crate) puts_landed: Cell<Time>,
    /// The time when the acknowledgements of all these puts have come back.
    pub(crate) puts_acknowledged: Cell<Time>,
    /// The earliest time at which data sent after the last fence may arrive.
    pub(crate) fenced: Cell<Time>,
}

impl PeState {
    /// Returns the state of a PE before its first call.
    fn new(window: u64, heap_bytes: usize, scratch_bytes: usize, buffer_bytes: usize) -> Self {
        Self {
            mail: RefCell::new(Mail::new(window)),
            source: RefCell::default(),
            target: RefCell::default(),
            accumulator: RefCell::default(),
            incoming: RefCell::default(),
            heap: RefCell::new(vec![0; heap_bytes]),
            buffer: RefCell::default(),
            scratch_bytes,
            buffer_bytes,
            post: Post::default(),
            counters: RefCell::default(),
            account: Account::default(),
            puts_landed: Cell::default(),
            puts_acknowledged: Cell::default(),
            fenced: Cell::default(),
        }
    }

    /// Returns the memory of a place.
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

    /// Returns the memory of a place, at least `end` bytes long. Scratch memory and the message
    /// buffer grow when they are used. Otherwise the unused memory of thousands of PEs would fill
    /// the host's memory.
    fn up_to(&self, place: Place, end: usize) -> RefMut<'_, Vec<u8>> {
        let most = match place {
            Place::Accumulator | Place::Incoming => self.scratch_bytes,
            Place::Buffer => self.buffer_bytes,
            Place::Source | Place::Target | Place::Heap => 0,
        };
        let mut bytes = self.place(place).borrow_mut();
        if bytes.len() < end && end <= most {
            bytes.resize(end, 0);
        }
        bytes
    }

    /// Copies the bytes of a span.
    pub(crate) fn read(&self, span: Span) -> Vec<u8> {
        let end = span.at + span.bytes;
        self.up_to(span.place, end)[span.at..end].to_vec()
    }

    /// Writes the bytes of a span.
    pub(crate) fn write(&self, place: Place, at: usize, data: &[u8]) {
        let end = at + data.len();
        self.up_to(place, end)[at..end].copy_from_slice(data);
    }

    /// Returns the word of the heap at byte offset `at`.
    pub(crate) fn word(&self, at: usize) -> u64 {
        let heap = self.heap.borrow();
        let mut word = [0; 8];
        word.copy_from_slice(&heap[at..at + 8]);
        u64::from_ne_bytes(word)
    }

    pub(crate) fn set_word(&self, at: usize, value: u64) {
        self.write(Place::Heap, at, &value.to_ne_bytes());
    }

    fn signal(&self, HeapSignal { word, how }: HeapSignal) {
        let value = match how {
            Signal::Set(value) => value,
            Signal::Add(by) => self.word(word).wrapping_add(by),
        };
        self.set_word(word, value);
    }
}

/// The whole state of a simulation.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) costs: Costs,
    pub(crate) recorder: Recorder,
    pub(crate) locals: Vec<PeState>,
    /// The parcels in transit, by number. Numbers are reused.
    in_transit: RefCell<Vec<Option<InTransit>>>,
    free: RefCell<Vec<u32>>,
    /// The number of PEs that wait in the present alignment, and the number of past alignments.
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
        let local = || PeState::new(window, heap_bytes, scratch_bytes, buffer_bytes);
        Self {
            engine,
            costs,
            recorder,
            locals: (0..pes).map(|_| local()).collect(),
            in_transit: RefCell::default(),
            free: RefCell::default(),
            aligned: Cell::default(),
        }
    }

    /// Waits until all PEs have called this.
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

    pub(crate) fn local(&self, pe: Rank) -> &PeState {
        &self.locals[pe.index()]
    }

    /// Returns the site of an operation of `pe`: its engine and account.
    pub(crate) fn site(&self, pe: Rank) -> Site<'_> {
        Site { engine: &self.engine, account: &self.local(pe).account, me: pe.0 }
    }

    /// Makes `parcel` arrive at `to` at a time.
    pub(crate) fn post(&self, from: Rank, to: Rank, at: Time, parcel: Parcel) {
        let mut in_transit = self.in_transit.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| {
            in_transit.push(None);
            u32::try_from(in_transit.len() - 1)
                .expect("fewer than 4 billion parcels are in transit")
        });
        in_transit[number as usize] = Some(InTransit { from, to, has_come: false, parcel });
        self.engine.at(at, What::Arrive(number));
    }

    /// Delivers a parcel, and wakes the PE in case it waits for the parcel.
    pub(crate) fn arrive(&self, number: u32) {
        let mut in_transit = self.in_transit.borrow_mut();
        let Some(under_way) = &mut in_transit[number as usize] else { return };
        if !under_way.has_come {
            under_way.has_come = true;
            let (now, bytes) = (self.engine.now(), under_way.parcel.bytes());
            let handed_on = self.costs.hands_on(now, under_way.from, under_way.to, bytes);
            if handed_on > now
                && !matches!(under_way.parcel, Parcel::Put { notify: Notify::Nothing, .. })
            {
                return self.engine.at(handed_on, What::Arrive(number));
            }
        }
        let taken = in_transit[number as usize].take();
        drop(in_transit);
        self.free.borrow_mut().push(number);
        let Some(InTransit { from, to, parcel, .. }) = taken else { return };
        let local = self.local(to);
        let mut mail = local.mail.borrow_mut();
        match parcel {
            Parcel::Signal { call, channel, step } => mail.signal(from, call, channel, step),
            Parcel::Message { call, channel, step, data } => {
                mail.put(channel, Message { from, call, step, data });
            }
            Parcel::Taken => mail.taken += 1,
            Parcel::Exposure { call, number, remote } => mail.expose(call, from, number, remote),
            Parcel::Detached => mail.detached += 1,
            Parcel::Credit { credit, quarter } => mail.credit(from, credit, quarter),
            Parcel::Put { place, at, data, notify } => {
                local.write(place, at, &data);
                match notify {
                    Notify::Nothing => (),
                    Notify::Signal { call, channel, step } => {
                        mail.signal(from, call, channel, step);
                    }
                    Notify::Word(signal) => local.signal(signal),
                }
            }
            Parcel::Notification(notification) => {
                local.post.notifications.borrow_mut().push_back((notification, self.engine.now()));
            }
            Parcel::Acknowledged { from, number } => {
                local.post.acknowledged.borrow_mut().insert(from, number);
            }
            Parcel::HeapSignal(signal) => local.signal(signal),
        }
        drop(mail);
        self.engine.wake(to.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> PeState {
        PeState::new(16, 0, 16, 32)
    }

    #[test]
    fn scratch_memory_grows_as_it_is_used() {
        let local = local();
        assert_eq!(local.read(Span::buffer(30, 2)), [0, 0]);
        local.write(Place::Accumulator, 2, &[7]);
        assert_eq!(local.read(Span::accumulator(4)), [0, 0, 7, 0]);
        assert_eq!(local.accumulator.borrow().len(), 4);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn write_past_scratch_memory_panics() {
        local().write(Place::Incoming, 9, &[0; 8]);
    }
}
