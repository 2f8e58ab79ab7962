//! Plays the programs of all PEs, in several orders, on bytes that tell where they come from.
//!
//! A byte stands for the list of those that were combined into it, each a PE and a place in its
//! source, so that the order shows. A signal replaces what its slot holds; a message must find its
//! lines free.

use std::{
    collections::{BTreeMap, HashMap},
    iter::Peekable,
};

use consort_fabric::{Capabilities, Collective, OperatorClass, Place, Query, Rank, Span, Sync};

use super::{Act, Acts, Buffers, Keep, Parts, Program, Round, lines};
use crate::Setting;

/// A list of bytes that were combined: a polynomial of them at some number, which is a word's hash,
/// and that number to the power of their count. (Rabin and Karp 1987.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Byte {
    hash: u64,
    power: u64,
}

impl Byte {
    /// What PE `rank` contributes at a place of its source.
    pub(crate) const fn of(rank: u32, at: usize) -> Self {
        let hash = ((rank as u64) << 32 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { hash, power: 0x0100_0000_01b3 }
    }

    /// This and then another.
    pub(crate) const fn then(self, next: Self) -> Self {
        let hash = self.hash.wrapping_mul(next.power).wrapping_add(next.hash);
        Self { hash, power: self.power.wrapping_mul(next.power) }
    }
}

/// Numbers of PEs to try: all small ones, and some larger.
pub(crate) fn teams() -> impl Iterator<Item = u32> {
    (1..20).chain([32, 33, 64])
}

/// A setting of PE 0, on a fabric with so many lines for the algorithm.
pub(crate) fn setting(
    collective: Collective,
    pes: u32,
    bytes: usize,
    lines: u32,
    buffered: bool,
) -> Setting {
    let query = Query {
        collective,
        sync: Sync::MINE,
        pes,
        bytes: bytes as u64,
        operator: OperatorClass::Ordered,
        symmetric: false,
    };
    let capabilities = Capabilities {
        inbox_lines: Setting::first_slot(collective, pes) + lines,
        scratch_bytes: 1024,
        buffer_bytes: 0,
        lending: false,
        buffered,
    };
    Setting { element_bytes: 1, ..Setting::of(&query, capabilities) }
}

/// One PE: its buffers, its inbox, and how far it is in its program.
struct Pe<'p> {
    places: HashMap<Place, Vec<Byte>>,
    signals: HashMap<u32, u32>,
    /// By the first of their lines.
    messages: BTreeMap<u32, (u32, Vec<Byte>)>,
    acts: Peekable<Acts<'p>>,
    /// Of a send that lasts until it is received.
    sent: bool,
}

impl Pe<'_> {
    fn read(&self, span: Span) -> Vec<Byte> {
        self.places[&span.place][span.at..span.at + span.bytes].to_vec()
    }

    fn write(&mut self, span: Span, bytes: &[Byte]) {
        assert_ne!(span.place, Place::Source);
        let place = self.places.get_mut(&span.place).expect("every place");
        place[span.at..span.at + span.bytes].copy_from_slice(bytes);
    }
}

/// Plays the programs of all PEs of a setting; what is in everyone's target then. PEs go on as far
/// as they can, the first one first, the last one first, and an operation each in turn.
///
/// # Panics
/// When they come to no end, or a message comes over one that is not taken.
pub(crate) fn play(setting: &Setting, program: impl Fn(Setting) -> Program) -> Vec<Vec<Byte>> {
    let programs: Vec<_> = (0..setting.pes).map(|rank| program(setting.at(Rank(rank)))).collect();
    assert!(programs.iter().all(|program| program.steps == programs[0].steps));
    let orders = [(false, usize::MAX), (true, usize::MAX), (false, 1)];
    let mut all = orders.map(|order| play_in(setting, &programs, order));
    assert!(all.iter().all(|targets| *targets == all[0]), "the order matters: {setting:?}");
    std::mem::take(&mut all[0])
}

