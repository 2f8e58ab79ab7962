//! Signals and fences: data arrives before the word that announces it.

use consort::{
    Job, Rank,
    symmetric::{Signal, Until},
};
use consort_conformance::data::Random;

use super::WORDS;
use crate::jobs::on;

/// A PE that sees the signal sees the data, although the buffer is reused again and again.
#[test]
fn signal_arrives_after_its_data() {
    on(Job::threads(4), |world| {
        let pes = world.size();
        let data = world.symmetric::<u64>(64 * pes)?;
        let flags = world.symmetric::<u64>(pes)?;
        let taken = world.symmetric::<u64>(pes)?;
        let me = world.rank().index();
        let mut random = Random(me as u64);
        for round in 1..=500_u64 {
            random.dawdle();
            for to in world.ranks() {
                let how = if round % 2 == 0 { Signal::Add(1) } else { Signal::Set(round) };
                data.put_signal(to, 64 * me, &[round << 8 | me as u64; 64], &flags, me, how)?;
            }
            for from in 0..pes {
                assert_eq!(flags.wait_until(from, Until::Equals(round))?, round);
                let mut got = [0; 64];
                data.get(world.rank(), 64 * from, &mut got)?;
                assert_eq!(got, [round << 8 | from as u64; 64]);
                taken.fetch_add(Rank::new(from), me, 1)?;
            }
            for from in 0..pes {
                taken.wait_until(from, Until::AtLeast(round))?;
            }
        }
        world.barrier()
    });
}

/// Without a signal operation: put, fence, put of a flag.
#[test]
fn a_fence_orders_puts() {
    on(Job::threads(2), |world| {
        let data = world.symmetric::<u64>(300)?;
        let flag = world.symmetric::<u64>(2)?;
        for round in 1..=2000 {
            if world.rank() == Rank(0) {
                data.put(Rank(1), 0, &[round; 300])?;
                data.fence()?;
                flag.put(Rank(1), 0, &[round])?;
                flag.wait_until(1, Until::AtLeast(round))?;
            } else {
                flag.wait_until(0, Until::Equals(round))?;
                let mut got = [0; 300];
                data.get(Rank(1), 0, &mut got)?;
                assert_eq!(got, [round; 300]);
                flag.put(Rank(0), 1, &[round])?;
            }
        }
        world.barrier()
    });
}

#[test]
fn plain_signal_follows_fenced_puts() {
    on(Job::threads(2), |world| {
        let (data, flags) = (world.symmetric::<u64>(WORDS)?, world.symmetric::<u64>(1)?);
        for round in 1..=20 {
            if world.rank() == Rank(0) {
                data.put(Rank(1), 0, &[round; WORDS])?;
                data.fence()?;
                flags.signal(Rank(1), 0, Signal::Add(1))?;
            } else {
                flags.wait_until(0, Until::AtLeast(round))?;
                assert_eq!([data.load(0)?, data.load(WORDS - 1)?], [round, round]);
            }
            world.barrier()?;
        }
        Ok(())
    });
}
