//! Threads of a PE that make calls at the same time.

use std::{ptr::null, thread, time::Duration};

use consort_shmem::{
    active_sets::{self, Triplet},
    atomic,
    collectives::{alltoall, alltoalls, barrier_all, broadcast, collect, fcollect, team_sync},
    contexts::Context,
    elements::SumOp,
    reductions::{reduce, sum_exscan, sum_inscan},
    rma,
    teams::{self, Team},
    wait,
};

use crate::{Pe, active_sets::is_in, read, write, zeros};

const THREADS: usize = 4;
const ROUNDS: u64 = 60;
/// The number of elements of the longest contribution.
const LONGEST: usize = 3000;

/// An address that can be passed to threads.
#[derive(Clone, Copy)]
struct Words(usize);

impl Words {
    fn new(len: usize) -> Self {
        Self(zeros::<i64>(len).expose_provenance())
    }

    fn at(self) -> *mut i64 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

fn copy_of(parent: Team, pe: Pe) -> Team {
    let mut team = Team::INVALID;
    assert_eq!(0, unsafe { teams::split_strided(parent, 0, 1, pe.pes, null(), 0, &raw mut team) });
    team
}

/// Returns pseudorandom numbers for each round of each thread.
fn mixed(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Each thread makes calls of its own team, while one puts, adds and waits.
pub(crate) fn threads(pe: Pe) {
    let count = pe.pes.unsigned_abs() as usize;
    let places: Vec<_> = (0..THREADS)
        .map(|_| {
            let team = copy_of(Team::WORLD, pe);
            (team, Words::new(2 * LONGEST * count), Words::new(3 * LONGEST * count))
        })
        .collect();
    let words = Words::new(THREADS);
    thread::scope(|scope| {
        for (index, &(team, source, target)) in (0..).zip(&places) {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let delay = mixed(round * 64 + index * 16 + u64::from(pe.own.unsigned_abs()));
                    if delay.is_multiple_of(4) {
                        thread::sleep(Duration::from_micros(delay / 4 % 300));
                    }
                    one_call(pe, team, (source.at(), target.at()), mixed(round * 4 + index));
                }
                teams::destroy(team);
            });
        }
        scope.spawn(move || {
            for round in 1..=20 * i64::try_from(ROUNDS).unwrap_or(0) {
                // SAFETY: the words have been allocated.
                unsafe {
                    atomic::atomic_add(Context::DEFAULT, words.at(), 1, pe.after(1));
                    wait::wait_until(words.at(), wait::GE, round);
                }
            }
        });
    });
}

/// Makes one call, the same on all PEs of the team.
fn one_call(pe: Pe, team: Team, (source, target): (*mut i64, *mut i64), choice: u64) {
    let (own, pes) = (i64::from(pe.own), i64::from(pe.pes));
    let len = [1, 3, 700, LONGEST][usize::try_from(choice / 16 % 4).unwrap_or(0)];
    let count = pe.pes.unsigned_abs() as usize;
    let salt = i64::try_from(choice % 1000).unwrap_or(0);
    let value = |pe: i64, index: usize| 31 * pe + salt + i64::try_from(index % 5).unwrap_or(0);
    let own_values: Vec<i64> = (0..2 * len * count).map(|index| value(own, index)).collect();
    let sum = |of: i64| -> Vec<i64> {
        (0..len).map(|index| (0..of).map(|pe| value(pe, index)).sum()).collect()
    };
    let all = |first: usize, stride: usize| -> Vec<i64> {
        (0..pes).flat_map(|pe| (0..len).map(move |at| value(pe, first + at * stride))).collect()
    };
    team_sync(team); // peers may still read the contribution of the previous call
    write(source, &own_values);
    let place = pe.own.unsigned_abs() as usize * len;
    // SAFETY: the test's own memory, which is large enough.
    unsafe {
        match choice % 10 {
            0 => {
                assert_eq!(reduce::<i64, SumOp>(team, target, source, len), 0);
                assert_eq!(read(target, len), sum(pes));
            }
            1 => {
                reduce::<i64, SumOp>(team, source, source, len);
                assert_eq!(read(source, len), sum(pes));
            }
            2 => {
                let root = i32::try_from(choice / 64 % u64::from(pe.pes.unsigned_abs()));
                let root = root.unwrap_or(0);
                broadcast(team, target, source, len, root);
                let expected: Vec<i64> = (0..len).map(|index| value(root.into(), index)).collect();
                assert_eq!(read(target, len), expected);
            }
            3 => {
                fcollect(team, target, source, len);
                assert_eq!(read(target, len * count), all(0, 1));
            }
            4 => {
                let own_len = if own == 0 { 1 } else { len };
                collect(team, target, source, own_len);
                let mut expected = all(0, 1);
                expected.drain(1..len);
                assert_eq!(read(target, expected.len()), expected);
            }
            5 => {
                alltoall(team, target, source, len);
                assert_eq!(read(target, len * count), all(place, 1));
            }
            6 => {
                alltoalls(team, target, source, 1, 2, len);
                assert_eq!(read(target, len * count), all(2 * place, 2));
            }
            7 => {
                sum_inscan(team, target, source, len);
                assert_eq!(read(target, len), sum(own + 1));
                sum_exscan(team, source, source, len);
                assert_eq!(read(source, len), sum(own));
            }
            8 => {
                let mut parts = [Team::INVALID; 2];
                let [row, column] = &mut parts;
                teams::split_2d(team, 2, null(), 0, row, null(), 0, column);
                reduce::<i64, SumOp>(parts[1], target, source, 1);
                let expected = (0..pes).filter(|pe| pe % 2 == own % 2).map(|pe| value(pe, 0));
                assert_eq!(read(target, 1), [expected.sum()]);
                parts.into_iter().for_each(teams::destroy);
            }
            _ => {
                let own_copy = copy_of(team, pe);
                team_sync(own_copy);
                teams::destroy(own_copy);
            }
        }
    }
}

