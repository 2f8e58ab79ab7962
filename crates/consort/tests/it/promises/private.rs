//! Values and slices, which no other PE can see during a call: mode All only means that no PE
//! leaves before all have entered.

use std::{
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Release},
    },
    thread,
};

use consort::{
    Error, Job, Rank, Team,
    error::CallError,
    ops::Sum,
    sync_modes::{SyncMode, SyncModes},
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::one_each_on_slices,
    turns::{alone, note},
};

use super::{APART, LIMIT};
use crate::{
    data::{source_blocks, target_blocks},
    typed,
};

/// One word, which two PEs exchange pairwise, and more than a line holds.
const WORDS: [usize; 2] = [1, 5000];

fn modes() -> impl Iterator<Item = SyncModes> {
    use SyncMode::{All, Mine};
    let modes = [(All, All), (All, Mine), (Mine, All)];
    modes.into_iter().map(|(entry, exit)| SyncModes { entry, exit })
}

/// Makes a call with `words` words per block; `false` if the algorithm cannot serve it.
fn is_served(team: &Team, collective: Collective, words: usize) -> consort::Result<bool> {
    let (pes, is_root) = (team.size(), team.rank() == Rank(0));
    let source = vec![1_u64; source_blocks(collective, pes, is_root) * words];
    let mut target = vec![0; target_blocks(collective, pes, is_root) * words];
    match typed::slices(team, collective, &source, &mut target, Sum, Rank(0)) {
        Err(Error::Call(CallError::Plan(_))) => Ok(false),
        done => done.map(|()| true),
    }
}

#[test]
fn no_pe_leaves_a_slice_call_before_all_enter() {
    alone(LIMIT, || {
        let data = Collective::regulars().filter(|&one| one != Collective::Barrier);
        for (collective, candidate) in
            data.flat_map(|of| one_each_on_slices(of).into_iter().map(move |by| (of, by)))
        {
            let mut some = false;
            for pes in [2, 3] {
                note(format!("{collective} by {candidate} on {pes} PEs"));
                let late_in = AtomicU32::new(0);
                let launch = Job::threads(pes).force(collective, candidate.clone());
                let served = launch.run(|pe| {
                    let (world, mut call, mut served) = (pe.world(), 0, 0);
                    for (sync, words) in modes().flat_map(|sync| WORDS.map(|words| (sync, words))) {
                        for late in world.ranks() {
                            call += 1;
                            if world.rank() == late {
                                thread::sleep(APART);
                                late_in.store(call, Release);
                            }
                            if !is_served(&world.with_sync(sync), collective, words)? {
                                world.barrier()?;
                                continue;
                            }
                            served += 1;
                            let is_in = late_in.load(Acquire) >= call;
                            assert!(is_in, "left before {late}: {sync}, {words} words");
                        }
                    }
                    Ok(served)
                });
                let served = served.unwrap_or_else(|error| panic!("{candidate}, {pes}: {error}"));
                some |= served.iter().any(|&served| served > 0);
            }
            assert!(some, "{collective} by {candidate} served nothing");
        }
    });
}

/// A word may arrive in several chunks, which no exchange of one word serves.
#[test]
fn a_word_in_chunks_arrives_whole() {
    let chunks = |name: &str, radix: bool| {
        let candidate = Candidate::new(name).with("chunk_bytes", 4);
        if radix { candidate.with("radix", 2) } else { candidate }
    };
    let all = alone(LIMIT, move || {
        let launch = Job::threads(2)
            .force(Collective::Broadcast, chunks("pipelined", true))
            .force(Collective::Reduce, chunks("chain", false));
        launch.run(|pe| {
            let world = pe.world().with_sync(SyncModes::STRICT);
            let mut data = if world.rank() == Rank(0) { [3_u32, 4] } else { [0; 2] };
            world.in_place(&mut data).broadcast(Rank(0))?;
            let mut sums = if world.rank() == Rank(1) { vec![0; 2] } else { Vec::new() };
            world.slices(&data, &mut sums).reduce(Sum, Rank(1))?;
            Ok((data, sums))
        })
    });
    let all = all.expect("both serve");
    assert_eq!(all, [([3, 4], vec![]), ([3, 4], vec![6, 8])]);
}
