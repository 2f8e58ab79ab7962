//! Calls on values that are not plain data, calls that return vectors, and reductions in place.

use std::fmt::Debug;

use consort::{
    Error, Job, Pod, Rank, Result, Team, Value,
    error::{CallError, Failure},
    ops::{BitAnd, BitOr, BitXor, Operator, OperatorClass, Sum},
    sync_modes::SyncModes,
    tune::Collective,
};
use consort_conformance::registry::everything;

use crate::{
    data::count,
    every_call::every_call,
    jobs::{fails, on},
};

#[test]
fn bool_char_and_tuples_go_through_every_call_on_values() {
    for pes in [1, 2, 3, 5] {
        on(Job::threads(pes), |world| {
            every_call(world, |rank| rank % 2 == 1, BitXor)?;
            let character = |rank| "añ字🦀z".chars().nth(rank as usize).expect("a PE of five");
            every_call(world, character, |first, _| first)?;
            let right = |_: (bool, f64), right: (bool, f64)| right;
            every_call(world, |rank| (rank == 1, f64::from(rank)), right)?;
            let nested = |rank: u32| ('x', (rank, (rank > 0, [rank; 3])), u128::from(rank));
            every_call(world, nested, |left, _| left)?;
            let all: [u8; 4] = [1, 2, 3, 4];
            every_call(world, |rank| (true, rank, 'c', 2_u8), |left, _| left)?;
            every_call(world, |rank| (rank, all, 'c', 2_i16, -1.5_f32), |_, right| right)?;
            every_call(world, |rank| (1_u64, 'é', (), rank, (false, 3_u8), rank), |_, b| b)
        });
    }
}

/// As for an enum: the program packs it, and combines it with its own operator.
#[test]
fn user_type_is_sent_as_a_value() {
    #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
    enum State {
        Running,
        Converged,
        Diverged,
    }

    impl Value<State> for State {
        type Packed = [u8; 2];

        fn pack(self) -> [u8; 2] {
            [7, self as u8]
        }

        fn unpack([_, state]: [u8; 2]) -> Self {
            [Self::Running, Self::Converged, Self::Diverged][usize::from(state.min(2))]
        }
    }

    struct Worst;

    impl Operator<State> for Worst {
        const CLASS: OperatorClass = OperatorClass::Commutative;
        const NAME: &'static str = "Worst";

        fn apply(&self, left: State, right: State) -> State {
            if left < right { right } else { left }
        }
    }

    on(Job::threads(4), |world| {
        let mine = [State::Running, State::Converged][world.rank().index() % 2];
        assert_eq!(world.all_reduce(mine, Worst)?, State::Converged);
        let mine = if world.rank() == Rank(3) { State::Diverged } else { mine };
        assert_eq!(
            world.all_reduce((mine, 1_u8), |a: (State, u8), b: (State, u8)| {
                (Worst.apply(a.0, b.0), a.1 + b.1)
            })?,
            (State::Diverged, 4)
        );
        Ok(())
    });
}

#[test]
fn every_algorithm_combines_tuples_in_the_order_of_the_ranks() {
    /// The map `x -> a x + b`, and whether every `b` was even.
    type Map = (i64, i64, bool);
    for pes in [2, 3, 6] {
        let served = on(Job::threads(pes), |world| {
            let me = i64::from(world.rank().0);
            let compose = |(a, b, even): Map, (c, d, also): Map| (a * c, b * c + d, even & also);
            let map = |rank: i64| (2, rank, rank % 2 == 0);
            let expected = world.ranks().map(|rank| map(rank.0.into())).reduce(compose);
            let mut served = 0;
            for candidate in everything(Collective::AllReduce) {
                world.algorithms().force(Collective::AllReduce, Some(candidate));
                match world.all_reduce(map(me), compose) {
                    Err(Error::Call(CallError::Plan(_))) => {}
                    found => {
                        assert_eq!(found.map(Some)?, expected);
                        served += 1;
                    }
                }
            }
            Ok(served)
        });
        assert!(served[0] > 3, "{} algorithms", served[0]);
    }
}

#[test]
fn logical_operators_combine_bool() {
    on(Job::threads(3), |world| {
        let (one, all) = (world.rank() == Rank(1), true);
        assert!(!world.all_reduce(one, BitAnd)? && world.all_reduce(all, BitAnd)?);
        assert!(world.all_reduce(one, BitOr)? && !world.all_reduce(!all, BitOr)?);
        assert!(world.all_reduce(all, BitXor)?);
        // As values, in any mode.
        let loose = world.with_sync(SyncModes::LOOSE);
        assert_eq!(loose.broadcast((one, 'x'), Rank(1))?, (true, 'x'));
        world.barrier()
    });
}

