//! Every operator and datatype, user-defined operators, and elements of odd sizes.

use bytemuck::Zeroable;
use consort::{
    Error, Job, Pod, Rank, Result, Team,
    error::CallError,
    ops::{BitAnd, BitOr, BitXor, Max, Min, Operator, Product, Sum},
    sync_modes::SyncModes,
    tune::Collective,
};
use consort_collectives::PlanError;
use consort_conformance::{
    data::affine,
    registry::everything,
    turns::{LIMIT, alone, note},
};

/// Reduces `of(rank)` by every algorithm to every root, and by the library's choice, borrowed and
/// symmetric; compares with the combination in the order of the ranks. Returns how many served.
fn reduces<T: Pod + PartialEq + std::fmt::Debug, O: Operator<T> + Copy>(
    world: &Team,
    operator: O,
    of: impl Fn(Rank) -> Vec<T>,
) -> Result<usize> {
    let (me, pes) = (world.rank(), world.size());
    let len = of(me).len();
    let all: Vec<_> = world.ranks().map(&of).collect();
    let fold = |index: usize| {
        let elements = all.iter().map(|one| one[index]);
        elements.reduce(|sum, next| operator.apply(sum, next)).expect("a PE at least")
    };
    let expected: Vec<T> = (0..len).map(fold).collect();
    let (from, to) = (world.symmetric(len)?, world.symmetric(len)?);
    from.put(me, 0, &of(me))?;
    let mut served = 0;
    for candidate in everything(Collective::Reduce).into_iter().map(Some).chain([None]) {
        if me == Rank(0) {
            let (name, datatype) = (O::NAME, std::any::type_name::<T>());
            note(format!("{name} of {datatype} on {pes} PEs by {candidate:?}"));
        }
        world.algorithms().force(Collective::Reduce, candidate.clone());
        for root in world.ranks() {
            let mut target = vec![T::zeroed(); if me == root { len } else { 0 }];
            match world.slices(&of(me), &mut target).reduce(operator, root) {
                Err(Error::Call(CallError::Plan(PlanError::Incapable { .. })))
                    if candidate.is_some() =>
                {
                    break;
                }
                other => other?,
            }
            served += 1;
            let context = || format!("{candidate:?} to root {root} of {pes}");
            let expected = if me == root { &expected[..] } else { &[] };
            assert_eq!(target, expected, "{}", context());
            world
                .with_sync(SyncModes {
                    exit: consort::sync_modes::SyncMode::All,
                    ..SyncModes::MINE
                })
                .in_symmetric(&from, &to)
                .reduce(operator, root)?;
            let mut target = vec![T::zeroed(); expected.len()];
            to.get(me, 0, &mut target)?;
            assert_eq!(target, expected, "symmetric, {}", context());
            let Some(&mine) = of(me).first() else { continue };
            match world.reduce(mine, operator, root) {
                Err(Error::Call(CallError::Plan(PlanError::Incapable { .. })))
                    if candidate.is_some() => {}
                one => assert_eq!(one?, expected.first().copied(), "a value, {}", context()),
            }
        }
    }
    Ok(served)
}

fn on(pes: usize, program: impl Fn(&Team) -> Result<usize> + Send + Sync + 'static) {
    alone(LIMIT, move || {
        let all = Job::threads(pes).heap_bytes(16 << 20).run(|pe| program(pe.world()));
        let all = all.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
        assert!(all[0] > 0, "nothing served");
        assert!(all.iter().all(|&served| served == all[0]));
    });
}

/// Returns small numbers that differ from PE to PE.
macro_rules! numbers {
    ($t:ty, $rank:expr) => {
        (0..9)
            .map(|index| (index * 5 + $rank.index() * 3) % 11)
            .map(|count| (0..count).map(|_| 1 as $t).sum())
            .collect::<Vec<$t>>()
    };
}

macro_rules! every_operator {
    ($($name:ident: $($t:ty)*, $operators:tt;)*) => {$(
        #[test]
        fn $name() {
            on(3, |world| {
                let mut served = 0;
                $(every_operator!(@type world served $t $operators);)*
                Ok(served)
            });
        }
    )*};
    (@type $world:ident $served:ident $t:ty [$($operator:ident)*]) => {
        $($served += reduces($world, $operator, |rank| {
            // The extremes, where wrapping and comparing matter.
            let mut all = numbers!($t, rank);
            all[0] = <$t>::MAX;
            all[1] = <$t>::MIN;
            if rank == Rank(1) { all.swap(0, 1); }
            all
        })?;)*
    };
}

