//! The parts of the names of a program's calls on which PEs must agree.
//!
//! PEs get no error for an extra, missing or reordered call if the names stay the same: they have
//! then made the same calls, only with other data.

use consort::{
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};
use consort_conformance::data::Random;

use super::{
    elements::Type,
    groups::Division,
    mutate::{Role, Turn},
    program::{Call, Form, Program, Scene, Step},
};

/// A collective call: its name, and the step that it belongs to.
type Named = (String, usize);

fn name(call: &Call) -> Vec<String> {
    let Call { collective, sync, ty, ordered, len, form, root, .. } = *call;
    if collective == Collective::Barrier {
        return vec![format!("{} barrier", is_started(form))];
    }
    let keeps = form == Form::Values && collective.is_vector() && sync.exit == SyncMode::None;
    let sync = if keeps { SyncModes { exit: SyncMode::Mine, ..sync } } else { sync };
    let bytes = if collective.is_vector() { 0 } else { len * ty.bytes() };
    let root = collective.is_rooted().then_some(root);
    let operator = collective.combines().then_some(ordered);
    let memory = call.memory().is_some();
    let started = is_started(form);
    let of = |collective: Collective| {
        format!("{started} {collective} {sync} {bytes} {root:?} {ty:?} {operator:?} {memory}")
    };
    match form {
        Form::Values if collective.is_vector() => vec![of(collective.regular()), of(collective)],
        Form::Planned => vec![of(collective); 2],
        _ => vec![of(collective)],
    }
}

fn is_started(form: Form) -> bool {
    matches!(form, Form::Owned | Form::Planned | Form::Scoped | Form::StartMemory { .. })
}

/// Returns the names of an all-reduce of words in the default modes.
fn all_reduce(len: usize, ordered: bool, form: Form) -> Vec<String> {
    name(&Call {
        slot: 0,
        collective: Collective::AllReduce,
        sync: SyncModes::MINE,
        root: 0,
        ty: Type::U64,
        ordered,
        len,
        seed: 0,
        uneven: false,
        form,
    })
}

fn names_of_scene(scene: Scene, seed: u64) -> Vec<String> {
    let of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let mut random = Random(seed);
    match scene {
        Scene::Puts | Scene::Atomics => of(&["symmetric", "false barrier"]),
        Scene::Signals => of(&["symmetric"; 2]),
        Scene::Messages => of(&["false barrier"]),
        Scene::Counted => of(&["symmetric", "counter", "counter"]),
        Scene::AsyncBroadcast => of(&["async_broadcasts", "async_broadcasts", "close"]),
        Scene::Churn => of(&["symmetric", "false barrier"].repeat(3)),
        Scene::Repeat => {
            let calls = 4 + random.below(60);
            let is_word = random.chance(2);
            let len = if is_word { 1 } else { 3 };
            vec![all_reduce(len, is_word, Form::Slices); calls].concat()
        }
        Scene::Burst => {
            let sum = all_reduce(1, false, Form::Owned);
            let gather = || sum[0].replace("all-reduce", "all-gather");
            let of =
                |call| if call % 16 == 3 { vec![sum[0].clone(), gather()] } else { sum.clone() };
            (0..2 + random.below(90)).flat_map(of).collect()
        }
    }
}

/// Returns the calls of a turn, and the slot of their teams.
fn names(turn: &Turn) -> Option<(usize, Vec<String>)> {
    let slot = turn.step.slot()?;
    Some((
        slot,
        match &turn.step {
            Step::Barrier => vec!["false barrier".to_owned(); 2],
            Step::Divide { division: Division::Split { .. }, .. } => vec!["split".to_owned()],
            Step::Divide { division, .. } => vec![format!("{division:?}")],
            Step::Free { .. } => vec!["free".to_owned()],
            Step::Allocate { .. } => vec!["symmetric".to_owned(); 4],
            Step::Call(call) | Step::Start { call, .. } => name(call),
            Step::Overlap { calls, barrier, .. } => {
                let barrier = barrier.then(|| "false barrier".to_owned());
                calls.iter().flat_map(name).chain(barrier).collect()
            }
            Step::Scene { scene, seed, .. } => names_of_scene(*scene, *seed),
            _ => return None,
        },
    ))
}

/// Returns whether calls of different steps match in some team, because they have the same name.
pub(super) fn are_confused(program: &Program, roles: &[Role]) -> bool {
    (0..program.slots.len()).any(|slot| {
        let calls = |role: &Role| -> Vec<Named> {
            let of = |turn: &Turn| {
                let (at, names) = names(turn)?;
                let number = turn.number;
                let named = move |name: String| (name, number);
                (at == slot).then(|| names.into_iter().map(named).collect::<Vec<_>>())
            };
            role.turns.iter().filter_map(of).flatten().collect()
        };
        program.slots[slot].iter().any(|group| {
            let all: Vec<_> = group.iter().map(|&pe| calls(&roles[pe as usize])).collect();
            match_others(&all)
        })
    })
}

/// Returns whether calls of different steps match in a team before the first names that differ.
fn match_others(all: &[Vec<Named>]) -> bool {
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    for index in 0..most {
        let mut here = all.iter().filter_map(|calls| calls.get(index));
        let Some((name, number)) = here.next() else { return false };
        let mut is_other_step = false;
        for (other, its_number) in here {
            if other != name {
                return false;
            }
            is_other_step |= its_number != number;
        }
        if is_other_step {
            return true;
        }
    }
    false
}

#[test]
fn call_may_match_another_of_its_name() {
    let of = |calls: &[(&str, usize)]| -> Vec<Named> {
        calls.iter().map(|&(name, number)| (name.to_owned(), number)).collect()
    };
    let program = of(&[("barrier", 1), ("barrier", 2), ("split", 3)]);
    assert!(!match_others(&[program.clone(), program.clone()]));
    assert!(match_others(&[program.clone(), of(&[("barrier", 2), ("split", 3)])]));
    assert!(!match_others(&[program, of(&[("split", 3), ("barrier", 2)])]));
}
