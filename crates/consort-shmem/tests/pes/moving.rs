//! Puts, gets, atomic operations, waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use consort_shmem::{
    atomic,
    collectives::{self, barrier_all},
    contexts::Context,
    elements::SumOp,
    reductions, rma, signal, strided,
    teams::Team,
    wait,
};

use libc::c_int;

use crate::{Pe, read, write, zeros};

const DEFAULT: Context = Context::DEFAULT;

// Routines that only the C symbols have.
unsafe extern "C" {
    fn pshmem_uint64_atomic_fetch_nbi(fetch: *mut u64, source: *const u64, pe: c_int);
    fn pshmem_uint64_atomic_fetch_add_nbi(fetch: *mut u64, dest: *mut u64, value: u64, pe: c_int);
    fn pshmem_ctx_uint64_atomic_compare_swap_nbi(
        ctx: Context,
        fetch: *mut u64,
        dest: *mut u64,
        cond: u64,
        value: u64,
        pe: c_int,
    );
}

pub(crate) fn puts_and_gets(pe: Pe) {
    let (next, own) = (pe.after(1), i64::from(pe.own));
    let target = zeros::<i64>(100);
    let mine: Vec<i64> = (0..100).map(|index| 1000 * own + index).collect();
    let of = |rank: i32| (0..100).map(|index| 1000 * i64::from(rank) + index).collect::<Vec<_>>();
    // SAFETY: here and below: the test's own memory, of these sizes.
    unsafe { rma::put(DEFAULT, target, mine.as_ptr(), 100, next) };
    barrier_all();
    assert_eq!(read(target, 100), of(pe.after(-1)));
    let mut got = vec![0; 100];
    unsafe { rma::get_nbi(DEFAULT, got.as_mut_ptr(), target, 100, next) };
    rma::quiet(DEFAULT);
    assert_eq!(got, mine);
    barrier_all();
    let byte = zeros::<u8>(3);
    unsafe { rma::p(DEFAULT, byte.add(1), 7, next) };
    barrier_all();
    assert_eq!(read(byte, 3), [0, 7, 0]);
    assert_eq!(unsafe { rma::g(DEFAULT, byte.add(1).cast_const(), next) }, 7);
    let spread = zeros::<i16>(24);
    unsafe {
        strided::put("", DEFAULT, spread, [1_i16, -1, 2, -1, 3].as_ptr(), (3, 2), (1, 3), next)
    };
    barrier_all();
    assert_eq!(read(spread, 8), [1, 0, 0, 2, 0, 0, 3, 0]);
    let mut collected = [0_i16; 5];
    unsafe { strided::get("", DEFAULT, collected.as_mut_ptr(), spread, (2, 3), (1, 3), next) };
    assert_eq!(collected, [1, 0, 2, 0, 3]);
    barrier_all();
    unsafe {
        strided::put("", DEFAULT, spread, [5_i16, 6, 0, 7, 8].as_ptr(), (4, 3), (2, 2), next)
    };
    barrier_all();
    assert_eq!(read(spread, 8), [5, 6, 0, 2, 7, 8, 3, 0]);
    let mut collected = [0_i16; 4];
    unsafe { strided::get("", DEFAULT, collected.as_mut_ptr(), spread, (2, 4), (2, 2), next) };
    assert_eq!(collected, [5, 6, 7, 8]);
    unsafe { rma::pe_quiet(DEFAULT, [next].as_ptr(), 1) };
    rma::fence(DEFAULT);
}

