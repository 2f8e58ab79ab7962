//! The allowed outcomes of a program: every PE is correct, or its error names the departed PE.

use std::fmt;

use super::{
    job::{Report, State},
    mutate::{Kind, Mutation, Role},
    names::are_confused,
    program::{Program, Scene, Step},
};

/// An outcome that is not allowed.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Data is wrong, and there is no error.
    Wrong,
    /// An error in a correct program.
    FalseAlarm,
    /// An error that names neither the departed PE nor the call.
    Unnamed,
    /// A PE panicked unexpectedly.
    Panicked,
    /// A PE failed, but its job did not.
    Unreported,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// Returns words by which a text may name a step instead of a PE.
fn words(step: &Step) -> Vec<&'static str> {
    match step {
        Step::Call(call) | Step::Start { call, .. } => vec![call.collective.name()],
        Step::Overlap { calls, barrier, .. } => {
            let barrier = barrier.then_some("barrier");
            calls.iter().map(|call| call.collective.name()).chain(barrier).collect()
        }
        Step::Barrier => vec!["barrier"],
        Step::Allocate { .. } => vec!["allocation", "symmetric"],
        Step::Divide { .. } => vec!["split(", "strided(", "of(", "cartesian("],
        Step::Free { .. } => vec!["free("],
        Step::Scene { scene: Scene::Messages, .. } => vec!["barrier", "send of", "receive of"],
        Step::Scene { .. } => vec!["symmetric", "counter", "async_broadcast", "all_reduce"],
        Step::Refill { .. } | Step::Force { .. } | Step::Give { .. } | Step::Finish { .. } => {
            Vec::new()
        }
    }
}

/// Returns whether a text names a PE that departed, or the call that it skipped.
fn names(program: &Program, mutations: &[Mutation], text: &str) -> bool {
    mutations.iter().any(|mutation| {
        let pe = format!("PE {}", mutation.pe);
        let is_named = |(at, _)| {
            let rest = &text[at + pe.len()..];
            !rest.starts_with(|next: char| next.is_ascii_digit())
        };
        text.match_indices(&pe).any(is_named)
            || words(&program.steps[mutation.at]).iter().any(|word| text.contains(word))
    })
}

/// Returns whether a PE must fail, regardless of the others.
fn must_fail(mutation: &Mutation) -> bool {
    matches!(mutation.kind, Kind::Fail | Kind::Panic(_)) && !mutation.catches
}

pub(super) fn judge(
    program: &Program,
    mutations: &[Mutation],
    roles: &[Role],
    report: &Report,
) -> Option<Fault> {
    let fault = |kind, text: String| Some(Fault { kind, text });
    let is_harmless = mutations.iter().all(|mutation| mutation.kind.is_harmless());
    let is_mutated = |pe: usize| mutations.iter().any(|one| one.pe as usize == pe);
    // Wrong data is reported first, because it often causes other reports.
    for (pe, state) in report.states.iter().enumerate() {
        match state {
            State::Corrupt(step) => {
                return fault(FaultKind::Wrong, format!("PE {pe}: freed memory, step {step}"));
            }
            State::Wrong(step, what) if !are_confused(program, roles) => {
                return fault(FaultKind::Wrong, format!("PE {pe} in step {step}: {what}"));
            }
            _ => {}
        }
    }
    for (pe, state) in report.states.iter().enumerate() {
        if is_mutated(pe) && !is_harmless {
            continue;
        }
        match state {
            State::Failed(step, error) if is_harmless => {
                return fault(FaultKind::FalseAlarm, format!("PE {pe} in step {step}: {error}"));
            }
            State::Failed(step, error) => {
                let text = error.to_string();
                let is_named = names(program, mutations, &text)
                    // A PE that has received wrong data, because calls were confused, reports that.
                    || report.states.iter().any(|state| matches!(state, State::Wrong(..)));
                if !is_named {
                    return fault(FaultKind::Unnamed, format!("PE {pe} in step {step}: {text}"));
                }
            }
            State::Playing(step) => {
                return fault(FaultKind::Panicked, format!("PE {pe} in step {step}"));
            }
            State::Done | State::Left | State::Wrong(..) | State::Corrupt(_) => {}
        }
    }
    let is_armed = mutations.iter().any(|mutation| mutation.is_armed);
    match &report.outcome {
        Err(panic) if !is_armed => fault(FaultKind::Panicked, format!("the launch: {panic}")),
        Ok(Err(error)) if is_harmless => {
            fault(FaultKind::FalseAlarm, format!("the launch: {error}"))
        }
        Ok(Ok(())) if mutations.iter().any(must_fail) => {
            fault(FaultKind::Unreported, "the launch went well".to_owned())
        }
        _ => None,
    }
}
