//! Calls of teams that overlap, in random order.

use consort::{Rank, Waiting, sync_modes::SyncModes};
use consort_conformance::{
    data::{Random, affine},
    turns::{LIMIT, alone, note},
};
use consort_sandbox::seeds::seeds;

use crate::{
    data::{combined, contribution, nth},
    jobs::pes_of,
};

/// The number of steps of a random program.
const STEPS: usize = 400;

/// Alternates between rows and columns at random, with calls of both in flight.
fn interleaved(seed: u64) {
    let mut random = Random(seed);
    let (pes, rows) = *random.pick(&[(4, 2), (6, 2), (6, 3), (9, 3), (16, 4)]);
    let waiting = *random.pick(&[Waiting::SpinYield, Waiting::SpinYieldPark]);
    let outcome = alone(LIMIT, move || {
        pes_of(pes).waiting(waiting).run(|pe| {
            let world = pe.world().with_sync(SyncModes::LOOSE);
            let grid = world.cartesian(rows)?;
            let (mut program, mut own) = (Random(seed), Random(seed ^ u64::from(world.rank().0)));
            for step in 0..STEPS {
                own.dawdle();
                if world.rank() == Rank(0) {
                    note(format!("TEST_SEED={seed}, step {step}"));
                }
                let (row, column) = (&grid.row, &grid.column);
                let team = *program.pick(&[row, column, row, column, &world]);
                let (seed, root) = (program.next_word(), program.below(pes));
                let root = nth(team.size(), root);
                let of = |rank: Rank| {
                    let there = team.world_rank(rank).expect("a member");
                    contribution::<u64>(seed, there, 1)
                };
                let (me, sum) = (of(team.rank())[0], combined(team.size(), 1, &affine, of)[0]);
                match program.below(8) {
                    0..3 => assert_eq!(team.broadcast(me, root)?, of(root)[0]),
                    3..6 => {
                        let expected = (team.rank() == root).then_some(sum);
                        assert_eq!(team.reduce(me, affine, root)?, expected);
                    }
                    6 => assert_eq!(team.all_reduce(me, affine)?, sum),
                    _ => team.barrier()?,
                }
            }
            Ok(())
        })
    });
    outcome.unwrap_or_else(|error| panic!("TEST_SEED={seed} repeats this: {error}"));
}

#[test]
fn overlapping_teams_interleave() {
    seeds(12, 60, &[]).for_each(interleaved);
}
