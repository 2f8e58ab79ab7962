//! Programs in which one or two PEs depart at one step.

use std::{fmt, time::Duration};

use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};
use consort_conformance::data::Random;

use super::{
    elements::Type,
    groups::{Division, group_of},
    payloads::Payload,
    program::{Call, End, Form, Program, Scene, Step},
};

/// The limit on the bytes of a block that replaces a smaller one.
const MOST_BYTES: usize = 8 << 20;

/// The delay of a late PE.
pub(super) const LATE: Duration = Duration::from_millis(700);

/// A departure of one PE from the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mutation {
    pub(super) pe: u32,
    /// The step.
    pub(super) at: usize,
    pub(super) kind: Kind,
    /// Whether the PE catches panics, and continues.
    pub(super) catches: bool,
    /// Whether the result of the PE panics when it is dropped.
    pub(super) is_armed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Skip,
    Twice,
    /// Makes this step after the next.
    Swap,
    /// Returns early.
    Leave,
    /// Returns an error.
    Fail,
    Panic(Payload),
    /// The operator panics.
    Operator(Payload),
    Length,
    Root,
    Modes,
    Type,
    /// A closure instead of a commutative operator, or the other way round.
    Class,
    Collective,
    /// The same call in another team.
    Team,
    /// Other members of a new team.
    Division,
    Late,
    DropRequest,
    ForgetRequest,
    /// Asynchronous broadcasts that are neither closed nor dropped.
    Unclosed,
}

impl Kind {
    /// Returns whether all results must be correct nevertheless.
    pub(super) fn is_harmless(self) -> bool {
        matches!(self, Self::Late | Self::DropRequest | Self::ForgetRequest)
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pe, at, kind, catches, is_armed } = self;
        write!(f, "PE {pe} at step {at}: {kind:?}")?;
        if *catches {
            f.write_str(", catches panics")?;
        }
        if *is_armed { f.write_str(", its result panics in its drop") } else { Ok(()) }
    }
}

/// The action of a PE at a turn, in addition to its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Plain,
    Late,
    Leaves,
    Fails,
    Throws(Payload),
    /// Its operators throw.
    Charged(Payload),
    Forgets,
}

/// A PE's version of a step, with its number in the program.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) number: usize,
    pub(super) step: Step,
    pub(super) act: Act,
}

/// The turns of a PE.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) turns: Vec<Turn>,
    /// The first step from which its data differs from the program's.
    pub(super) departs: Option<usize>,
    pub(super) catches: bool,
    pub(super) is_armed: bool,
}

impl Role {
    pub(super) fn of(program: &Program, pe: u32, mutations: &[Mutation]) -> Self {
        let turn =
            |(number, step): (usize, &Step)| Turn { number, step: step.clone(), act: Act::Plain };
        let mut turns: Vec<Turn> = program.steps.iter().enumerate().map(turn).collect();
        let mutation = mutations.iter().find(|mutation| mutation.pe == pe);
        let Some(&Mutation { at, kind, catches, is_armed, .. }) = mutation else {
            return Self { turns, departs: None, catches: false, is_armed: false };
        };
        match kind {
            Kind::Skip => drop(turns.remove(at)),
            Kind::Twice => turns.insert(at, turns[at].clone()),
            Kind::Swap => turns.swap(at, at + 1),
            Kind::Leave => turns[at].act = Act::Leaves,
            Kind::Fail => turns[at].act = Act::Fails,
            Kind::Panic(payload) => turns[at].act = Act::Throws(payload),
            Kind::Operator(payload) => turns[at].act = Act::Charged(payload),
            Kind::Late => turns[at].act = Act::Late,
            Kind::Unclosed => turns[at].act = Act::Forgets,
            Kind::DropRequest | Kind::ForgetRequest => {
                if let Step::Finish { end, .. } = &mut turns[at].step {
                    *end = if kind == Kind::DropRequest { End::Drop } else { End::Forget };
                }
            }
            _ => turns[at].step = other_step(program, at, pe, kind).expect("one that applies"),
        }
        let departs = (!kind.is_harmless()).then_some(at);
        Self { turns, departs, catches, is_armed }
    }
}

/// Returns a different step in place of this one; `None` if there is none.
fn other_step(program: &Program, at: usize, pe: u32, kind: Kind) -> Option<Step> {
    let mut step = program.steps[at].clone();
    match &mut step {
        Step::Call(call) | Step::Start { call, .. } => *call = other(program, call, pe, kind)?,
        Step::Overlap { calls, .. } if !matches!(kind, Kind::Type | Kind::Modes | Kind::Team) => {
            calls[0] = other(program, &calls[0], pe, kind)?;
        }
        Step::Allocate { len, ty, .. } if kind == Kind::Length && ty.bytes() > 0 => *len += 1,
        Step::Divide { parent, division, .. } if kind == Kind::Division => {
            let of = |division: Division| division.of(&program.slots[*parent]);
            let before = of(*division);
            *division = division.other()?;
            if of(*division) == before {
                return None;
            }
        }
        _ => return None,
    }
    Some(step)
}

/// Returns whether a call may have exit mode None.
fn may_leave_behind(call: &Call) -> bool {
    !matches!(call.form, Form::Slices | Form::InPlace | Form::Generic | Form::Scoped)
}