/// Code that is generic over plain data passes it as values, slices and symmetric memory.
#[test]
fn generic_code_needs_no_more_than_plain_data() {
    fn sums<T: Pod, O: Operator<T> + Copy>(world: &Team, value: T, add: O) -> Result<Vec<T>> {
        let mut all = world.all_gather(value)?;
        world.in_place(&mut all).all_reduce(add)?;
        all.push(world.all_reduce(value, add)?);
        Ok(all)
    }
    fn last<T: bytemuck::Pod>(world: &Team, value: T) -> Result<T> {
        let memory = world.symmetric::<T>(1)?;
        memory.store(0, value)?;
        world.in_symmetric(&memory, &memory).broadcast(Rank::new(world.size() - 1))?;
        world.broadcast(memory.load(0)?, Rank(0))
    }
    on(Job::threads(3), |world| {
        assert_eq!(sums(world, world.rank().0, Sum)?, [0, 3, 6, 3]);
        assert_eq!(last(world, world.rank().0)?, 2);
        // The types of literals are inferred as in other calls.
        assert_eq!(world.all_reduce(1, Sum)?, 3);
        assert_eq!(world.all_reduce([0.5, 1.0], Sum)?, [1.5, 3.0]);
        let count: usize = world.all_reduce("2".parse().expect("a number"), Sum)?;
        assert_eq!(count, 6);
        Ok(())
    });
}

/// Bits that no PE sends: a number that is not a character, and a number other than 0 and 1.
#[test]
fn any_bits_are_a_value() {
    assert!(bool::unpack(2) && bool::unpack(255) && !bool::unpack(0));
    assert_eq!(char::unpack(0xd800), char::REPLACEMENT_CHARACTER);
    assert_eq!(char::unpack(u32::MAX), char::REPLACEMENT_CHARACTER);
    fn packed_bytes<T: Value<Kind>, Kind>(_: T) -> usize {
        size_of::<T::Packed>()
    }
    assert_eq!(packed_bytes((true, 1.0)), 9);
    assert_eq!(packed_bytes(('a', (true, 1_u16), [0_u8; 3])), 10);
}

#[test]
fn a_mismatch_names_the_types_of_the_program() {
    let error = fails(3, |world| {
        if world.rank() == Rank(1) {
            world.all_reduce((1_u8, 1.0), |a: (u8, f64), _: (u8, f64)| a).map(drop)
        } else {
            world.all_reduce((true, 1.0), |a: (bool, f64), _: (bool, f64)| a).map(drop)
        }
    });
    let Error::Mismatched(Failure::Mismatched { .. }) = &error else { panic!("{error}") };
    let text = error.to_string();
    assert!(text.contains("9 bytes of (bool, f64)") && text.contains("of (u8, f64)"), "{text}");
}

/// Data of more than one piece, with elements that divide a piece and others that do not.
#[test]
fn long_data_is_combined_in_place() {
    fn check<T: Pod + PartialEq + Debug>(
        world: &Team,
        len: usize,
        of: impl Fn(usize, u32) -> T,
        join: impl Operator<T> + Copy,
    ) -> Result<()> {
        let (me, last) = (world.rank().0, count(world.size()) - 1);
        let mine: Vec<T> = (0..len).map(|index| of(index, me)).collect();
        let until = |index: usize, last: u32| {
            let all = (0..=last).map(|rank| of(index, rank));
            all.reduce(|left, right| join.apply(left, right)).expect("a PE at least")
        };
        let expected = |last: u32| -> Vec<T> { (0..len).map(|index| until(index, last)).collect() };
        let mut data = mine.clone();
        world.in_place(&mut data).all_reduce(join)?;
        assert!(data == expected(last));
        data.clone_from(&mine);
        world.in_place(&mut data).scan(join)?;
        assert!(data == expected(me));
        data.clone_from(&mine);
        world.in_place(&mut data).reduce(join, Rank(1))?;
        assert!(data == if me == 1 { expected(last) } else { mine });
        Ok(())
    }
    on(Job::threads(3), |world| {
        for len in [0, 1, 1 << 17, (1 << 17) + 1, 300_000] {
            check(world, len, |index, rank| index as u64 ^ u64::from(rank), Sum)?;
        }
        let compose = |[a, b, c]: [u8; 3], [d, e, f]: [u8; 3]| {
            [a.wrapping_mul(d), b.wrapping_mul(d).wrapping_add(e), c.wrapping_sub(f)]
        };
        let of = |index: usize, rank: u32| [index.to_le_bytes()[0] | 1, rank.to_le_bytes()[0], 1];
        check(world, 400_000, of, compose)?;
        check(world, 3, |_, _| [], |none: [u8; 0], _: [u8; 0]| none)?;
        let loose = world.with_sync(SyncModes::LOOSE);
        let refused = loose.in_place(&mut [1, 2]).all_reduce(Sum);
        assert!(matches!(refused, Err(Error::Call(CallError::BorrowedSlice(_)))));
        let outside = world.in_place(&mut [1, 2]).reduce(Sum, Rank(3));
        assert!(matches!(outside, Err(Error::Call(CallError::RootOutOfRange { .. }))));
        Ok(())
    });
}