fn play_in(
    setting: &Setting,
    programs: &[Program],
    (backwards, acts): (bool, usize),
) -> Vec<Vec<Byte>> {
    let Setting { collective, pes, bytes, root, .. } = *setting;
    let pe = |(rank, program): (u32, _)| {
        let source = collective.source_blocks(pes, rank == root.0) as usize * bytes;
        let source = (0..source).map(|at| Byte::of(rank, at)).collect();
        let target = collective.target_blocks(pes, rank == root.0) as usize * bytes;
        let scratch = vec![Byte::default(); setting.capabilities.scratch_bytes];
        Pe {
            places: HashMap::from([
                (Place::Source, source),
                (Place::Target, vec![Byte::default(); target]),
                (Place::Accumulator, scratch.clone()),
                (Place::Incoming, scratch),
            ]),
            signals: HashMap::new(),
            messages: BTreeMap::new(),
            acts: Program::acts(program).peekable(),
            sent: false,
        }
    };
    let mut all: Vec<Pe<'_>> = (0..pes).zip(programs).map(pe).collect();
    loop {
        let mut moved = false;
        for index in 0..programs.len() {
            let rank = if backwards { programs.len() - 1 - index } else { index };
            let mut left = acts;
            while left > 0
                && let Some(&act) = all[rank].acts.peek()
            {
                let was_sent = all[rank].sent;
                let is_done = does(&mut all, rank, act, setting.capabilities.buffered);
                moved |= is_done || all[rank].sent != was_sent;
                if !is_done {
                    break;
                }
                all[rank].acts.next();
                left -= 1;
            }
        }
        if !moved {
            break;
        }
    }
    for (rank, pe) in all.iter_mut().enumerate() {
        let next = pe.acts.peek();
        assert!(next.is_none(), "PE {rank} of {pes} comes to no end: {next:?}");
        assert!(pe.messages.is_empty(), "PE {rank} of {pes} does not take all");
    }
    all.iter().map(|pe| pe.places[&Place::Target].clone()).collect()
}

