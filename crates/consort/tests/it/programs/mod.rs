//! Random programs, and random departures from them, compared with an oracle.
//!
//! A program is data, made from a seed and the same for all PEs. An oracle computes the effects of
//! each step, and the PEs check them as they go. In a mutated program, one or two PEs depart from
//! the original program. Then every PE must be correct, or get an error that names the departed PE;
//! no PE may hang.
//!
//! | file | contents |
//! | --- | --- |
//! | `program`, `groups`, `elements` | the parts of a program: steps, teams, types |
//! | `generate` | a program from a seed |
//! | `expect` | the oracle |
//! | `play`, `calls`, `starts`, `overlaps`, `scenes`, `messages` | a PE that runs a program |
//! | `payloads`, `mutate`, `names`, `judge` | departures, and their allowed outcomes |
//! | `nodes` | programs whose PEs are on several nodes |
//! | `job`, `campaign` | a launch; many launches |
//!
//! `TEST_SEED=N` runs only one program and shows its steps. Otherwise `consort_sandbox::seeds`
//! selects the seeds; `ci/soak` runs thousands.

mod calls;
mod campaign;
mod elements;
mod expect;
mod generate;
mod groups;
mod job;
mod judge;
mod messages;
mod mutate;
mod names;
mod nodes;
mod overlaps;
mod payloads;
mod play;
mod program;
mod scenes;
mod starts;

use std::{collections::HashSet, mem::discriminant};

use campaign::Campaign;
use program::{Form, Step};

#[test]
fn random() {
    let programs = [120, 500];
    Campaign { name: "random", is_mutated: false, is_far: false, programs, once_failed: &[] }
        .play();
}

#[test]
fn random_on_nodes() {
    let programs = [120, 500];
    let once_failed = &[];
    Campaign { name: "random_on_nodes", is_mutated: false, is_far: true, programs, once_failed }
        .play();
}

#[test]
fn mutated() {
    let programs = [120, 500];
    Campaign { name: "mutated", is_mutated: true, is_far: false, programs, once_failed: &[] }
        .play();
}

#[test]
fn mutated_on_nodes() {
    // In the first five, PEs waited for each other across nodes forever. In the others, a call had
    // no result when its job failed at its end.
    let once_failed = &[190, 193, 404, 445, 527, 15_431_812_784_474, 15_431_812_790_996];
    let programs = [30, 500];
    Campaign { name: "mutated_on_nodes", is_mutated: true, is_far: true, programs, once_failed }
        .play();
}

#[test]
fn programs_use_everything() {
    let programs: Vec<_> = (0..300).map(generate::program).collect();
    let steps: Vec<_> = programs.iter().flat_map(|program| &program.steps).collect();
    let kinds: HashSet<_> = steps.iter().map(|step| discriminant(*step)).collect();
    assert_eq!(kinds.len(), 12);
    let calls: Vec<_> = (steps.iter())
        .flat_map(|step| match step {
            Step::Call(call) | Step::Start { call, .. } => std::slice::from_ref(call),
            Step::Overlap { calls, .. } => calls,
            _ => &[],
        })
        .collect();
    let forms: HashSet<_> = calls.iter().map(|call| discriminant(&call.form)).collect();
    assert_eq!(forms.len(), 10);
    let types: HashSet<_> = calls.iter().map(|call| call.ty).collect();
    assert_eq!(types.len(), elements::Type::EVERY.len());
    let started = |call: &&&program::Call| matches!(call.form, Form::StartMemory { .. });
    let ways: HashSet<_> =
        calls.iter().filter(started).map(|call| (call.collective, call.sync)).collect();
    assert!(ways.len() > 60, "only {} of 126 ways to start a call in memory", ways.len());
    let kinds: HashSet<_> = (programs.iter())
        .flat_map(mutate::mutations)
        .map(|mutation| discriminant(&mutation.kind))
        .collect();
    assert_eq!(kinds.len(), 19);
}