pub(crate) fn atomics(pe: Pe) {
    let (sum, pes) = (zeros::<i32>(3), pe.pes);
    for _ in 0..100 {
        // SAFETY: here and below: words of the test's own memory.
        unsafe { atomic::atomic_add(DEFAULT, sum.add(1), -3, 0) };
        unsafe { atomic::atomic_inc(DEFAULT, sum.add(2), 0) };
    }
    barrier_all();
    assert_eq!(unsafe { atomic::atomic_fetch(DEFAULT, sum.add(1).cast_const(), 0) }, -300 * pes);
    assert_eq!(unsafe { rma::g(DEFAULT, sum.add(2).cast_const(), 0) }, 100 * pes);
    let word = zeros::<u64>(2);
    let next = pe.after(1);
    let mut before = 1;
    unsafe {
        assert_eq!(atomic::atomic_fetch_inc(DEFAULT, word, next), 0);
        assert_eq!(atomic::atomic_fetch_add(DEFAULT, word, 4, next), 1);
        assert_eq!(atomic::atomic_fetch_or(DEFAULT, word, 8, next), 5);
        assert_eq!(atomic::atomic_fetch_and(DEFAULT, word, 12, next), 13);
        assert_eq!(atomic::atomic_fetch_xor(DEFAULT, word, 5, next), 12);
        assert_eq!(atomic::atomic_swap(DEFAULT, word, 20, next), 9);
        assert_eq!(atomic::atomic_compare_swap(DEFAULT, word, 1, 2, next), 20);
        assert_eq!(atomic::atomic_compare_swap(DEFAULT, word, 20, 21, next), 20);
        atomic::atomic_or(DEFAULT, word, 2, next);
        atomic::atomic_and(DEFAULT, word, 0xf7, next);
        atomic::atomic_xor(DEFAULT, word, 1, next);
        pshmem_uint64_atomic_fetch_nbi(&raw mut before, word, next);
        assert_eq!(before, 22);
        pshmem_uint64_atomic_fetch_add_nbi(&raw mut before, word, 1, next);
        pshmem_ctx_uint64_atomic_compare_swap_nbi(DEFAULT, &raw mut before, word, 23, 24, next);
        assert_eq!(before, 23);
        let number = zeros::<f64>(1);
        atomic::atomic_set(DEFAULT, number, -0.5, next);
        assert_eq!(atomic::atomic_swap(DEFAULT, number, 2.5, next), -0.5);
        assert_eq!(atomic::atomic_fetch(DEFAULT, number.cast_const(), next), 2.5);
    }
    barrier_all();
}

/// Calls with zero elements, whose addresses may be anything.
pub(crate) fn nothing(pe: Pe) {
    let null = std::ptr::null_mut::<i64>();
    let words = zeros::<i64>(8);
    let (next, none) = (pe.after(1), null.cast_const());
    let mut local = 5_i64;
    // SAFETY: nothing is read or written except words of this test.
    unsafe {
        rma::put(DEFAULT, null, none, 0, next);
        rma::get(DEFAULT, &raw mut local, &raw const local, 0, next);
        strided::put("", DEFAULT, null, none, (0, 0), (1, 0), next);
        strided::get("", DEFAULT, null, none, (0, 0), (0, 3), next);
        let set = (words.cast(), 1, signal::SIGNAL_SET);
        signal::put_signal("", DEFAULT, (null, none, 0), set, next);
        wait::signal_wait_until(words.cast(), wait::EQ, 1);
        let team = Team::WORLD;
        assert_eq!(collectives::broadcast(team, null, none, 0, 0), 0);
        assert_eq!(collectives::fcollect(team, null, none, 0), 0);
        assert_eq!(collectives::alltoall(team, null, none, 0), 0);
        assert_eq!(collectives::alltoalls(team, null, none, 0, 0, 0), 0);
        assert_eq!(reductions::reduce::<i64, SumOp>(team, null, none, 0), 0);
        assert_eq!(collectives::collect(team, null, none, 0), 0);
        // One PE has an element.
        let (from, count) = if pe.own == 0 { (&raw const *words, 1) } else { (none, 0) };
        let dest = zeros::<i64>(1);
        assert_eq!(collectives::collect(team, dest, from, count), 0);
        assert_eq!(read(dest, 1), [1]);
    }
    assert_eq!(local, 5);
}

/// Each of several words is found in a series of calls.
pub(crate) fn fairness(_: Pe) {
    let words = zeros::<i64>(4);
    write(words, &[1, 0, 1, 0]);
    let none = std::ptr::null();
    let mut found = [0; 4];
    for _ in 0..10 {
        // SAFETY: words of this test.
        unsafe {
            found[wait::wait_until_any(words, 4, none, wait::EQ, 1)] += 1;
            found[wait::test_any(words, 4, none, wait::EQ, 1)] += 1;
        }
    }
    assert_eq!(found, [10, 0, 10, 0]);
}

