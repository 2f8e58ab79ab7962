//! More calls in flight than a window has room for.

use std::{thread, time::Duration};

use consort::{
    Rank, Waiting,
    tune::{Candidate, Collective},
};
use consort_conformance::turns::{LIMIT, alone};

use super::{check, start};
use crate::{
    data::Call,
    jobs::{on, pes_of},
};

/// Three windows of calls, waited for in reverse order, with barriers between.
#[test]
fn three_windows_of_calls_may_be_pending() {
    for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
        on(pes_of(3).waiting(waiting), move |world| {
            let calls: Vec<_> = (0..200)
                .map(|seed| {
                    let collective = Collective::EVERY[seed % Collective::EVERY.len()];
                    let root = Rank(u32::try_from(seed % 3).expect("few"));
                    Call { collective, pes: 3, root, len: seed, seed: seed as u64 }
                })
                .collect();
            let mut requests = Vec::new();
            for (index, call) in calls.iter().enumerate() {
                if world.rank() == Rank(1) && index % 50 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                requests.push(start(world, call)?);
                if index % 20 == 7 {
                    world.barrier()?;
                }
            }
            for (request, call) in requests.into_iter().zip(&calls).rev() {
                check(call, world.rank(), request.wait()?);
            }
            Ok(())
        });
    }
}

/// PE 0 is past a quarter of the window, but its calls are still pending, because it does not check
/// for messages. PE 2, which sends them, must not reuse their places.
#[test]
fn pending_calls_keep_their_slots() {
    alone(LIMIT / 6, || {
        pes_of(3).force(Collective::Broadcast, Candidate::new("flat")).run(|pe| {
            let world = pe.world();
            let me = world.rank();
            if me == Rank(2) {
                thread::sleep(Duration::from_millis(20));
            }
            let mut requests = Vec::new();
            for index in 0..200_u64 {
                if me == Rank(0) && index == 17 {
                    thread::sleep(Duration::from_millis(60));
                }
                let data = if me == Rank(2) { index } else { u64::MAX };
                requests.push(world.start(vec![data]).broadcast(Rank(2))?);
            }
            for (index, request) in (0..).zip(requests) {
                assert_eq!(request.wait()?, [index]);
            }
            Ok(())
        })
    })
    .unwrap();
}
