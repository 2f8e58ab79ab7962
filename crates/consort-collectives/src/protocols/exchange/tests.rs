//! Tests of rounds: buffers, the order of sends and receives, and lengths past 32 bits. The
//! conformance suite tests their execution; its small fabric has inboxes of any size.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
};

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Channel, Collective, OperatorClass, Query, Rank, Span, Step,
    SyncModes,
};

use super::{Buffers, OnReceive, Round, Rounds, act::Act, cursor::Acts};
use crate::{
    Algorithm, Setting,
    algorithm::{Visitor, schedule},
    registry,
};

/// Returns a setting of PE 0, on a fabric with `lines` lines for the algorithm.
pub(crate) fn setting(
    collective: Collective,
    pes: u32,
    bytes: usize,
    lines: u32,
    buffered: bool,
) -> Setting {
    let query = Query {
        collective,
        sync: SyncModes::MINE,
        pes,
        bytes: bytes as u64,
        operator: OperatorClass::Ordered,
        symmetric: false,
    };
    let capabilities = Capabilities {
        exposes: false,
        buffered,
        ..Capabilities::with_memory(Setting::first_channel(collective, pes) + lines, 1024, 0)
    };
    let call = CallSpec { element_bytes: 1, ..CallSpec::from(&query) };
    Setting::of(call, capabilities)
}

/// Returns the buffers in an inbox that is large enough.
fn fits(setting: &Setting, messages: u32, longest: usize, spans: u32, credits: u32) -> Buffers {
    Buffers::new(setting, messages, longest, spans, credits).expect("it fits")
}

#[test]
fn a_message_that_fits_needs_no_credit_and_no_division() {
    let setting = setting(Collective::AllGather, 2, 8, 9, true);
    assert_eq!(fits(&setting, 1, 504, 1, 1).chunks(504), 1);
    assert_eq!(fits(&setting, 1, 505, 1, 1).chunks(505), 5);
    assert_eq!(fits(&setting, 3, 168, 1, 1).chunks(168), 1);
    assert_eq!(fits(&setting, 4, 168, 1, 1).chunks(168), 2);
    assert_eq!(Buffers::new(&setting, 3, 168, 9, 1), None);
    assert_eq!(names_of_exchange(&setting, 1, 25), ["Send", "Copy", "Rece"]);
}

/// Returns the operations of a round that exchanges `bytes` with PE 1 and copies `bytes`, in calls
/// of at most `messages` messages.
fn names_of_exchange(setting: &Setting, messages: u32, bytes: usize) -> Vec<String> {
    let exchange = Round::at(0, 0).send(Rank(1), [Span::source(0, bytes)]);
    let mut rounds = vec![exchange.receive(Rank(1), [Span::target(0, bytes)], OnReceive::Stores)];
    Round::copy_first(&mut rounds, Span::target(bytes, bytes), Span::source(0, bytes));
    let program = Rounds::new(setting, &fits(setting, messages, bytes, 1, 1), rounds);
    let (mut cursor, mut names) = (program.cursor(), Vec::new());
    while let Some(act) = cursor.next() {
        names.push(format!("{act:?}")[..4].to_owned());
    }
    names
}

#[test]
fn few_words_are_exchanged_pairwise_in_blocking_calls_of_buffered_fabrics() {
    let buffered = setting(Collective::AllGather, 2, 8, 9, true);
    for bytes in [1, 8, 24] {
        assert_eq!(names_of_exchange(&buffered, 1, bytes), ["Copy", "Exch"], "{bytes} B");
    }
    let call = CallSpec { nonblocking: true, ..buffered.call };
    let apart = ["Send", "Copy", "Rece"];
    assert_eq!(names_of_exchange(&Setting { call, ..buffered }, 1, 8), apart);
    let small = setting(Collective::AllGather, 2, 8, 3, true);
    let divided = names_of_exchange(&small, 4, 24);
    assert!(!divided.contains(&"Exch".to_owned()), "{divided:?}");
    let unbuffered = setting(Collective::AllGather, 2, 8, 9, false);
    assert_eq!(names_of_exchange(&unbuffered, 1, 8).len(), 3);
}

/// Returns the rounds of all PEs, if the algorithm consists of rounds and can serve the setting.
struct RoundsVisitor<'c>(Setting, &'c Candidate);

impl Visitor for RoundsVisitor<'_> {
    type Output = Option<Vec<Rounds>>;
    fn visit<A: Algorithm>(self) -> Self::Output {
        let Self(setting, candidate) = self;
        let rounds = |rank| {
            let schedule = schedule::<A>(&setting.at(rank), candidate).ok()?;
            (&schedule as &dyn Any).downcast_ref::<Rounds>().cloned()
        };
        (0..setting.call.pes).map(Rank).map(rounds).collect()
    }
}

/// A credit, with the PE that gets it.
type Credit = (Rank, Channel, Step);

