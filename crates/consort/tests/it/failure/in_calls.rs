//! A PE that fails while others are in a call, or wait for a word of symmetric memory.

use std::{thread, time::Duration};

use consort::{
    Job, Rank, Waiting,
    ops::Sum,
    symmetric::Until,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::{one_each, one_each_on_slices},
    turns::{LIMIT, alone, note},
};
use consort_sandbox::seeds;

use super::{call, call_on, fails, few_and_many_words};

/// One victim per daily run, and all PEs in nightly runs.
fn victims(pes: usize) -> Vec<Rank> {
    seeds::some_of((0..pes).map(Rank::new))
}

/// The victim panics instead of entering the call; the others are in it, at every point of the
/// algorithm.
fn instead_of_entering(collective: Collective, waiting: Waiting) {
    const PES: usize = 4;
    alone(LIMIT, move || {
        for candidate in one_each_on_slices(collective) {
            for victim in victims(PES) {
                let words = few_and_many_words(collective, &candidate, PES);
                for words in if collective == Collective::Barrier { &words[..1] } else { &words } {
                    let words = *words;
                    note(format!("{candidate}, {words} words, PE {victim} panics"));
                    let pes = Job::threads(PES).waiting(waiting).heap_bytes(1 << 16);
                    let pes = pes.force(collective, candidate.clone());
                    let error = fails(pes, PES, victim, |pe, moment| {
                        let world = pe.world();
                        for _ in 0..3 {
                            call(world, collective, words, SyncModes::MINE)?;
                        }
                        if world.rank() == victim {
                            moment.is_now();
                            panic!("as planned");
                        }
                        call_on(|| call(world, collective, words, SyncModes::MINE))
                    });
                    assert!(error.to_string().contains("as planned"), "{error}");
                }
            }
        }
    });
}

macro_rules! fails_in {
    ($($name:ident: $collective:ident $waiting:ident;)*) => {$(
        #[test]
        fn $name() {
            instead_of_entering(Collective::$collective, Waiting::$waiting);
        }
    )*};
}

fails_in! {
    barriers_that_spin: Barrier Spin;
    barriers_that_yield: Barrier SpinYield;
    barriers_that_park: Barrier SpinYieldPark;
    broadcasts_that_spin: Broadcast Spin;
    broadcasts_that_yield: Broadcast SpinYield;
    broadcasts_that_park: Broadcast SpinYieldPark;
    reductions_that_spin: Reduce Spin;
    reductions_that_yield: Reduce SpinYield;
    reductions_that_park: Reduce SpinYieldPark;
    all_reductions_that_spin: AllReduce Spin;
    all_reductions_that_yield: AllReduce SpinYield;
    all_reductions_that_park: AllReduce SpinYieldPark;
    scatters: Scatter SpinYield;
    gathers: Gather SpinYield;
    all_gathers: AllGather SpinYield;
    exchanges: AllToAll SpinYield;
    reduce_scatters: ReduceScatter SpinYield;
    scans: Scan SpinYield;
    exclusive_scans: ExclusiveScan SpinYield;
}

/// Strict calls wait in their entry and exit barriers.
#[test]
fn strict_calls_fail() {
    alone(LIMIT, || {
        for barrier in one_each(Collective::Barrier) {
            for victim in (0..5).map(Rank) {
                let pes = Job::threads(5).force(Collective::Barrier, barrier.clone());
                fails(pes.heap_bytes(1 << 16), 5, victim, |pe, moment| {
                    let world = pe.world();
                    call(world, Collective::Reduce, 10, SyncModes::STRICT)?;
                    if world.rank() == victim {
                        thread::sleep(Duration::from_millis(1));
                        moment.is_now();
                        panic!("as planned");
                    }
                    call_on(|| call(world, Collective::Broadcast, 10, SyncModes::STRICT))
                });
            }
        }
    });
}

/// Loose senders wait only for credits.
#[test]
fn waits_for_credits_fail() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            for (root, victim) in [(Rank(0), Rank(2)), (Rank(2), Rank(0)), (Rank(1), Rank(1))] {
                let pes = Job::threads(3).waiting(waiting).heap_bytes(1 << 16);
                let pes = pes.force(Collective::Reduce, Candidate::new("flat"));
                let pes = pes.force(Collective::Broadcast, Candidate::new("flat"));
                fails(pes, 3, victim, |pe, moment| {
                    let world = pe.world();
                    let data = world.symmetric::<u64>(2)?;
                    let sum = world.symmetric::<u64>(2)?;
                    if world.rank() == victim {
                        thread::sleep(Duration::from_millis(5));
                        moment.is_now();
                        panic!("as planned");
                    }
                    let team = world.with_sync(SyncModes::LOOSE);
                    if victim == root {
                        // A PE that contributes to a reduction does not wait.
                        call_on(|| team.in_symmetric(&data, &sum).reduce(Sum, root))
                    } else {
                        call_on(|| team.in_symmetric(&data, &data).broadcast(root))
                    }
                });
            }
        }
    });
}

/// In a large team, credits are sent in steps: from predecessors, and from their predecessors.
#[test]
fn waits_for_credits_of_groups_fail() {
    alone(LIMIT, || {
        for victim in [Rank(69), Rank(30)] {
            let pes = Job::threads(70).waiting(Waiting::SpinYieldPark).heap_bytes(1 << 16);
            let pes = pes.force(Collective::Broadcast, Candidate::new("flat"));
            fails(pes, 70, victim, |pe, moment| {
                let world = pe.world();
                let data = world.symmetric::<u64>(2)?;
                if world.rank() == victim {
                    thread::sleep(Duration::from_millis(5));
                    moment.is_now();
                    panic!("as planned");
                }
                call_on(|| {
                    world.with_sync(SyncModes::LOOSE).in_symmetric(&data, &data).broadcast(Rank(0))
                })
            });
        }
    });
}

/// A broadcast by puts waits for PEs that must have entered, and for the data.
#[test]
fn broadcasts_by_puts_fail() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            for victim in (0..4).map(Rank) {
                let by = Candidate::new("knomial_put").with("radix", 2);
                let pes = Job::threads(4).waiting(waiting).heap_bytes(1 << 16);
                let pes = pes.force(Collective::Broadcast, by);
                fails(pes, 4, victim, |pe, moment| {
                    let world = pe.world();
                    let data = world.symmetric::<u64>(100)?;
                    world.in_symmetric(&data, &data).broadcast(Rank(1))?;
                    if world.rank() == victim {
                        moment.is_now();
                        panic!("as planned");
                    }
                    call_on(|| world.in_symmetric(&data, &data).broadcast(Rank(1)))
                });
            }
        }
    });
}

#[test]
fn waits_for_a_word_fail() {
    alone(LIMIT, || {
        for waiting in Waiting::EVERY {
            let pes = Job::threads(3).waiting(waiting).heap_bytes(1 << 16);
            fails(pes, 3, Rank(1), |pe, moment| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                if world.rank() == Rank(1) {
                    thread::sleep(Duration::from_millis(50));
                    moment.is_now();
                    panic!("as planned");
                }
                word.wait_until(0, Until::Equals(1)).map(|_| ())
            });
        }
    });
}