every_operator! {
    unsigned_integers: u8 u16 u32 u64 u128 usize,
        [Sum Product Min Max BitAnd BitOr BitXor];
    signed_integers: i8 i16 i32 i64 i128 isize,
        [Sum Product Min Max BitAnd BitOr BitXor];
    floats: f32 f64, [Min Max];
}

/// Floats with integer values: exact, so that the order of additions does not matter.
#[test]
fn floats_are_added_and_multiplied() {
    on(5, |world| {
        let mut served = reduces(world, Sum, |rank| numbers!(f64, rank))?;
        served += reduces(world, Product, |rank| numbers!(f64, rank))?;
        served += reduces(world, Sum, |rank| numbers!(f32, rank))?;
        served += reduces(world, Product, |rank| numbers!(f32, rank))?;
        Ok(served)
    });
}

#[test]
fn extremes_prefer_numbers_to_nan() {
    on(4, |world| {
        let of = |rank: Rank| vec![if rank == Rank(2) { f64::NAN } else { f64::from(rank.0) }];
        Ok(reduces(world, Max, of)? + reduces(world, Min, of)?)
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Pod)]
#[repr(C)]
struct Extremes {
    least: f64,
    most: f64,
    at: [u32; 2],
}

#[test]
fn closure_combines_structs() {
    let join = |a: Extremes, b: Extremes| {
        let (least, from) = if b.least < a.least { (b.least, b.at[0]) } else { (a.least, a.at[0]) };
        let (most, to) = if b.most > a.most { (b.most, b.at[1]) } else { (a.most, a.at[1]) };
        Extremes { least, most, at: [from, to] }
    };
    on(4, move |world| {
        reduces(world, join, |rank| {
            let value = |index: u32| f64::from((rank.0 * 7 + index) % 5);
            let of = |index| Extremes { least: value(index), most: value(index), at: [rank.0; 2] };
            (0..40).map(of).collect()
        })
    });
}

/// An operator with its own state.
#[test]
fn closures_may_borrow() {
    on(3, |world| {
        let modulus = 97_u64 + world.size() as u64;
        let multiply = |a: u64, b: u64| a * b % modulus;
        reduces(world, multiply, |rank| vec![u64::from(rank.0) + 2; 20])
    });
}

type Matrix = [[u32; 2]; 2];

fn product(a: Matrix, b: Matrix) -> Matrix {
    let cell = |i: usize, j: usize| {
        a[i][0].wrapping_mul(b[0][j]).wrapping_add(a[i][1].wrapping_mul(b[1][j]))
    };
    [[cell(0, 0), cell(0, 1)], [cell(1, 0), cell(1, 1)]]
}

/// Swapping operands changes the result, so the result shows the order of the ranks.
#[test]
fn products_of_matrices_keep_the_order_of_the_ranks() {
    for pes in [2, 3, 4, 7, 8, 11] {
        on(pes, |world| {
            reduces(world, product, |rank| {
                let of = |index: u32| [[rank.0 + 1, index + 2], [1, rank.0 * 2 + index]];
                (0..30).map(of).collect()
            })
        });
    }
}

/// The first PE, the last PE, and the concatenation of all.
#[test]
fn first_last_and_concatenation() {
    /// Digits of base 16, one per contributing PE, with their number.
    fn concatenate(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        [a[0] << (4 * b[1]) | b[0], a[1] + b[1]]
    }
    on(13, |world| {
        let digit = |rank: Rank| vec![[u64::from(rank.0) + 1, 1]];
        let mut served = reduces(world, concatenate, digit)?;
        world.algorithms().force(Collective::Reduce, None);
        let all = world.reduce(digit(world.rank())[0], concatenate, Rank(5))?;
        assert_eq!(all, (world.rank() == Rank(5)).then_some([0x1_2345_6789_abcd, 13]));
        served += reduces(world, |a: u32, _: u32| a, |rank| vec![rank.0; 3])?;
        served += reduces(world, |_: u32, b: u32| b, |rank| vec![rank.0; 3])?;
        Ok(served)
    });
}

/// Element by element, including arrays of arrays.
#[test]
fn arrays_are_combined_element_by_element() {
    on(3, |world| {
        let of = |rank: Rank| move |index: u32| (index * 7 + rank.0 * 5) % 9;
        let numbers = |rank: Rank| (0..40).map(of(rank));
        let floats = |rank: Rank| numbers(rank).map(|n| [f64::from(n), -f64::from(n), 0.5]);
        let nested = |rank: Rank| numbers(rank).map(|n| [[n, n + 1], [2 * n, !n]]);
        let mut served = reduces(world, Sum, |rank| floats(rank).collect())?;
        served += reduces(world, Product, |rank| floats(rank).collect())?;
        served += reduces(world, Min, |rank| floats(rank).collect())?;
        served += reduces(world, Max, |rank| nested(rank).collect())?;
        served += reduces(world, BitAnd, |rank| nested(rank).collect())?;
        served += reduces(world, BitOr, |rank| nested(rank).collect())?;
        served += reduces(world, BitXor, |rank| nested(rank).collect())?;
        // By hand, because the oracle uses the operators themselves.
        let me = f64::from(world.rank().0);
        assert_eq!(world.all_reduce([[me, 1.0], [-me, 2.0]], Sum)?, [[3.0, 3.0], [-3.0, 6.0]]);
        assert_eq!(world.all_reduce([[me, 1.0], [-me, 2.0]], Max)?, [[2.0, 1.0], [0.0, 2.0]]);
        Ok(served)
    });
}

fn affine_of<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|index| affine(a[index], b[index]))
}