/// Does an operation of a PE, if it need not wait.
fn does(all: &mut [Pe<'_>], rank: usize, act: Act, buffered: bool) -> bool {
    let me = &mut all[rank];
    let mut taken = |slot: consort_fabric::Slot, step: u32, bytes: usize| {
        let is_here = me.messages.get(&slot.index()).is_some_and(|&(its, _)| its == step);
        let message = is_here.then(|| me.messages.remove(&slot.index())).flatten()?.1;
        assert_eq!(message.len(), bytes, "a message is as long as its target");
        Some(message)
    };
    let joined = |left: &[Byte], right: &[Byte]| -> Vec<Byte> {
        left.iter().zip(right).map(|(left, &right)| left.then(right)).collect()
    };
    match act {
        Act::Wait(slot, step) => me.signals.get(&slot.index()).is_some_and(|&seen| seen >= step),
        Act::Tell(to, slot, step) => {
            all[to.index()].signals.insert(slot.index(), step);
            true
        }
        Act::Copy { target, source } => {
            let bytes = me.read(source);
            me.write(target, &bytes);
            true
        }
        Act::Send(to, slot, step, source) => {
            let bytes = me.read(source);
            let was_sent = std::mem::replace(&mut me.sent, !buffered);
            let inbox = &mut all[to.index()].messages;
            if was_sent {
                let is_taken = inbox.get(&slot.index()).is_none_or(|&(its, _)| its != step);
                all[rank].sent = !is_taken;
                return is_taken;
            }
            let (first, count) = (slot.index(), u32::try_from(lines(bytes.len())).expect("few"));
            for (&other, (_, bytes)) in inbox.iter() {
                let end = other + u32::try_from(lines(bytes.len())).expect("few");
                assert!(end <= first || first + count <= other, "a message is not taken");
            }
            inbox.insert(first, (step, bytes));
            buffered
        }
        Act::Receive(slot, step, target) => {
            let Some(message) = taken(slot, step, target.bytes) else { return false };
            me.write(target, &message);
            true
        }
        Act::ReceiveCombine { slot, step, left, target } => {
            let Some(message) = taken(slot, step, target.bytes) else { return false };
            let sum = joined(&me.read(left), &message);
            me.write(target, &sum);
            true
        }
        Act::Combine { target, left, right } => {
            let sum = joined(&me.read(left), &me.read(right));
            me.write(target, &sum);
            true
        }
    }
}

/// Whether an inbox of so many lines can serve.
fn fits(setting: &Setting, messages: u32, longest: usize, spans: u32, words: u32) -> Buffers {
    Buffers::new(setting, messages, longest, spans, words).expect("it fits")
}

#[test]
fn a_message_that_fits_needs_no_word_and_no_division() {
    let setting = setting(Collective::AllGather, 2, 8, 9, true);
    assert_eq!(fits(&setting, 1, 504, 1, 1).chunks(504), 1);
    assert_eq!(fits(&setting, 1, 505, 1, 1).chunks(505), 5);
    assert_eq!(fits(&setting, 3, 168, 1, 1).chunks(168), 1);
    assert_eq!(fits(&setting, 4, 168, 1, 1).chunks(168), 2);
    assert_eq!(Buffers::new(&setting, 3, 168, 9, 1), None);
    let (to, span) = (Rank(1), |place: fn(usize, usize) -> Span| vec![place(0, 8)]);
    let received = Some((to, span(Span::target), Keep::Stores));
    let mut rounds = vec![Round::alike(0, 0, Some((to, span(Span::source))), received)];
    Round::copy_first(&mut rounds, Span::target(8, 8), Span::source(0, 8));
    let program = Program::new(&setting, &fits(&setting, 1, 8, 1, 1), rounds);
    let names = program.acts().map(|act| format!("{act:?}"));
    let names: Vec<_> = names.map(|name| name[..4].to_owned()).collect();
    assert_eq!(names, ["Send", "Copy", "Rece"]);
}

#[test]
fn some_send_first_and_some_receive_first_in_every_ring() {
    for pes in teams().filter(|&pes| pes > 1) {
        for distance in 1..pes {
            for rank in (0..pes).map(Rank) {
                let (mut node, mut firsts) = (rank, Vec::new());
                while firsts.is_empty() || node != rank {
                    let to = node.plus(distance.into(), pes);
                    let from = node.plus((pes - distance).into(), pes);
                    firsts.push(super::sends_first(node, to, from, pes));
                    node = to;
                }
                assert!(firsts.contains(&true) && firsts.contains(&false), "{pes} {distance}");
            }
        }
    }
}

/// Rounds in which each PE gives each other one its block, in two spans.
fn exchange(setting: Setting) -> Program {
    let Setting { rank, pes, bytes, .. } = setting;
    let buffers = fits(&setting, pes - 1, bytes, 2, pes - 1);
    let halves = |span: Span| {
        let first = Span { bytes: bytes / 3, ..span };
        let rest = Span { at: span.at + first.bytes, bytes: bytes - first.bytes, ..span };
        vec![first, rest]
    };
    let round = |distance: u32| {
        let (to, from) = (rank.plus(distance.into(), pes), rank.plus((pes - distance).into(), pes));
        let sent = (to, halves(setting.source_block(to.0)));
        let received = (from, halves(setting.target_block(from.0)), Keep::Stores);
        let first = (distance - 1) * buffers.chunks(bytes);
        Round::alike(first, distance - 1, Some(sent), Some(received))
    };
    let own = (setting.target_block(rank.0), setting.source_block(rank.0));
    let own = Round { copied: vec![own], ..Round::default() };
    Program::new(&setting, &buffers, (1..pes).map(round).chain([own]).collect())
}

#[test]
fn every_distance_and_any_inbox() {
    for pes in (2..14).chain([32]) {
        for (bytes, lines) in [(0, 8), (1, 6), (8, 300), (57, 4), (200, 12), (300, 200)] {
            for buffered in [true, false] {
                let lines = lines + pes;
                let setting = setting(Collective::Exchange, pes, bytes, lines, buffered);
                let targets = play(&setting, exchange);
                for (rank, target) in (0..pes).zip(targets) {
                    let from = |block: u32, at| Byte::of(block, rank as usize * bytes + at);
                    let blocks = |block| (0..bytes).map(move |at| from(block, at));
                    assert!(target.into_iter().eq((0..pes).flat_map(blocks)), "{pes} {bytes}");
                }
            }
        }
    }
}

/// A scan by doubling, in which low ranks receive in few rounds, and the last ones send in few.
fn scan(setting: Setting) -> Program {
    let Setting { rank, pes, bytes, .. } = setting;
    let words = pes.next_power_of_two().ilog2();
    let buffers = fits(&setting, words, bytes, 1, words);
    let (own, sum) = (Span::source(0, bytes), Span::target(0, bytes));
    let mut rounds = vec![Round { copied: vec![(sum, own)], ..Round::default() }];
    for round in 0..words {
        let distance = 1 << round;
        let sent = (rank.0 + distance < pes).then(|| (Rank(rank.0 + distance), vec![sum]));
        let from = rank.0.checked_sub(distance).map(Rank);
        let received = from.map(|from| (from, vec![sum], Keep::Before(vec![sum])));
        rounds.push(Round::alike(round * buffers.chunks(bytes), round, sent, received));
    }
    Program::new(&setting, &buffers, rounds)
}

#[test]
fn rounds_that_some_leave_out_are_counted_by_all() {
    for pes in teams() {
        for (bytes, lines) in [(8, 3), (8, 100), (100, 2), (300, 4), (1100, 40)] {
            for buffered in [true, false] {
                let setting = setting(Collective::Scan, pes, bytes, lines + 6, buffered);
                for (rank, target) in (0..pes).zip(play(&setting, scan)) {
                    let sum = |at| {
                        let from = (0..=rank).map(|from| Byte::of(from, at));
                        from.reduce(Byte::then).expect("at least one")
                    };
                    assert!(target.into_iter().eq((0..bytes).map(sum)), "{pes} {bytes} {rank}");
                }
            }
        }
    }
}

#[test]
fn offsets_past_32_bits_are_exact() {
    let (bytes, lines) = (5 << 30 | 8, 1 << 16);
    let setting = setting(Collective::Gather, 2, bytes, lines, true);
    let buffers = fits(&setting, 1, bytes, 1, 1);
    let spans = vec![setting.target_block(1)];
    let round = Round::alike(0, 0, Some((Rank(1), spans)), None);
    let program = Program::new(&setting, &buffers, vec![round]);
    let (mut next, mut steps) = (bytes, 0..);
    for act in program.acts() {
        if let Act::Send(_, slot, step, span) = act {
            assert_eq!((Some(step), span), (steps.next(), Span::target(next, span.bytes)));
            let end = slot.index() + u32::try_from(super::lines(span.bytes)).expect("few");
            assert!(end <= setting.capabilities.inbox_lines);
            next += span.bytes;
        }
    }
    assert_eq!(next, 2 * bytes);
}

/// How many operations or rounds a program keeps.
pub(crate) fn kept(program: &Program) -> usize {
    match &program.parts {
        Parts::Listed(acts) => acts.len(),
        Parts::Cut(sequence) => sequence.kept(),
    }
}

/// A message of `bytes` from PE 0 to PE 1, and what a program keeps of it.
fn parts_of(bytes: usize) -> Parts {
    let setting = setting(Collective::Gather, 2, bytes, 1 << 10, true);
    let buffers = fits(&setting, 1, bytes, 1, 1);
    let message = Round::alike(0, 0, Some((Rank(1), vec![setting.target_block(1)])), None);
    Program::new(&setting, &buffers, vec![message]).parts
}

#[test]
fn a_program_keeps_as_much_of_any_message() {
    assert!(matches!(parts_of(56), Parts::Listed(acts) if acts.len() == 1));
    for bytes in [1 << 20, 1 << 30, 1 << 40] {
        let Parts::Cut(sequence) = parts_of(bytes) else { panic!("{bytes} B are divided") };
        assert_eq!(sequence.kept(), 1, "{bytes} B");
    }
}
