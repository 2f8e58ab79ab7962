//! The collectives of 1.4.

use consort_shmem::{
    active_sets::{
        Triplet, alltoall, alltoalls, barrier, broadcast, collect, fcollect, sync, to_all,
    },
    collectives::{barrier_all, sync_all},
    elements::SumOp,
};

use crate::{Pe, read, write, zeros};

/// All PEs; every second one, beginning with 0; all but the first.
pub(crate) fn active_sets(pe: Pe) {
    let (source, target) = (zeros::<u32>(64), zeros::<u32>(64));
    let sets = [(0, 0, pe.pes), (0, 1, (pe.pes + 1) / 2), (1, 0, pe.pes - 1)];
    for round in 0..20 {
        for set @ (start, log_stride, size) in sets {
            let members: Vec<u32> =
                (0..size).map(|at| (start + (at << log_stride)).unsigned_abs()).collect();
            let Some(own) = members.iter().position(|&rank| rank == pe.own.unsigned_abs()) else {
                continue;
            };
            let word = |rank: u32, at: u32| 1000 * round + 64 * rank + at;
            let mine: Vec<u32> = (0..64).map(|at| word(pe.own.unsigned_abs(), at)).collect();
            barrier(set);
            write(source, &mine);
            write(target, &[7; 64]);
            sync(set);
            let (last, len) = (size - 1, members.len());
            // SAFETY: here and below: the test's own memory, which is large enough.
            unsafe {
                broadcast(target, source, 5, last, set);
                let root = members[len - 1];
                let is_root = root == pe.own.unsigned_abs();
                let wanted: Vec<u32> =
                    (0..5).map(|at| if is_root { 7 } else { word(root, at) }).collect();
                assert_eq!(read(target, 5), wanted);
                fcollect(target, source, 3, set);
                let all: Vec<u32> =
                    members.iter().flat_map(|&rank| [0, 1, 2].map(|at| word(rank, at))).collect();
                assert_eq!(read(target, all.len()), all);
                let from = if own % 3 == 0 { std::ptr::null() } else { source.cast_const() };
                collect(target, from, own % 3, set);
                let all: Vec<u32> = members
                    .iter()
                    .enumerate()
                    .flat_map(|(at, &rank)| {
                        (0..at % 3).map(move |at| word(rank, u32::try_from(at).unwrap_or(0)))
                    })
                    .collect();
                assert_eq!(read(target, all.len()), all);
                alltoall(target, source, 2, set);
                let at = u32::try_from(2 * own).unwrap_or(0);
                let all: Vec<u32> =
                    members.iter().flat_map(|&rank| [word(rank, at), word(rank, at + 1)]).collect();
                assert_eq!(read(target, all.len()), all);
                alltoalls(target, source, 2, 1, 1, set);
                let at = u32::try_from(own).unwrap_or(0);
                let found: Vec<u32> = read(target, 2 * len).into_iter().step_by(2).collect();
                assert_eq!(found, members.iter().map(|&rank| word(rank, at)).collect::<Vec<_>>());
                to_all::<u32, SumOp>(target, source, 4, set);
                let sum: Vec<u32> =
                    (0..4).map(|at| members.iter().map(|&rank| word(rank, at)).sum()).collect();
                assert_eq!(read(target, 4), sum);
                to_all::<u32, SumOp>(source, source, 4, set);
                assert_eq!(read(source, 4), sum);
            }
        }
    }
    barrier_all();
}

/// Long broadcasts, to another place and in place: the root's memory stays as it is.
pub(crate) fn long_broadcasts_of_sets(pe: Pe) {
    const LEN: usize = 40_000;
    let (source, target) = (zeros::<u32>(LEN), zeros::<u32>(LEN));
    let values = |of: i32| (of.unsigned_abs()..).step_by(7).take(LEN).collect::<Vec<_>>();
    for set @ (start, log_stride, size) in [(0, 0, pe.pes), (0, 1, (pe.pes + 1) / 2)] {
        if !is_in(set, pe.own) {
            continue;
        }
        for root in [0, size - 1] {
            let root_pe = start + (root << log_stride);
            sync(set);
            write(source, &values(pe.own));
            write(target, &[9; LEN]);
            // SAFETY: the test's own memory.
            unsafe { broadcast(target, source, LEN, root, set) };
            let expected = if pe.own == root_pe { vec![9; LEN] } else { values(root_pe) };
            assert!(read(target, LEN) == expected && read(source, LEN) == values(pe.own));
            // SAFETY: as above.
            unsafe { broadcast(source, source, LEN, root, set) };
            assert!(read(source, LEN) == values(root_pe));
        }
    }
    barrier_all();
}

pub(crate) fn is_in((start, log_stride, size): Triplet, pe: i32) -> bool {
    (0..size).any(|at| start + (at << log_stride) == pe)
}

/// Every set, in an order that all PEs can follow.
pub(crate) fn every_active_set(pe: Pe) {
    let (source, target) = (zeros::<i64>(2), zeros::<i64>(2));
    for round in 0..2 {
        for start in 0..pe.pes {
            for log_stride in 0..4 {
                for size in (1..=pe.pes).take_while(|at| start + ((at - 1) << log_stride) < pe.pes)
                {
                    let set = (start, log_stride, size);
                    if !is_in(set, pe.own) {
                        continue;
                    }
                    write(source, &[i64::from(pe.own) + round, 1]);
                    // SAFETY: two words each.
                    unsafe { to_all::<i64, SumOp>(target, source, 2, set) };
                    let members = (0..size).map(|at| i64::from(start + (at << log_stride)) + round);
                    assert_eq!(read(target, 2), [members.sum(), i64::from(size)]);
                }
            }
        }
    }
    barrier_all();
}

/// A set of all PEs makes calls of the world.
pub(crate) fn all_pes(pe: Pe) {
    if pe.own == 0 {
        sync_all()
    } else {
        barrier((0, 0, pe.pes))
    }
    barrier_all();
}
