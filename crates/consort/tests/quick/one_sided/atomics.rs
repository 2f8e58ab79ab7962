//! Atomic operations on words of other PEs.

use consort::{Job, Rank, ops::Sum, symmetric::Atomic};

use crate::jobs::on;

#[test]
fn each_atomic_operation_does_what_its_name_says() {
    on(Job::threads(2), |world| {
        let words = world.symmetric::<u64>(4)?;
        let other = world.right();
        let index = world.rank().index();
        let atomic = |operation| words.atomic(other, index, operation);
        assert_eq!(atomic(Atomic::Load)?, 0);
        assert_eq!(atomic(Atomic::Swap(0b1100))?, 0);
        assert_eq!(atomic(Atomic::FetchAnd(0b0110))?, 0b1100);
        assert_eq!(atomic(Atomic::FetchOr(0b0011))?, 0b0100);
        assert_eq!(atomic(Atomic::FetchXor(0b0101))?, 0b0111);
        assert_eq!(atomic(Atomic::FetchAdd(u64::MAX))?, 0b0010);
        assert_eq!(atomic(Atomic::CompareSwap { current: 7, new: 9 })?, 1);
        assert_eq!(atomic(Atomic::CompareSwap { current: 1, new: 9 })?, 1);
        assert_eq!(words.fetch_add(other, index, 1)?, 9);
        assert_eq!(atomic(Atomic::Load)?, 10);
        world.barrier()?;
        assert_eq!(words.load(other.index())?, 10, "at the other PE, in the caller's word");
        let signed = world.symmetric::<i64>(1)?;
        assert_eq!(signed.fetch_add(other, 0, -3)?, 0);
        assert_eq!(signed.atomic(other, 0, Atomic::Load)?, -3);
        world.barrier()
    });
}

#[test]
fn atomics_from_all_pes_lose_nothing() {
    const ROUNDS: u64 = 2000;
    for pes in [2, 7] {
        on(Job::threads(pes), |world| {
            let (me, pes) = (u64::from(world.rank().0), world.size() as u64);
            let words = world.symmetric::<u64>(6)?;
            let at = Rank::new(world.size() - 1);
            if world.rank() == at {
                words.store(2, u64::MAX)?;
            }
            world.barrier()?;
            let mut swapped = 0_u64;
            let mut won = 0;
            for round in 0..ROUNDS {
                words.fetch_add(at, 0, me + 1)?;
                words.atomic(at, 1, Atomic::FetchOr(1 << me))?;
                words.atomic(at, 2, Atomic::FetchAnd(!(1 << me)))?;
                words.atomic(at, 3, Atomic::FetchXor(1 << (round % 64)))?;
                let token = 1 + round * pes + me;
                swapped = swapped.wrapping_add(words.atomic(at, 4, Atomic::Swap(token))?);
                let seen = words.atomic(at, 5, Atomic::Load)?;
                let swap = Atomic::CompareSwap { current: seen, new: seen + 1 };
                won += u64::from(words.atomic(at, 5, swap)? == seen);
            }
            // One swap read each token, except the one that is still there.
            let swapped = world.reduce(swapped, Sum, Rank(0))?;
            let won = world.reduce(won, Sum, Rank(0))?;
            world.barrier()?;
            let mut last = [0; 6];
            words.get(at, 0, &mut last)?;
            let xor: u64 = (0..ROUNDS * pes).fold(0, |bits, n| bits ^ 1 << (n % ROUNDS % 64));
            let sum = ROUNDS * pes * (pes + 1) / 2;
            let all = (1 << pes) - 1;
            assert_eq!(last[..4], [sum, all, !all, xor]);
            if world.rank() == Rank(0) {
                assert_eq!(won, Some(last[5]));
                let tokens: u64 = (1..=ROUNDS * pes).sum();
                assert_eq!(swapped, Some(tokens - last[4]));
            }
            world.barrier()
        });
    }
}
