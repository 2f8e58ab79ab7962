//! Puts and gets: the places where data arrives.

use consort::{Error, Job, Rank, error::CallError, ops::Sum};

use super::WORDS;
use crate::{data::contribution, jobs::on};

#[test]
fn put_data_arrives_and_can_be_got() {
    for pes in [1, 2, 5] {
        on(Job::threads(pes), |world| {
            let (me, pes) = (world.rank(), world.size());
            let memory = world.symmetric::<u64>(WORDS * pes)?;
            assert_eq!((memory.len(), memory.is_empty()), (WORDS * pes, false));
            let part = |rank: Rank| rank.index() * WORDS;
            let of = |from: Rank, to: Rank| contribution(u64::from(from.0), to, WORDS);
            for to in world.ranks() {
                memory.put(to, part(me), &of(me, to))?;
            }
            memory.quiet()?;
            world.barrier()?;
            for at in world.ranks() {
                for from in world.ranks() {
                    let mut data = vec![0_u64; WORDS];
                    memory.get(at, part(from), &mut data)?;
                    assert_eq!(data, of(from, at));
                }
            }
            assert_eq!(memory.load(part(me) + 3)?, of(me, me)[3]);
            world.barrier()?;
            memory.store(1, 17)?;
            memory.put(me, 0, &[])?;
            memory.get(me, memory.len(), &mut [])?;
            world.barrier()?;
            let mut two = [0; 2];
            memory.get(world.right(), 0, &mut two)?;
            assert_eq!(two[1], 17);
            Ok(())
        });
    }
}

#[test]
fn elements_of_any_size_are_placed_right() {
    on(Job::threads(2), |world| {
        let odd = world.symmetric::<[u8; 3]>(100)?;
        let large = world.symmetric::<[u64; 700]>(3)?;
        let floats = world.symmetric::<f32>(5)?;
        let peer = world.right();
        for index in 0..100_u8 {
            odd.put(peer, index.into(), &[[index, 1, 2]])?;
        }
        large.put(peer, 1, &[[9; 700]])?;
        floats.put(peer, 4, &[1.5])?;
        world.barrier()?;
        for index in 0..100_u8 {
            assert_eq!(odd.load(index.into())?, [index, 1, 2]);
        }
        assert_eq!([large.load(0)?[699], large.load(1)?[699], large.load(2)?[0]], [0, 9, 0]);
        assert_eq!([floats.load(3)?, floats.load(4)?], [0.0, 1.5]);
        world.barrier()
    });
}

#[test]
fn got_data_is_combined_with_the_target() {
    for pes in [1, 2, 5] {
        on(Job::threads(pes), |world| {
            let memory = world.symmetric::<u64>(WORDS)?;
            let mine = contribution(u64::from(world.rank().0), world.rank(), WORDS);
            memory.put(world.rank(), 0, &mine)?;
            memory.quiet()?;
            world.barrier()?;
            let mut sum = mine[7..].to_vec();
            memory.get_combine(world.right(), 7, &mut sum, Sum)?;
            let right = world.right();
            let theirs = contribution(u64::from(right.0), right, WORDS);
            let expected = mine[7..].iter().zip(&theirs[7..]).map(|(a, b)| a.wrapping_add(*b));
            assert!(sum.into_iter().eq(expected));
            let beyond = memory.get_combine(right, WORDS, &mut [0], Sum);
            assert!(
                matches!(beyond, Err(Error::Call(CallError::OutOfBounds { .. }))),
                "{beyond:?}"
            );
            world.barrier()
        });
    }
}

#[test]
fn single_elements_are_put_and_got() {
    on(Job::threads(3), |world| {
        let (me, right) = (world.rank(), world.right());
        let table = world.symmetric::<[u8; 3]>(5)?;
        let of = |from: Rank, index: u8| [from.0.to_le_bytes()[0], index, 7];
        for index in 0..5 {
            table.put_one(right, index.into(), of(me, index))?;
        }
        table.quiet()?;
        world.barrier()?;
        for at in world.ranks() {
            let left_of_it = at.plus(2, 3);
            for index in 0..5 {
                assert_eq!(table.get_one(at, index.into())?, of(left_of_it, index));
            }
        }
        world.barrier()?;
        let range = table.range(3..)?;
        range.put_one(right, 1, of(me, 100))?;
        range.put_one(me, 0, of(me, 200))?;
        world.barrier()?;
        assert_eq!(range.get_one(right, 1)?, of(me, 100));
        assert_eq!(table.to_vec()?[2..], [of(world.left(), 2), of(me, 200), of(world.left(), 100)]);
        let outside =
            |len| Some(Error::Call(CallError::OutOfBounds { first: len, end: len + 1, len }));
        assert_eq!(table.put_one(right, 5, [0; 3]).err(), outside(5));
        assert_eq!(table.get_one(right, 5).err(), outside(5));
        assert_eq!(range.put_one(right, 2, [0; 3]).err(), outside(2));
        assert_eq!(range.get_one(right, 2).err(), outside(2));
        let stranger = Some(Error::Call(CallError::RankOutOfRange { rank: Rank(3), pes: 3 }));
        assert_eq!(table.put_one(Rank(3), 0, [0; 3]).err(), stranger);
        assert_eq!(table.get_one(Rank(3), 0).err(), stranger);
        world.barrier()
    });
}