/// PE 0 makes the calls on two threads in this order; the others make them on one thread in the
/// other order.
pub(crate) fn crossed_threads(pe: Pe) {
    let [first, second] = [(); 2].map(|()| copy_of(Team::WORLD, pe));
    let data = Words::new(1);
    // More calls than one PE can be ahead of another.
    let broadcasts = move || {
        for _ in 0..200 {
            // SAFETY: the data is one word.
            unsafe { broadcast(first, data.at(), data.at(), 1, 0) };
        }
        team_sync(first);
    };
    for _ in 0..10 {
        if pe.own == 0 {
            thread::scope(|scope| {
                scope.spawn(broadcasts);
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(5));
                    team_sync(second);
                });
            });
        } else {
            team_sync(second);
            broadcasts();
        }
    }
}

/// Each thread makes calls of its own active set; the sets' members overlap.
pub(crate) fn active_sets_of_threads(pe: Pe) {
    let last = pe.pes - 1;
    let sets = [(0, 0, 2), (0, 1, 2), (0, 0, 3), (1, 0, 2)];
    let sets = sets.into_iter().filter(|(start, log, size)| start + ((size - 1) << log) <= last);
    let sets: Vec<_> = (3..).zip(sets).map(|(len, set)| (len, set, Words::new(32))).collect();
    thread::scope(|scope| {
        for &(len, set, words) in sets.iter().filter(|(_, set, _)| is_in(*set, pe.own)) {
            scope.spawn(move || {
                for round in 0..200 {
                    calls_of_set(pe, set, len, (words.at(), round));
                }
            });
        }
    });
    barrier_all();
}

/// The PEs of a set collect `len` words of each, broadcast them and add them.
fn calls_of_set(pe: Pe, set: Triplet, len: usize, (source, round): (*mut i64, i64)) {
    let (start, log_stride, size) = set;
    let target = source.wrapping_add(len);
    let members = || (0..size).map(|at| i64::from(start + (at << log_stride)));
    let words = |pe: i64| (0..).take(len).map(move |at: i64| 1000 * round + 100 * pe + at);
    active_sets::sync(set);
    write(source, &words(pe.own.into()).collect::<Vec<_>>());
    let sum = |at: usize| members().filter_map(|pe| words(pe).nth(at)).sum();
    let sums: Vec<i64> = (0..len).map(sum).collect();
    // SAFETY: the test's own memory, which is large enough.
    unsafe {
        active_sets::collect(target, source, len, set);
        let all: Vec<i64> = members().flat_map(words).collect();
        assert_eq!(read(target, all.len()), all);
        active_sets::to_all::<i64, SumOp>(target, source, i32::try_from(len).unwrap_or(0), set);
        assert_eq!(read(target, len), sums);
        active_sets::broadcast(target, source, len, 0, set);
    }
    let expected = if pe.own == start { sums } else { words(start.into()).collect() };
    assert_eq!(read(target, len), expected);
}

/// PE 0 makes on two threads the calls that the others make one after the other.
pub(crate) fn crossed_active_sets_of_threads(pe: Pe) {
    let (first, second, flag) = ((0, 0, 2), (0, 1, 2), Words::new(1));
    if pe.pes < 3 {
        return;
    }
    for round in 1..=10 {
        match pe.own {
            0 => thread::scope(|scope| {
                scope.spawn(|| active_sets::sync(first));
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(5));
                    active_sets::sync(second);
                });
            }),
            // SAFETY: one word.
            1 => unsafe {
                wait::wait_until(flag.at(), wait::EQ, round);
                active_sets::sync(first);
            },
            2 => {
                active_sets::sync(second);
                // SAFETY: one word.
                unsafe { rma::p(Context::DEFAULT, flag.at(), round, 1) };
            }
            _ => {}
        }
    }
    barrier_all();
}
