//! Short floats and complex numbers as element types.

use std::fmt::Debug;

use consort::{
    Error, Job, Pod, Rank, Result, Team,
    error::CallError,
    ops::{Max, Min, Operator, Product, Sum},
    tune::Collective,
};
use consort_conformance::registry::everything;
use consort_fabric::splitmix64;
use half::{bf16, f16};
use num_complex::Complex;

use crate::{every_call::every_call, jobs::on};

/// Combines the elements of all PEs as values, slices, in place and in symmetric memory. Every
/// order must give the same result.
fn combine<T: Pod + PartialEq + Debug>(
    world: &Team,
    of: impl Fn(u32) -> T,
    operator: impl Operator<T> + Copy,
) -> Result<()> {
    const LEN: usize = 100;
    let me = world.rank().0;
    let all = world.ranks().map(|rank| of(rank.0));
    let expected = all.reduce(|left, right| operator.apply(left, right)).expect("a PE at least");
    assert_eq!(world.all_reduce(of(me), operator)?, expected);
    let last = Rank::new(world.size() - 1);
    assert_eq!(world.reduce(of(me), operator, last)?, (me == last.0).then_some(expected));
    let until = (0..=me).map(&of).reduce(|left, right| operator.apply(left, right));
    assert_eq!(Some(world.scan(of(me), operator)?), until);
    let mut target = [T::zeroed(); LEN];
    world.slices(&[of(me); LEN], &mut target).all_reduce(operator)?;
    assert_eq!(target, [expected; LEN]);
    let mut data = [of(me); LEN];
    world.in_place(&mut data).all_reduce(operator)?;
    assert_eq!(data, [expected; LEN]);
    let (from, to) = (world.symmetric(LEN)?, world.symmetric(LEN)?);
    from.fill(of(me))?;
    world.barrier()?;
    world.in_symmetric(&from, &to).all_reduce(operator)?;
    assert_eq!(to.to_vec()?, [expected; LEN]);
    world.barrier()
}

/// Small whole numbers, whose sums and products are exact.
macro_rules! short_floats {
    ($world:expr, $t:ty) => {{
        let number = |rank: u32| <$t>::from_f32(1.0 + (rank * 7 % 3) as f32);
        combine($world, number, Sum)?;
        combine($world, number, Product)?;
        combine($world, number, Min)?;
        combine($world, number, Max)?;
        let array = |rank: u32| [number(rank), number(rank + 1), -number(rank)];
        combine($world, array, Sum)?;
        combine($world, array, Min)?;
        every_call($world, number, |_, right| right)?;
    }};
}

#[test]
fn short_floats_are_combined_in_every_form_of_call() {
    for pes in 2..=5 {
        on(Job::threads(pes).heap_bytes(1 << 16), |world| {
            short_floats!(world, f16);
            short_floats!(world, bf16);
            Ok(())
        });
    }
}

#[test]
fn complex_numbers_are_combined_in_every_form_of_call() {
    for pes in 2..=5 {
        on(Job::threads(pes).heap_bytes(1 << 16), |world| {
            let long = |rank: u32| Complex::new(f64::from(rank) - 1.5, 2.0 - f64::from(rank));
            combine(world, long, Sum)?;
            combine(world, long, Product)?;
            let short = |rank: u32| Complex::new((rank % 3) as f32, 0.5);
            combine(world, short, Sum)?;
            combine(world, |rank| [short(rank); 2], Product)?;
            let larger = |a: Complex<f64>, b: Complex<f64>| {
                if b.norm_sqr() > a.norm_sqr() { b } else { a }
            };
            every_call(world, long, larger)?;
            let turned = world.all_reduce(Complex::new(0.0, 1.0), Product)?;
            assert_eq!(turned, Complex::i().powu(u32::try_from(world.size()).expect("few")));
            Ok(())
        });
    }
}