/// Returns a different call in place of this one; `None` if there is none.
fn other(program: &Program, call: &Call, pe: u32, kind: Kind) -> Option<Call> {
    let mut other = call.clone();
    let is_own = call.memory().is_none();
    let mut random = Random(call.seed ^ 1);
    let is_barrier = call.collective == Collective::Barrier;
    match kind {
        Kind::Length if is_own && !is_barrier && call.form != Form::Values => other.len += 1,
        Kind::Root if call.collective.is_rooted() => other.root += 1,
        Kind::Modes if !is_barrier => {
            let fits = |sync: &SyncModes| sync.exit != SyncMode::None || may_leave_behind(call);
            let all: Vec<_> =
                SyncModes::every().filter(|&one| one != call.sync).filter(fits).collect();
            other.sync = *random.pick(&all);
        }
        Kind::Type if is_own && !is_barrier => {
            let fits =
                |one: Type| one != call.ty && call.len.saturating_mul(one.bytes()) <= MOST_BYTES;
            let all: Vec<_> = Type::EVERY.iter().filter(|&&one| fits(one)).collect();
            if !all.is_empty() {
                other.ty = **random.pick(&all);
            }
        }
        Kind::Class if call.collective.combines() => other.ordered = !call.ordered,
        Kind::Collective if is_own && !is_barrier => {
            let is_other =
                |one: &Collective| *one != call.collective && *one != Collective::Barrier;
            let all: Vec<_> = Collective::EVERY.into_iter().filter(is_other).collect();
            other.collective = *random.pick(&all);
            other.uneven = false;
        }
        Kind::Team if is_own => {
            let is_in =
                |slot: &usize| *slot != call.slot && group_of(&program.slots[*slot], pe).is_some();
            let all: Vec<usize> = (0..program.slots.len()).filter(is_in).collect();
            if all.is_empty() {
                return None;
            }
            other.slot = *random.pick(&all);
        }
        _ => return None,
    }
    Some(other)
}

/// Returns whether a PE can depart in this way at a step, and another PE is affected.
fn applies(program: &Program, pe: u32, at: usize, kind: Kind) -> bool {
    let step = &program.steps[at];
    let matches_others = |step: &Step| {
        let group = step.slot().and_then(|slot| group_of(&program.slots[slot], pe));
        group.is_some_and(|group| group.len() > 1)
    };
    match kind {
        Kind::Skip | Kind::Twice | Kind::Leave | Kind::Fail | Kind::Panic(_) | Kind::Late => {
            matches_others(step)
        }
        Kind::Swap => {
            let next = program.steps.get(at + 1);
            matches_others(step) && next.is_some_and(|next| next.slot().is_some())
        }
        Kind::Operator(_) => {
            let combines = |call: &Call| call.ordered && call.collective.combines();
            matches_others(step)
                && match step {
                    Step::Call(call) | Step::Start { call, .. } => combines(call),
                    Step::Overlap { calls, .. } => calls.iter().any(combines),
                    _ => false,
                }
        }
        Kind::DropRequest | Kind::ForgetRequest => {
            matches!(step, Step::Finish { request, end: End::Wait | End::Test | End::Await }
                if is_own_data(program, *request))
        }
        Kind::Unclosed => {
            matches_others(step) && matches!(step, Step::Scene { scene: Scene::AsyncBroadcast, .. })
        }
        _ => matches_others(step) && other_step(program, at, pe, kind).is_some(),
    }
}

/// Returns whether a request's call uses no symmetric memory, which would have to stay unchanged.
fn is_own_data(program: &Program, request: usize) -> bool {
    program.steps.iter().any(|step| {
        matches!(step, Step::Start { call, request: of }
            if *of == request && call.memory().is_none())
    })
}

fn kind(random: &mut Random) -> Kind {
    let payload = *random.pick(&Payload::EVERY);
    match random.below(60) {
        0 => Kind::Late,
        1..=5 => Kind::Skip,
        6..=9 => Kind::Twice,
        10..=14 => Kind::Swap,
        15..=17 => Kind::Leave,
        18..=20 => Kind::Fail,
        21..=26 => Kind::Panic(payload),
        27..=33 => Kind::Operator(payload),
        34..=36 => Kind::Length,
        37..=39 => Kind::Root,
        40..=42 => Kind::Modes,
        43..=45 => Kind::Type,
        46..=48 => Kind::Class,
        49..=51 => Kind::Collective,
        52..=54 => Kind::Team,
        55 => Kind::Division,
        56 => Kind::DropRequest,
        57..=58 => Kind::ForgetRequest,
        _ => Kind::Unclosed,
    }
}

/// Returns whether others wait for this PE's signals or counts. If this PE continues without them,
/// the others wait forever, and that is not an error of the library.
fn leaves_waiting(step: &Step) -> bool {
    matches!(step, Step::Scene { scene: Scene::Signals | Scene::Counted, .. })
}

/// Returns one departure, or two of different PEs.
pub(super) fn mutations(program: &Program) -> Vec<Mutation> {
    let mut random = Random(program.seed ^ 0x6d75_7461);
    let wanted = if program.pes > 1 && random.chance(5) { 2 } else { 1 };
    let mut found: Vec<Mutation> = Vec::new();
    for _ in 0..1000 {
        if found.len() == wanted {
            break;
        }
        let pe = u32::try_from(random.below(program.pes as usize)).expect("few");
        let kind = kind(&mut random);
        let fits = |at: &usize| applies(program, pe, *at, kind);
        let places: Vec<usize> = (0..program.steps.len()).filter(fits).collect();
        if places.is_empty() || found.iter().any(|other| other.pe == pe) {
            continue;
        }
        let at = *random.pick(&places);
        let throws = matches!(kind, Kind::Panic(_) | Kind::Operator(_));
        let catches = throws && random.chance(2) && !leaves_waiting(&program.steps[at]);
        let is_armed = random.chance(4);
        found.push(Mutation { pe, at, kind, catches, is_armed });
    }
    found
}
