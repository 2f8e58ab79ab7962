//! Choices are refined in the same way on all PEs, regardless of their call sites and closures, and
//! of the plans that each still has.

use consort::{Job, Rank, Result, Team, ops::Sum, sync_modes::SyncModes, tune::Collective};
use consort_conformance::{
    data::Random,
    turns::{LIMIT, alone, note},
};
use consort_sandbox::seeds::seeds;

use crate::jobs::on;

/// More kinds of calls than cached plans.
const KINDS: usize = 400;
const CALLS: usize = 15_000;
/// The number of times that PEs add up for a decision.
const TIMES: usize = consort_tuner::online::TIMES;

/// Call sites in a program that make the same calls.
macro_rules! sites {
    ($($site:ident)*) => {$(
        mod $site {
            use consort::{Rank, Result, Team, ops::Sum};

            #[inline(never)]
            pub(super) fn sum(team: &Team, value: u64) -> Result<u64> {
                team.all_reduce(value, Sum)
            }

            #[inline(never)]
            pub(super) fn join(team: &Team, value: u64) -> Result<u64> {
                team.all_reduce(value, |a: u64, b: u64| a | b)
            }

            #[inline(never)]
            pub(super) fn share(team: &Team, data: &mut [u64], root: Rank) -> Result<()> {
                team.in_place(data).broadcast(root)
            }

            #[inline(never)]
            pub(super) fn sums(team: &Team, data: &[u64], sums: &mut [u64]) -> Result<()> {
                team.slices(data, sums).all_reduce(Sum)
            }
        }
    )*};
}

sites!(one two);

/// Makes the calls of all PEs, drawn from `program`, at call sites that each PE draws itself.
fn play(team: &Team, seed: u64, calls: usize) -> Result<()> {
    let (pes, me) = (team.size() as u64, u64::from(team.rank().0));
    let (mut program, mut own) = (Random(seed), Random(!seed ^ me));
    let all_ranks = pes * (pes - 1) / 2;
    for call in 0..calls {
        if me == 0 {
            note(format!("TEST_SEED={seed}, call {call}"));
        }
        let value = program.below(1000) as u64;
        let is_one = own.chance(2);
        match program.below(10) {
            0..3 => {
                let sum = if is_one { one::sum } else { two::sum };
                assert_eq!(sum(team, value + me)?, pes * value + all_ranks);
            }
            3 => {
                let bits = match own.below(3) {
                    0 => one::join(team, 1 << me)?,
                    1 => two::join(team, 1 << me)?,
                    _ => team.all_reduce(1 << me, |a: u64, b: u64| a + b)?,
                };
                assert_eq!(bits, (1 << pes) - 1);
            }
            4..6 => {
                let sync = if program.chance(2) { SyncModes::MINE } else { team.sync() };
                let sums = if is_one { one::sums } else { two::sums };
                let (data, mut sum) = ([value + me; TIMES], [0; TIMES]);
                sums(&team.with_sync(sync), &data, &mut sum)?;
                assert_eq!(sum, [pes * value + all_ranks; TIMES]);
            }
            _ => {
                let share = if is_one { one::share } else { two::share };
                let root = Rank(u32::try_from(value % pes).expect("few"));
                let mut data =
                    vec![if team.rank() == root { value } else { 0 }; program.below(KINDS)];
                share(team, &mut data, root)?;
                assert!(data.iter().all(|&element| element == value));
            }
        }
    }
    Ok(())
}

fn at_random(seed: u64) {
    let outcome = alone(2 * LIMIT, move || {
        Job::threads(3).without_wisdom().online(0.5).run(|pe| {
            let world = pe.world();
            play(world, seed, CALLS)?;
            let part = world.split(Some(world.rank().0 / 2), 0)?.expect("a colour");
            play(&part, seed, CALLS / 10)?;
            Ok((world.algorithms().served_by(Collective::AllReduce), part.size()))
        })
    });
    outcome.unwrap_or_else(|error| panic!("TEST_SEED={seed} repeats this: {error}"));
}

#[test]
fn call_sites_may_differ_between_pes() {
    seeds(1, 10, &[]).for_each(at_random);
}

/// One PE's plan is in use when a rest ends, and another PE's is gone.
#[test]
fn rest_ends_at_the_same_call_on_all_pes() {
    on(Job::threads(2).without_wisdom().online(0.5), |world| {
        let me = u64::from(world.rank().0);
        for call in 0..40_000_u64 {
            // PE 0 always comes from one place, PE 1 from another each time.
            let sum = if me == 0 || call % 3 == 0 { one::sum } else { two::sum };
            assert_eq!(sum(world, call + me)?, 2 * call + 1, "call {call}");
            if me == 1 && call % 7 == 0 {
                let plus = |a: u64, b: u64| a.wrapping_add(b);
                assert_eq!(world.all_reduce(call, plus)?, 2 * call);
            } else if call % 7 == 0 {
                let plus = |a: u64, b: u64| b.wrapping_add(a);
                assert_eq!(world.all_reduce(call, plus)?, 2 * call);
            }
        }
        world.all_reduce(1, Sum)
    });
}