/// Returns the results of all-reduces in which one PE contributes `special` and the others `other`,
/// for each PE in turn.
fn with_one<T: Pod>(
    world: &Team,
    special: T,
    other: T,
    operator: impl Operator<T> + Copy,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for rank in world.ranks() {
        let mine = if rank == world.rank() { special } else { other };
        found.push(world.all_reduce(mine, operator)?);
        let mut many = [mine; 50];
        world.in_place(&mut many).all_reduce(operator)?;
        found.extend(many);
    }
    Ok(found)
}

macro_rules! specials {
    ($world:expr, $t:ty) => {{
        let (world, one) = ($world, <$t>::from_f32(1.0));
        let all = |found: Vec<$t>, holds: fn($t) -> bool| assert!(found.into_iter().all(holds));
        all(with_one(world, <$t>::INFINITY, one, Sum)?, |it| it == <$t>::INFINITY);
        all(with_one(world, <$t>::INFINITY, <$t>::NEG_INFINITY, Sum)?, <$t>::is_nan);
        all(with_one(world, <$t>::NAN, one, Sum)?, <$t>::is_nan);
        all(with_one(world, <$t>::NAN, one, Product)?, <$t>::is_nan);
        all(with_one(world, <$t>::INFINITY, <$t>::from_f32(0.0), Product)?, <$t>::is_nan);
        all(with_one(world, <$t>::MAX, <$t>::MAX, Sum)?, |it| it == <$t>::INFINITY);
        all(with_one(world, <$t>::MAX, <$t>::MIN, Product)?, <$t>::is_infinite);
        // A number is preferred to a NaN, and -0 is below +0.
        all(with_one(world, <$t>::NAN, one, Min)?, |it| it.to_f32() == 1.0);
        all(with_one(world, <$t>::NAN, one, Max)?, |it| it.to_f32() == 1.0);
        all(with_one(world, -<$t>::NAN, <$t>::NAN, Max)?, |it| it.to_bits() == <$t>::NAN.to_bits());
        all(with_one(world, -<$t>::NAN, <$t>::NAN, Min)?, |it| it.to_bits() == <$t>::NAN.to_bits());
        let [zero, below] = [0.0, -0.0].map(<$t>::from_f32);
        all(with_one(world, below, zero, Min)?, |it| it.to_bits() == 0x8000);
        all(with_one(world, zero, below, Max)?, |it| it.to_bits() == 0);
        all(with_one(world, <$t>::INFINITY, one, Min)?, |it| it.to_f32() == 1.0);
        all(with_one(world, <$t>::NEG_INFINITY, one, Min)?, |it| it == <$t>::NEG_INFINITY);
    }};
}

#[test]
fn nan_and_infinities_follow_ieee() {
    for pes in 2..=5 {
        on(Job::threads(pes), |world| {
            specials!(world, f16);
            specials!(world, bf16);
            let one = Complex::new(1.0_f64, 1.0);
            let infinite = Complex::new(f64::INFINITY, 0.0);
            let sums = with_one(world, infinite, one, Sum)?;
            assert!(sums.iter().all(|sum| sum.re == f64::INFINITY && sum.im.is_finite()));
            let nans = with_one(world, Complex::new(1.0, f64::NAN), one, Sum)?;
            assert!(nans.iter().all(|sum| sum.re.is_finite() && sum.im.is_nan()));
            let products = with_one(world, Complex::new(f64::NAN, 0.0), one, Product)?;
            assert!(products.iter().all(|product| product.is_nan()));
            Ok(())
        });
    }
}