/// Returns the credits that PEs await and those that PEs give. Panics if two PEs give credits on
/// the same channel of one PE.
fn credits(programs: &[Rounds]) -> [BTreeSet<Credit>; 2] {
    let (mut awaited, mut given) = (BTreeSet::new(), BTreeSet::new());
    let mut givers = BTreeMap::new();
    for (rank, program) in (0..).map(Rank).zip(programs) {
        let mut cursor = program.cursor();
        while let Some(act) = cursor.next() {
            match *act {
                Act::AwaitCredit(channel, step) => assert!(awaited.insert((rank, channel, step))),
                Act::Credit(to, channel, step) => {
                    assert!(given.insert((to, channel, step)), "a credit is given once");
                    let giver = *givers.entry((to, channel)).or_insert(rank);
                    assert_eq!(giver, rank, "another PE gives PE {to} credits on {channel:?}");
                }
                _ => {}
            }
        }
    }
    [awaited, given]
}

#[test]
fn every_credit_is_given_to_the_pe_that_awaits_it() {
    let mut with_credits = BTreeSet::new();
    for (collective, name, _) in registry::revisions() {
        let description = registry::describe(collective, name).expect("it is registered");
        for candidate in registry::of_values(&description) {
            for (pes, lines) in (2..10).flat_map(|pes| [8, 16, 32].map(|lines| (pes, lines))) {
                let mut setting = setting(collective, pes, 256, lines, true);
                setting.call.class = OperatorClass::Commutative; // which more algorithms serve
                let visitor = RoundsVisitor(setting, &candidate);
                let programs = registry::visit(collective, name, visitor).expect("it is known");
                let [awaited, given] = credits(&programs.unwrap_or_default());
                assert_eq!(awaited, given, "{collective} by {candidate}, {pes} PEs, {lines} lines");
                if !given.is_empty() {
                    with_credits.insert((collective, name));
                }
            }
        }
    }
    for used in [(Collective::AllGather, "bruck"), (Collective::AllToAll, "bruck")] {
        assert!(with_credits.contains(&used), "{used:?} uses credits");
    }
}

#[test]
fn some_send_first_and_some_receive_first_in_every_ring() {
    for pes in (2..20).chain([32, 33, 64]) {
        for distance in 1..pes {
            for rank in (0..pes).map(Rank) {
                let (mut node, mut firsts) = (rank, Vec::new());
                while firsts.is_empty() || node != rank {
                    let to = node.plus(distance as usize, pes as usize);
                    let from = node.plus((pes - distance) as usize, pes as usize);
                    firsts.push(super::sends_first(node, to, from, pes));
                    node = to;
                }
                assert!(firsts.contains(&true) && firsts.contains(&false), "{pes} {distance}");
            }
        }
    }
}

#[test]
fn offsets_past_32_bits_are_exact() {
    let (bytes, lines) = (5 << 30 | 8, 1 << 16);
    let setting = setting(Collective::Gather, 2, bytes, lines, true);
    let buffers = fits(&setting, 1, bytes, 1, 1);
    let round = Round::at(0, 0).send(Rank(1), [setting.target_block(1)]);
    let program = Rounds::new(&setting, &buffers, vec![round]);
    let (mut next, mut steps) = (bytes, 0..);
    let mut cursor = program.cursor();
    while let Some(act) = cursor.next() {
        if let Act::Send(_, channel, step, span) = *act {
            assert_eq!((Some(step), span), (steps.next(), Span::target(next, span.bytes)));
            let end = channel.index() + u32::try_from(super::lines(span.bytes)).expect("few");
            assert!(end <= setting.capabilities.inbox_channels);
            next += span.bytes;
        }
    }
    assert_eq!(next, 2 * bytes);
}

pub(crate) fn stored_len(program: &Rounds) -> usize {
    match program.acts() {
        Acts::Listed(acts) => acts.len(),
        Acts::Divided(sequence) => sequence.stored_len(),
    }
}

/// Returns the stored form of a message of `bytes` from PE 0 to PE 1.
fn parts_of(bytes: usize) -> Acts {
    let setting = setting(Collective::Gather, 2, bytes, 1 << 10, true);
    let buffers = fits(&setting, 1, bytes, 1, 1);
    let message = Round::at(0, 0).send(Rank(1), [setting.target_block(1)]);
    Rounds::new(&setting, &buffers, vec![message]).acts().clone()
}

#[test]
fn program_size_is_independent_of_length() {
    assert!(matches!(parts_of(56), Acts::Listed(acts) if acts.len() == 1));
    for bytes in [1 << 20, 1 << 30, 1 << 40] {
        let Acts::Divided(sequence) = parts_of(bytes) else { panic!("{bytes} B are divided") };
        assert_eq!(sequence.stored_len(), 1, "{bytes} B");
    }
}