pub(crate) fn waits(pe: Pe) {
    let (next, own) = (pe.after(1), pe.own);
    let (words, signals) = (zeros::<i32>(4), zeros::<u64>(1));
    let data = zeros::<u8>(5);
    let none = std::ptr::null();
    // SAFETY: here and below: words of the test's own memory.
    unsafe {
        assert_eq!(wait::test(words, wait::EQ, 1), 0);
        assert_eq!(wait::test_any(words, 4, none, wait::NE, 0), usize::MAX);
        assert_eq!(wait::wait_until_any(words, 0, none, wait::EQ, 1), usize::MAX);
        let mut found = [0_usize; 2];
        let excluded = [1, 1].as_ptr();
        assert_eq!(wait::wait_until_some(words, 2, found.as_mut_ptr(), excluded, 0, 1), 0);
        barrier_all();
        rma::p(DEFAULT, words.add(2), -5, next);
        wait::wait_until(words.add(2), wait::LT, 0);
        let mut found = [9; 4];
        assert_eq!(wait::wait_until_any(words, 4, none, wait::LE, -5), 2);
        assert_eq!(wait::test_some(words, 4, found.as_mut_ptr(), none, wait::LT, 0), 1);
        assert_eq!(found[0], 2);
        let values = [0, 1, -5, 0];
        let only = [0, 1, 0, 0];
        assert_eq!(wait::test_all_vector(words, 4, none, wait::EQ, values.as_ptr()), 0);
        assert_eq!(wait::test_all_vector(words, 4, only.as_ptr(), wait::EQ, values.as_ptr()), 1);
        wait::wait_until_all_vector(words, 4, only.as_ptr(), wait::EQ, values.as_ptr());
        barrier_all();
        (0..4).for_each(|at| rma::p(DEFAULT, words.add(at), 10 + own, next));
        wait::wait_until_all(words, 4, none, wait::GE, 10);
        assert_eq!(read(words, 4), [10 + pe.after(-1); 4]);
        let last = [1, 1, 1, 0];
        assert_eq!(
            wait::wait_until_some(words, 4, found.as_mut_ptr(), last.as_ptr(), wait::GT, 9),
            1
        );
        assert_eq!(found[0], 3);
        let add = (signals, 3, signal::SIGNAL_ADD);
        signal::put_signal("", DEFAULT, (data, b"hello".as_ptr(), 5), add, next);
        assert_eq!(wait::signal_wait_until(signals, wait::GE, 3), 3);
        assert_eq!(read(data, 5), b"hello");
        barrier_all();
        signal::signal_set(DEFAULT, signals, 8, next);
        signal::signal_add(DEFAULT, signals, 1, next);
        wait::wait_until(signals, wait::EQ, 9);
        assert_eq!(signal::signal_fetch(signals), 9);
        let short = zeros::<i16>(3);
        rma::p(DEFAULT, short.add(1), -1, next);
        wait::wait(short.add(1), 0);
    }
    barrier_all();
}

/// PEs that compute and make no calls are reached and reply; the data that they put arrives.
pub(crate) fn computing(pe: Pe) {
    let words = zeros::<i64>(2);
    let until = |value: i64| {
        while read(words, 1) != [value] {
            std::thread::yield_now();
        }
    };
    // SAFETY: words of this test.
    unsafe {
        if pe.own == 0 {
            for other in 1..pe.pes {
                assert_eq!(atomic::atomic_fetch_add(DEFAULT, words.add(1), 5, other), 0);
                assert_eq!(rma::g(DEFAULT, words.add(1).cast_const(), other), 5);
                rma::p(DEFAULT, words, 7, other);
            }
            until(i64::from(pe.pes) - 1);
        } else {
            until(7);
            atomic::atomic_inc(DEFAULT, words, 0);
            atomic::atomic_inc(DEFAULT, words, pe.own);
            until(8);
        }
    }
    barrier_all();
}

static DATA: [AtomicU64; 2] = [const { AtomicU64::new(5) }; 2];

/// Static variables are symmetric.
pub(crate) fn statics(pe: Pe) {
    let word = DATA[1].as_ptr();
    // SAFETY: here and below: the test's own words.
    unsafe {
        atomic::atomic_add(DEFAULT, word, 1 + u64::from(pe.own.unsigned_abs()), pe.after(1));
        barrier_all();
        let previous = u64::from(pe.after(-1).unsigned_abs());
        assert_eq!(DATA[1].load(Relaxed), 6 + previous);
        let sums = DATA[0].as_ptr();
        let results = consort_shmem::reductions::reduce::<u64, consort_shmem::elements::SumOp>;
        let (source, pes) = (zeros::<u64>(1), u64::from(pe.pes.unsigned_abs()));
        write(source, &[2]);
        barrier_all();
        results(consort_shmem::teams::Team::WORLD, sums, source, 1);
        assert_eq!(DATA[0].load(Relaxed), 2 * pes);
    }
}