/// Checks that sums are rounded once, in every form of call: PE 0 contributes 1, and the others
/// half of the distance to the next number, which is lost if it is added to 1 alone.
fn rounds_once<T: Pod + PartialEq + Debug + Send + Sync>(
    world: &Team,
    of: impl Fn(f32) -> T,
    half_step: f32,
) -> Result<()>
where
    Sum: Operator<T>,
{
    const LONG: usize = 20_000;
    let me = world.rank().0;
    let sum = |until: u32| of(1.0 + until as f32 * half_step);
    let mine = of(if me == 0 { 1.0 } else { half_step });
    let (root, untouched) = (Rank::new(world.size() - 1), of(7.0));
    let Rank(last) = root;
    let total = sum(last);
    let at_root = if me == last { total } else { untouched };
    assert_eq!(world.all_reduce(mine, Sum)?, total);
    assert_eq!(world.reduce(mine, Sum, root)?, (me == last).then_some(total));
    assert_eq!(world.scan(mine, Sum)?, sum(me));
    assert_eq!(world.reduce_scatter(&vec![mine; world.size()], Sum)?, total);
    assert_eq!(world.all_reduce([mine; 3], Sum)?, [total; 3]);
    assert_eq!(world.values(&[mine; 3]).all_reduce(Sum)?, [total; 3]);
    for len in [1, 7, LONG] {
        let source = vec![mine; len];
        let mut target = vec![untouched; len];
        world.slices(&source, &mut target).reduce(Sum, root)?;
        assert_eq!(target, vec![at_root; len]);
        world.slices(&source, &mut target).exclusive_scan(Sum)?;
        assert_eq!(target, vec![if me == 0 { at_root } else { sum(me - 1) }; len]);
        world.slices(&source, &mut target).all_reduce(Sum)?;
        assert_eq!(target, vec![total; len]);
        let mut data = source.clone();
        world.in_place(&mut data).reduce(Sum, root)?;
        assert_eq!(data, vec![if me == last { total } else { mine }; len]);
        let mut data = source.clone();
        world.in_place(&mut data).scan(Sum)?;
        assert_eq!(data, vec![sum(me); len]);
        let owned = world.start(source.clone()).all_reduce(Sum)?;
        let both = world.start_into(source.clone(), vec![untouched; len]).reduce(Sum, root)?;
        let plan = world.plan::<T>(len).scan(Sum)?;
        let planned = plan.start(source.clone())?;
        assert_eq!(planned.wait()?, vec![sum(me); len]);
        assert_eq!(both.wait()?, (source.clone(), vec![at_root; len]));
        assert_eq!(owned.wait()?, vec![total; len]);
        let (mut target, mut data) = (vec![untouched; len], source.clone());
        world.overlap(|scope| {
            scope.start_into(&source, &mut target).all_reduce(Sum)?;
            scope.start_in_place(&mut data).scan(Sum).map(drop)
        })?;
        assert_eq!((target, data), (vec![total; len], vec![sum(me); len]));
        let (from, to) = (world.symmetric::<T>(len)?, world.symmetric::<T>(len)?);
        from.fill(mine)?;
        to.fill(untouched)?;
        world.barrier()?;
        world.in_symmetric(&from, &to).reduce(Sum, root)?;
        assert_eq!(to.to_vec()?, vec![at_root; len]);
        world.start_symmetric(&from, &to).all_reduce(Sum)?.wait()?;
        assert_eq!(to.to_vec()?, vec![total; len]);
        world.barrier()?;
    }
    Ok(())
}

#[test]
fn sums_of_short_floats_are_rounded_once() {
    for pes in 2..=6 {
        on(Job::threads(pes).heap_bytes(1 << 20), |world| {
            rounds_once(world, f16::from_f32, 2_f32.powi(-11))?;
            rounds_once(world, bf16::from_f32, 2_f32.powi(-8))
        });
    }
}

/// A long call copies its elements in pieces. Each element differs from its neighbours.
#[test]
fn long_short_floats_are_combined_in_pieces() {
    const LEN: usize = 600_001;
    on(Job::threads(3), |world| {
        let of = |index: usize, sum: usize| bf16::from_f32((index % 64 * sum) as f32);
        let all = |sum: usize| (0..LEN).map(|index| of(index, sum)).collect::<Vec<_>>();
        let rank = world.rank().index();
        let (mine, root) = (all(1), Rank(1));
        let mut data = mine.clone();
        world.in_place(&mut data).all_reduce(Sum)?;
        assert!(data == all(3));
        world.slices(&mine, &mut data).scan(Sum)?;
        assert!(data == all(rank + 1));
        world.slices(&mine, &mut data).exclusive_scan(Sum)?;
        // PE 0 gets no result: it keeps that of the scan.
        assert!(data == all(rank.max(1)));
        let mut at_root = vec![bf16::ZERO; if rank == 1 { LEN } else { 5 }];
        world.slices(&mine, &mut at_root).reduce(Sum, root)?;
        assert!(at_root == if rank == 1 { all(3) } else { vec![bf16::ZERO; 5] });
        let (blocks, mut block) = (all(1), vec![bf16::ZERO; LEN / 3]);
        world.slices(&blocks[..LEN / 3 * 3], &mut block).reduce_scatter(Sum)?;
        assert!(block == all(3)[LEN / 3 * rank..][..LEN / 3]);
        Ok(())
    });
}

