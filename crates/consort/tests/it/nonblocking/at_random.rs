//! Random programs of blocking and nonblocking calls on three teams.

use consort::{Rank, Waiting, sync_modes::SyncModes, tune::Collective};
use consort_conformance::{
    data::{Random, affine},
    turns::{LIMIT, alone, note},
};
use consort_sandbox::seeds::seeds;

use super::{check, start};
use crate::{
    data::{Call, nth},
    jobs::pes_of,
    typed::slices,
};

/// The number of steps of a random program.
const STEPS: usize = 300;

/// Makes calls of three teams, blocking and not, completed and waited for in any order.
fn at_random(seed: u64, helpers: bool) {
    let mut random = Random(seed);
    let (pes, rows) = *random.pick(&[(1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (9, 3)]);
    let waiting = *random.pick(&[Waiting::SpinYield, Waiting::SpinYieldPark]);
    let outcome = alone(LIMIT, move || {
        let pes_of = pes_of(pes).waiting(waiting);
        let pes_of = if helpers { pes_of.helper_threads() } else { pes_of };
        pes_of.run(|pe| {
            let grid = pe.world().cartesian(rows)?;
            let teams = [pe.world(), &grid.row, &grid.column];
            let (mut program, mut own) =
                (Random(seed), Random(!seed ^ u64::from(pe.world().rank().0)));
            let mut under_way = Vec::new();
            for step in 0..STEPS {
                own.dawdle();
                if pe.world().rank() == Rank(0) {
                    note(format!("TEST_SEED={seed}, {pes} PEs, step {step}"));
                }
                let every: Vec<_> = SyncModes::every().collect();
                let team = program.pick(&teams).with_sync(*program.pick(&every));
                let root = nth(team.size(), program.below(32));
                let call = Call {
                    collective: *program.pick(&Collective::EVERY),
                    pes: team.size(),
                    root,
                    len: *program.pick(&[0, 1, 1, 2, 7, 50, 500, 4000]),
                    seed: program.next_word(),
                };
                match program.below(10) {
                    0..6 => under_way.push((start(&team, &call)?, call, team.rank())),
                    6..8 => {
                        let me = team.rank();
                        let mut target = vec![0; call.target_len(me)];
                        let source = call.source::<u64>(me);
                        slices(
                            &team.with_sync(SyncModes::MINE),
                            call.collective,
                            &source,
                            &mut target,
                            affine,
                            root,
                        )?;
                        let right = call.result(me, &affine).is_none_or(|right| right == target);
                        assert!(right, "{:?} in {team:?}", call.collective);
                    }
                    // Each PE makes the following choices alone.
                    8 => team.progress()?,
                    _ => {}
                }
                while under_way.len() > 40 || (!under_way.is_empty() && own.chance(3)) {
                    let (request, call, me) = under_way.swap_remove(own.below(under_way.len()));
                    if own.chance(8) {
                        drop(request);
                    } else {
                        check(&call, me, request.wait()?);
                    }
                }
            }
            for (request, call, me) in under_way {
                check(&call, me, request.wait()?);
            }
            Ok(())
        })
    });
    outcome.unwrap_or_else(|error| panic!("TEST_SEED={seed} repeats this: {error}"));
}

#[test]
fn random_programs_are_right() {
    seeds(20, 100, &[]).for_each(|seed| at_random(seed, false));
}

#[test]
fn random_programs_with_helpers_are_right() {
    seeds(10, 50, &[]).for_each(|seed| at_random(seed, true));
}
