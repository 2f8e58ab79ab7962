//! The collectives of teams, with few and many elements, also in place.

use consort_shmem::{
    collectives::{alltoall, alltoalls, barrier_all, broadcast, collect, fcollect, sync_all},
    elements::{And, Complex, MaxOp, MinOp, ProductOp, SumOp},
    reductions::{reduce, sum_exscan, sum_inscan},
    teams::Team,
};

use crate::{Pe, read, write, zeros};

pub(crate) fn collectives(pe: Pe) {
    let (own, pes) = (i64::from(pe.own), i64::from(pe.pes));
    for len in [1_usize, 3, 1000, 6000] {
        let total = len * pe.pes.unsigned_abs() as usize;
        let (source, target) = (zeros::<i64>(total), zeros::<i64>(total));
        let values = |rank: i64, count: usize| -> Vec<i64> {
            (0..count).map(|index| 10 * rank + i64::try_from(index % 7).unwrap_or(0)).collect()
        };
        let write_source = || {
            barrier_all();
            write(source, &values(own, total));
            barrier_all();
        };
        write_source();
        let of_all = |value: &dyn Fn(i64, i64) -> i64| -> Vec<i64> {
            (0..len)
                .map(|index| {
                    let index = i64::try_from(index % 7).unwrap_or(0);
                    (1..pes).map(|rank| 10 * rank + index).fold(index, value)
                })
                .collect()
        };
        let team = Team::WORLD;
        // SAFETY: here and below: the test's own memory, which is large enough.
        unsafe {
            reduce::<i64, SumOp>(team, target, source, len);
            assert_eq!(read(target, len), of_all(&|a, b| a + b));
            reduce::<i64, MaxOp>(team, target, source, len);
            assert_eq!(read(target, len), of_all(&i64::max));
            reduce::<i64, MinOp>(Team::SHARED, target, source, len);
            let is_alone = pe.near() == 1;
            let least = if is_alone { read(source, len) } else { of_all(&i64::min) };
            assert_eq!(read(target, len), least);
            reduce::<i64, MinOp>(team, target, source, len);
            assert_eq!(read(target, len), of_all(&i64::min));
            reduce::<i64, ProductOp>(team, target, source, len);
            assert_eq!(read(target, len), of_all(&|a, b| a.wrapping_mul(b)));
            reduce::<i64, And>(team, target, source, len);
            assert_eq!(read(target, len), of_all(&|a, b| a & b));
            reduce::<i64, SumOp>(team, source, source, len);
            assert_eq!(read(source, len), of_all(&|a, b| a + b));
            write_source();
            let prefix = |count: i64| -> Vec<i64> {
                let sum = |index| (0..count).map(|rank| 10 * rank + index % 7).sum();
                (0..i64::try_from(len).unwrap_or(0)).map(sum).collect()
            };
            sum_inscan(team, target, source, len);
            assert_eq!(read(target, len), prefix(own + 1));
            sum_exscan(team, target, source, len);
            assert_eq!(read(target, len), prefix(own));
            sum_inscan(team, source, source, len);
            assert_eq!(read(source, len), prefix(own + 1));
            write_source();
            for root in 0..pe.pes {
                broadcast(team, target, source, len, root);
                assert_eq!(read(target, len), values(root.into(), len));
            }
            fcollect(team, target, source, len);
            let all: Vec<i64> = (0..pes).flat_map(|rank| values(rank, len)).collect();
            assert_eq!(read(target, total), all);
            // PE i contributes i % len + 1 elements, but PE 1 none.
            let count = |rank: i64| match usize::try_from(rank).unwrap_or(0) {
                1 => 0,
                rank => rank % len + 1,
            };
            barrier_all();
            collect(team, target, source, count(own));
            let all: Vec<i64> = (0..pes).flat_map(|rank| values(rank, count(rank))).collect();
            assert_eq!(read(target, all.len()), all);
            alltoall(team, target, source, len);
            let place = pe.own.unsigned_abs() as usize * len;
            let all: Vec<i64> = (0..pes)
                .flat_map(|rank| values(rank, total)[place..place + len].to_vec())
                .collect();
            assert_eq!(read(target, total), all);
            sync_all();
        }
        consort_shmem::memory::free(target.cast());
        consort_shmem::memory::free(source.cast());
    }
    strided(pe);
    complex(pe);
}

fn strided(pe: Pe) {
    let count = pe.pes.unsigned_abs() as usize;
    let (source, target) = (zeros::<i32>(4 * count), zeros::<i32>(6 * count));
    let values: Vec<i32> = (0..pe.pes * 4).map(|index| 100 * pe.own + index).collect();
    write(source, &values);
    barrier_all();
    // SAFETY: two elements for each PE, 2 and 3 apart.
    unsafe { alltoalls(Team::WORLD, target, source, 3, 2, 2) };
    for (rank, block) in (0..pe.pes).zip(read(target, 6 * count - 2).chunks(6)) {
        let first = 100 * rank + 4 * pe.own;
        assert_eq!((block[0], block[3]), (first, first + 2));
        assert_eq!((block[1], block[2]), (0, 0));
    }
}

fn complex(pe: Pe) {
    let (source, target) = (zeros::<Complex<f64>>(2), zeros::<Complex<f64>>(2));
    write(source, &[Complex { re: 0.0, im: 1.0 }, Complex { re: 1.0, im: f64::from(pe.own) }]);
    barrier_all();
    // SAFETY: as above.
    unsafe { reduce::<_, ProductOp>(Team::WORLD, target, source, 1) };
    let power =
        [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][pe.pes.unsigned_abs() as usize % 4];
    assert_eq!(read(target, 1), [Complex { re: power.0, im: power.1 }]);
    // SAFETY: as above.
    unsafe { reduce::<_, SumOp>(Team::WORLD, target, source, 2) };
    let sum = f64::from(pe.pes * (pe.pes - 1) / 2);
    assert_eq!(read(target, 2)[1], Complex { re: f64::from(pe.pes), im: sum });
}
