//! Nonblocking calls in symmetric memory.

use consort::{
    Error, Rank,
    error::{CallError, PlanError},
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    data::affine,
    registry::one_each,
    turns::{LIMIT, alone, note},
};

use crate::{
    data::{Call, blank, source_blocks, target_blocks},
    jobs::{on, pes_of},
};

/// Makes a collective in symmetric memory with every root and in every mode, by the library's
/// choice or by one algorithm. A buffer that a PE does not use still gives the place of the root's.
fn every_root_in_symmetric_memory(pes: usize, collective: Collective, forced: Option<&Candidate>) {
    let launch = match forced {
        Some(candidate) => pes_of(pes).force(collective, candidate.clone()),
        None => pes_of(pes),
    };
    let outcome = launch.run(|pe| {
        let world = pe.world();
        let me = world.rank();
        for (seed, len) in (0..).zip([1, 700]) {
            let source = world.symmetric::<u64>(source_blocks(collective, pes, true) * len)?;
            let is_one = collective == Collective::Broadcast;
            let target_len = target_blocks(collective, pes, !is_one) * len;
            let target = world.symmetric::<u64>(target_len)?;
            for root in world.ranks() {
                for sync in SyncModes::every() {
                    let call = Call { collective, pes, root, len, seed };
                    let received = if is_one { &source } else { &target };
                    received.put(me, 0, &blank(received.len()))?;
                    source.put(me, 0, &call.source(me))?;
                    world.barrier()?;
                    let team = world.with_sync(sync);
                    team.start_symmetric(&source, received)
                        .any(collective, affine, root)?
                        .wait()?;
                    // With exit mode None, data may still be moving.
                    world.barrier()?;
                    let Some(expected) = call.result::<u64, _>(me, &affine) else { continue };
                    let mut found = vec![0; expected.len()];
                    received.get(me, 0, &mut found)?;
                    assert!(
                        found == expected,
                        "{collective} of {len}, root {root}, {sync}, on PE {me} of {pes}"
                    );
                }
            }
        }
        Ok(())
    });
    match outcome {
        Ok(_) | Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => {}
        Err(error) => panic!("{collective} by {forced:?} among {pes}: {error}"),
    }
}

#[test]
fn symmetric_memory_of_every_collective_from_every_root() {
    alone(LIMIT, || {
        for collective in Collective::EVERY {
            if collective == Collective::Barrier {
                continue;
            }
            for pes in 2..=4 {
                note(format!("{collective} by choice among {pes}"));
                every_root_in_symmetric_memory(pes, collective, None);
                for candidate in one_each(collective) {
                    note(format!("{collective} by {candidate} among {pes}"));
                    every_root_in_symmetric_memory(pes, collective, Some(&candidate));
                }
            }
        }
    });
}

#[test]
fn symmetric_memory_is_kept_while_a_call_is_under_way() {
    on(pes_of(3), |world| {
        let me = u64::from(world.rank().0);
        for _ in 0..20 {
            let (source, target) = (world.symmetric::<u64>(300)?, world.symmetric(300)?);
            source.put(world.rank(), 0, &vec![me; 300])?;
            let sum =
                world.start_symmetric(&source, &target).any(Collective::AllReduce, Sum, Rank(0))?;
            let other = world.symmetric::<u64>(300)?;
            other.store(299, me)?;
            let table =
                world.start_symmetric(&other, &other).any(Collective::Broadcast, Sum, Rank(2))?;
            drop(source);
            sum.wait()?;
            table.wait()?;
            assert_eq!((target.load(299)?, other.load(299)?), (3, 2));
            world.barrier()?;
        }
        Ok(())
    });
}