fn large<const N: usize>(rank: Rank, len: usize) -> Vec<[u64; N]> {
    let words = crate::data::contribution::<u64>(11, rank, len * N);
    words.chunks(N).map(|chunk| std::array::from_fn(|index| chunk[index])).collect()
}

#[test]
fn elements_of_three_bytes_are_combined() {
    let bytes = |a: [u8; 3], b: [u8; 3]| [a[0], a[1].wrapping_add(b[1]), b[2]];
    on(4, move |world| {
        let mut served = 0;
        for len in [1, 2, 18, 19, 37, 400, 3000] {
            served += reduces(world, bytes, |rank| {
                vec![numbers!(u8, rank)[..3].try_into().expect("three"); len]
            })?;
        }
        Ok(served)
    });
}

/// Elements larger than a line, a chunk, and an inbox: some algorithm serves each of them, and the
/// library finds it.
#[test]
fn elements_larger_than_an_inbox_are_combined() {
    for pes in [2, 5, 9] {
        on(pes, |world| {
            let mut served = 0;
            for len in [1, 2, 60] {
                served += reduces(world, affine_of::<20>, |rank| large(rank, len))?;
                served += reduces(world, affine_of::<64>, |rank| large(rank, len))?;
            }
            for len in [1, 3] {
                served += reduces(world, affine_of::<640>, |rank| large(rank, len))?;
                served += reduces(world, affine_of::<1024>, |rank| large(rank, len))?;
                served += reduces(world, affine_of::<4000>, |rank| large(rank, len))?;
            }
            Ok(served)
        });
    }
}

#[test]
fn calls_accept_no_elements_and_zero_sized_elements() {
    on(4, |world| {
        let mut served = reduces(world, Sum, |_| Vec::<u64>::new())?;
        served += reduces(world, |a: [u8; 0], _: [u8; 0]| a, |_| vec![[]; 3])?;
        for root in (0..4).map(Rank) {
            world.in_place::<u64>(&mut []).broadcast(root)?;
            world.in_place::<[u8; 0]>(&mut [[]; 5]).broadcast(root)?;
        }
        Ok(served)
    });
}

/// Any datatype can be broadcast.
#[test]
fn structs_are_broadcast_by_every_algorithm() {
    on(3, |world| {
        let mut served = 0;
        for candidate in everything(Collective::Broadcast).into_iter().map(Some).chain([None]) {
            world.algorithms().force(Collective::Broadcast, candidate.clone());
            for root in (0..3).map(Rank) {
                let is_root = world.rank() == root;
                let sent = Extremes { least: -1.5, most: f64::INFINITY, at: [3, root.0] };
                let blank = Extremes::zeroed();
                match world.broadcast(if is_root { sent } else { blank }, root) {
                    Err(Error::Call(CallError::Plan(PlanError::Incapable { .. })))
                        if candidate.is_some() => {}
                    other => assert_eq!(other?, sent),
                }
                let sent = large::<4000>(root, 1)[0];
                match world.broadcast(if is_root { sent } else { [0; 4000] }, root) {
                    Err(Error::Call(CallError::Plan(PlanError::Incapable { .. })))
                        if candidate.is_some() => {}
                    other => assert!(other? == sent),
                }
                served += 1;
            }
        }
        Ok(served)
    });
}
