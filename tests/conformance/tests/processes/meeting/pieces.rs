//! Combinations of long data, which processes make in pieces of 1 MiB.

use consort::{
    JobBuilder, Pod, Rank, Result, Team,
    ops::{Operator, Sum},
};
use half::bf16;
use libtest_mimic::{Failed, Trial};

use super::running::{all_work, start_all};

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

pub(super) fn tests() -> Vec<Trial> {
    let trials = [2, 3].map(|pes| {
        let of = move |name: &str, test: fn(u32) -> Result<(), Failed>| {
            Trial::test(format!("meeting::{name}::{pes}"), move || test(pes))
        };
        [
            of("long_data_is_combined_in_pieces", |pes| {
                all_work(&start_all(pes, &["pieces"]), "combined")
            }),
            of("operators_that_do_not_commute_keep_the_order_in_place", |pes| {
                all_work(&start_all(pes, &["ordered"]), "combined")
            }),
            of("mismatch_of_short_floats_names_the_bytes_that_are_sent", mismatched),
        ]
    });
    trials.into_iter().flatten().collect()
}

/// The first pieces are alike. Among three PEs, short floats are sent as `f32`.
fn mismatched(pes: u32) -> Result<(), Failed> {
    let bytes = if pes > 2 { 4 } else { 2 };
    let part = |len: usize| format!("all_reduce({} bytes of half::bf16", len * bytes);
    let parts = [2 * PIECE, 4 * PIECE].map(part);
    let within = format!("in pieces of {PIECE} bytes");
    let words = [&*parts[0], &*parts[1], &*within];
    start_all(pes, &["mismatched"]).iter().try_for_each(|one| one.fails(&words))
}

/// Makes calls of other lengths on PE 1 than on the others.
pub(super) fn mismatch(job: JobBuilder) -> Result<()> {
    job.run(|pe| {
        let len = if pe.world().rank() == Rank(1) { 4 * PIECE } else { 2 * PIECE };
        let data = vec![bf16::ONE; len];
        pe.world().slices(&data, &mut data.clone()).all_reduce(Sum)
    })
    .map(drop)
}

/// Combines long data of several types.
pub(super) fn combine(job: JobBuilder) -> Result<()> {
    job.run(|pe| {
        let world = pe.world();
        // Sums of whole numbers this small are exact in all types, and differ from piece to piece.
        sums(world, size_of::<f32>(), f32::from)?;
        sums(world, size_of::<f64>(), f64::from)?;
        sums(world, size_of::<i8>(), |number| i8::try_from(number).expect("a small number"))?;
        let sent = if world.size() > 2 { size_of::<f32>() } else { size_of::<bf16>() };
        sums(world, sent, |number| bf16::from_f32(f32::from(number)))
    })?;
    println!("combined");
    Ok(())
}

/// Checks sums of lengths around the ends of pieces, of elements that take `sent` bytes there.
fn sums<T: Pod + PartialEq>(world: &Team, sent: usize, of: impl Fn(u8) -> T) -> Result<()>
where
    Sum: Operator<T>,
{
    let piece = PIECE / sent;
    for len in [piece - 1, piece, piece + 1, 2 * piece + 3] {
        let times = |times: u32| -> Vec<T> {
            let times = u8::try_from(times).expect("few PEs");
            (0..19).cycle().map(|number: u8| of(number * times)).take(len).collect()
        };
        let (me, last) = (world.rank().0, world.ranks().last().expect("a PE").0);
        let until = |last: u32| times((1..=last + 1).sum());
        let mine = times(me + 1);
        let check = |found: &[T], expected: &[T]| {
            let at = found.iter().zip(expected).position(|(one, other)| one != other);
            assert!(at.is_none() && found.len() == expected.len(), "element {at:?} of {len}");
        };
        let mut results = times(0);
        world.slices(&mine, &mut results).all_reduce(Sum)?;
        check(&results, &until(last));
        world.slices(&mine, &mut results).scan(Sum)?;
        check(&results, &until(me));
        let mut before = times(0);
        world.slices(&mine, &mut before).exclusive_scan(Sum)?;
        check(&before, &if me == 0 { times(0) } else { until(me - 1) });
        let mut at_root = if me == 1 { times(0) } else { Vec::new() };
        world.slices(&mine, &mut at_root).reduce(Sum, Rank(1))?;
        check(&at_root, &if me == 1 { until(last) } else { Vec::new() });
        // The first call of a kind makes its plan, and the second may need no copy.
        for _ in 0..2 {
            let mut data = mine.clone();
            world.in_place(&mut data).all_reduce(Sum)?;
            check(&data, &until(last));
            data.clone_from(&mine);
            world.in_place(&mut data).scan(Sum)?;
            check(&data, &until(me));
            for root in world.ranks() {
                data.clone_from(&mine);
                world.in_place(&mut data).reduce(Sum, root)?;
                check(&data, &if root.0 == me { until(last) } else { mine.clone() });
            }
        }
    }
    Ok(())
}

/// Combines data in place by an operator that does not commute.
pub(super) fn combine_in_order(job: JobBuilder) -> Result<()> {
    job.run(|pe| {
        let world = pe.world();
        // The functions `x -> a x + b`, one after the other.
        let compose = |[a, b]: [u32; 2], [c, d]: [u32; 2]| {
            [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
        };
        for len in [1000, 5000, PIECE / size_of::<[u32; 2]>() + 5] {
            let of = |rank: u32, index: u32| [2 * index + 3, index + rank];
            let all = |last: u32| -> Vec<[u32; 2]> {
                let at = |index| (0..=last).map(|rank| of(rank, index)).reduce(compose);
                (0..).take(len).map(|index| at(index).expect("a PE at least")).collect()
            };
            let (me, last) = (world.rank().0, world.ranks().last().expect("a PE").0);
            let mine: Vec<_> = (0..).take(len).map(|index| of(me, index)).collect();
            for _ in 0..2 {
                let mut data = mine.clone();
                world.in_place(&mut data).all_reduce(compose)?;
                assert!(data == all(last), "all-reduce of {len}");
                data.clone_from(&mine);
                world.in_place(&mut data).scan(compose)?;
                assert!(data == all(me), "scan of {len}");
                for root in world.ranks() {
                    data.clone_from(&mine);
                    world.in_place(&mut data).reduce(compose, root)?;
                    assert!(data == if root.0 == me { all(last) } else { mine.clone() }, "{root}");
                }
            }
        }
        Ok(())
    })?;
    println!("combined");
    Ok(())
}
