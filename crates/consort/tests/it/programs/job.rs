//! A launch that runs a program, and its outcome on each PE.

use std::{
    any::Any,
    hint::black_box,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Mutex, PoisonError},
};

use consort::{Error, Job, Pe, Result, bindings::JobBuilderExt as _};
use consort_conformance::turns::note;

use super::{
    mutate::{Role, Turn},
    payloads::Parcel,
    play::Player,
    program::{Program, Step},
    scenes::Trouble,
};

/// The outcome of a PE.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It is in this step, or panicked in it.
    Playing(usize),
    Done,
    /// It returned early.
    Left,
    Failed(usize, Error),
    Wrong(usize, String),
    /// Its private memory changed after a panic in this step.
    Corrupt(usize),
}

/// The outcome of a program.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) states: Vec<State>,
    /// The result of the launch, or its panic.
    pub(super) outcome: Result<Result<()>, String>,
}

/// The current state of each PE, and the title of the program, for the report of a hang.
struct States<'t> {
    title: &'t str,
    all: Mutex<Vec<State>>,
}

impl States<'_> {
    fn set(&self, pe: u32, state: State) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all[pe as usize] = state;
        note(format!("{}: {all:?}", self.title));
    }
}

/// Drops a payload, which may panic when dropped.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        drop(second);
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "no text".to_owned())
}

/// Returns blocks of the sizes of a call's buffers, which nobody may change.
fn canaries(step: &Step) -> Vec<Vec<u8>> {
    let calls = match step {
        Step::Call(call) | Step::Start { call, .. } => std::slice::from_ref(call),
        Step::Overlap { calls, .. } => calls,
        _ => &[],
    };
    let of = |call: &super::program::Call| vec![0xEE; call.len * call.ty.bytes()];
    calls.iter().flat_map(|call| [of(call), of(call)]).collect()
}

/// Runs the turns of a PE, and returns the result of its program.
fn play_role(pe: &Pe, program: &Program, role: &Role, states: &States<'_>) -> Result<Parcel> {
    let me = pe.world().rank().0;
    let mut player = Player::new(pe, program);
    let fail = |turn: &Turn, trouble| {
        let (state, error) = match trouble {
            Trouble::Error(error) => (State::Failed(turn.number, error.clone()), error),
            Trouble::Wrong(what) => {
                let error = Error::Wisdom(format!("wrong data: {what}"));
                (State::Wrong(turn.number, what), error)
            }
        };
        states.set(me, state);
        Err(error)
    };
    for turn in &role.turns {
        states.set(me, State::Playing(turn.number));
        let played = catch_unwind(AssertUnwindSafe(|| player.turn(turn, role)));
        match played {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                states.set(me, State::Left);
                return Ok(Parcel { is_armed: role.is_armed });
            }
            Ok(Err(trouble)) => return fail(turn, trouble),
            Err(payload) if role.catches => {
                discard(payload);
                let canaries = black_box(canaries(&turn.step));
                let sound = pe.world().progress();
                if black_box(canaries).iter().flatten().any(|&byte| byte != 0xEE) {
                    states.set(me, State::Corrupt(turn.number));
                    return Err(Error::Wisdom("freed memory was written".to_owned()));
                }
                if let Err(error) = sound {
                    return fail(turn, error.into());
                }
            }
            Err(payload) => resume_unwind(payload),
        }
    }
    states.set(me, State::Done);
    Ok(Parcel { is_armed: role.is_armed })
}

/// Launches a program.
pub(super) fn launch(program: &Program, roles: &[Role], title: &str) -> Report {
    let mut pes =
        Job::threads(program.pes as usize).heap_bytes(program.heap_bytes).without_wisdom();
    if let Some(waiting) = program.waiting {
        pes = pes.waiting(waiting);
    }
    if program.helpers {
        pes = pes.helper_threads();
    }
    if program.online {
        pes = pes.online(0.5);
    }
    for (collective, candidate) in &program.forced {
        pes = pes.force(*collective, candidate.clone());
    }
    if let Some(forms) = program.forms {
        pes = pes.loopback(forms, program.seed);
    }
    let all = Mutex::new(vec![State::Playing(0); program.pes as usize]);
    let states = States { title, all };
    let launched = catch_unwind(AssertUnwindSafe(|| {
        let results = pes.run(|pe| {
            let role = &roles[pe.world().rank().index()];
            play_role(pe, program, role, &states)
        });
        results.map(|results| {
            for mut parcel in results {
                parcel.disarm();
            }
        })
    }));
    let outcome = launched.map_err(|payload| {
        let text = text_of(&*payload);
        discard(payload);
        text
    });
    Report { states: states.all.into_inner().unwrap_or_else(PoisonError::into_inner), outcome }
}
