//! Puts and gets: the places where data arrives.

use consort::{Error, Pes, Rank, Sum};

use super::WORDS;
use crate::{data::contribution, jobs::on};

#[test]
fn put_data_arrives_and_can_be_got() {
    for pes in [1, 2, 5] {
        on(Pes::threads(pes), |world| {
            let (me, pes) = (world.rank(), world.size());
            let memory = world.symmetric::<u64>(WORDS * pes as usize)?;
            assert_eq!((memory.len(), memory.is_empty()), (WORDS * pes as usize, false));
            let part = |rank: Rank| rank.index() * WORDS;
            let of = |from: Rank, to: Rank| contribution(u64::from(from.0), to, WORDS);
            for to in (0..pes).map(Rank) {
                memory.put(to, part(me), &of(me, to))?;
            }
            memory.quiet()?;
            world.barrier()?;
            for at in (0..pes).map(Rank) {
                for from in (0..pes).map(Rank) {
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
    on(Pes::threads(2), |world| {
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
        on(Pes::threads(pes), |world| {
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
            assert!(matches!(beyond, Err(Error::OutOfBounds { .. })), "{beyond:?}");
            world.barrier()
        });
    }
}