/// Checks for each algorithm that all PEs get the same bits, and get them again, although the order
/// of the sums matters.
fn repeats<T: Pod>(
    world: &Team,
    of: impl Fn(u64) -> T,
    operator: impl Operator<T> + Copy,
) -> Result<usize> {
    let mut state = u64::from(world.rank().0);
    let mine: Vec<T> = (0..300).map(|_| of(splitmix64(&mut state))).collect();
    let mut served = 0;
    for candidate in everything(Collective::AllReduce) {
        world.algorithms().force(Collective::AllReduce, Some(candidate.clone()));
        let mut first: Option<Vec<u8>> = None;
        for _ in 0..3 {
            let mut target = vec![T::zeroed(); mine.len()];
            match world.slices(&mine, &mut target).all_reduce(operator) {
                Err(Error::Call(CallError::Plan(_))) => break,
                found => found?,
            }
            let bytes = bytemuck::cast_slice::<T, u8>(&target).to_vec();
            let mut of_root = bytes.clone();
            world.in_place(&mut of_root).broadcast(Rank(0))?;
            assert!(bytes == of_root, "{candidate:?}: the PEs differ");
            assert!(*first.get_or_insert(bytes.clone()) == bytes, "{candidate:?}: runs differ");
            served += 1;
        }
    }
    world.algorithms().force(Collective::AllReduce, None);
    Ok(served)
}

#[test]
fn all_pes_get_the_same_sum_again_from_the_same_algorithm() {
    /// Returns a number of one of twelve magnitudes.
    fn number(word: u64) -> f32 {
        let [sign, exponent, digits, ..] = word.to_le_bytes();
        let magnitude =
            (1.0 + f32::from(digits) / 256.0) * 2_f32.powi(i32::from(exponent % 12) - 6);
        if sign % 2 == 0 { magnitude } else { -magnitude }
    }
    /// Replaces one number of four by one of two NaNs. Both are NaNs of `f16` and of `bf16`.
    fn or_nan(word: u64, number: u16) -> u16 {
        match word >> 56 {
            0..32 => 0x7fc1,
            32..64 => 0xffd2,
            _ => number,
        }
    }
    let f16_or_nan = |word| f16::from_bits(or_nan(word, f16::from_f32(number(word)).to_bits()));
    let bf16_or_nan = |word| bf16::from_bits(or_nan(word, bf16::from_f32(number(word)).to_bits()));
    for pes in 2..=5 {
        let served = on(Job::threads(pes), move |world| {
            let served = [
                repeats(world, number, Sum)?,
                repeats(world, |word| f16::from_f32(number(word)), Sum)?,
                repeats(world, |word| bf16::from_f32(number(word)), Sum)?,
                repeats(world, |word| bf16::from_f32(number(word)), Product)?,
                repeats(world, f16_or_nan, Sum)?,
                repeats(world, f16_or_nan, Product)?,
                repeats(world, bf16_or_nan, Sum)?,
                repeats(world, bf16_or_nan, Product)?,
                repeats(world, |word| Complex::new(number(word), number(word >> 32)), Sum)?,
                repeats(world, |word| Complex::new(number(word), number(word >> 32)), Product)?,
            ];
            Ok(served)
        });
        assert!(served[0].iter().all(|&served| served > 9), "{served:?}");
    }
}
