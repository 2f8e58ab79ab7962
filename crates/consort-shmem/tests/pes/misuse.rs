//! Incorrect programs, and the error that each must report.

use consort_shmem::{
    active_sets::{self, sync, to_all},
    collectives::{barrier_all, broadcast},
    contexts::Context,
    counting,
    elements::{MaxOp, SumOp},
    memory,
    reductions::reduce,
    rma, setup, signal, strided,
    teams::{self, Team},
};

/// The name, the program, and a part of the error that it must report.
pub(crate) const ALL: [(&str, fn(), &str); 26] = [
    ("before_init", || barrier_all(), "shmem_barrier_all: called before shmem_init"),
    (
        "after_finalize",
        || {
            setup::init();
            setup::finalize();
            setup::my_pe();
        },
        "shmem_my_pe: called after shmem_finalize",
    ),
    (
        "no_such_pe",
        || {
            setup::init();
            put_to(memory::malloc(8).cast(), 2);
        },
        "consort run: PE 0 failed: shmem_put: argument pe is 2, expected 0 to 1",
    ),
    (
        "no_such_pe_for_a_signal",
        || {
            setup::init();
            let memory = memory::malloc(16).cast::<u64>();
            let data = 5_u64;
            // SAFETY: words of this test.
            unsafe {
                let (data, signal) = ((memory, &raw const data, 1), (memory.add(1), 1, 0));
                signal::put_signal("shmem_put_signal", Context::DEFAULT, data, signal, 2);
            }
        },
        "failed: shmem_put_signal: argument pe is 2, expected 0 to 1",
    ),
    (
        "signal_that_is_not_symmetric",
        || {
            setup::init();
            let (memory, data, mut local) = (memory::malloc(8).cast::<u64>(), 5, 0);
            // SAFETY: words of this test.
            unsafe {
                let (data, signal) = ((memory, &raw const data, 1), (&raw mut local, 1, 1));
                signal::put_signal("shmem_put_signal", Context::DEFAULT, data, signal, 0);
            }
        },
        "failed: shmem_put_signal: argument sig_addr, 8 bytes at ",
    ),
    (
        "not_symmetric",
        || {
            setup::init();
            let mut local = 0;
            put_to(&raw mut local, 1);
        },
        "is not symmetric: expected memory from shmem_malloc",
    ),
    (
        "freed_twice",
        || {
            setup::init();
            let memory = memory::malloc(8);
            memory::free(memory);
            memory::free(memory);
        },
        "failed: shmem_free: ",
    ),
    (
        "world_destroyed",
        || {
            setup::init();
            teams::destroy(Team::WORLD);
        },
        "argument team is SHMEM_TEAM_WORLD",
    ),
    (
        "debug_not_allocated",
        || {
            setup::init();
            let memory = memory::malloc(8).cast::<u64>();
            put_to(memory.wrapping_add(1), 1);
        },
        "is not in one allocation of the symmetric heap",
    ),
    (
        "another_order",
        || {
            setup::init();
            let [source, target] = [(); 2].map(|()| memory::malloc(8).cast::<i64>());
            // SAFETY: words of this test.
            unsafe {
                if setup::my_pe() == 0 {
                    reduce::<i64, SumOp>(Team::WORLD, target, source, 1);
                } else {
                    broadcast(Team::WORLD, target, source, 1, 0);
                }
            }
        },
        "calls do not match at call ",
    ),
    (
        "another_call_of_a_set",
        || {
            in_a_set(|of_first, target, source| match of_first {
                // SAFETY: words of this test, here and below.
                true => unsafe { active_sets::fcollect(target, source, 1, (0, 1, 2)) },
                false => unsafe { active_sets::alltoall(target, source, 1, (0, 1, 2)) },
            })
        },
        "calls do not match at call 0 in the team of PEs 0, 2: PE 0 called all_gather(8 bytes of",
    ),
    (
        "another_root_of_a_set",
        || {
            in_a_set(|is_first, target, source| {
                // SAFETY: as above.
                unsafe { active_sets::broadcast(target, source, 1, is_first.into(), (0, 1, 2)) };
            })
        },
        "in the team of PEs 0, 2: PE 0 called broadcast(8 bytes of u8, root 1, mine)",
    ),
    (
        "other_strides_of_a_set",
        || {
            in_a_set(|is_first, target, source| {
                let stride = if is_first { 1 } else { 2 };
                // SAFETY: as above.
                unsafe { active_sets::alltoalls(target, source, 1, stride, 1, (0, 1, 2)) };
            })
        },
        "failed: shmem_alltoalls: arguments dst, sst and nelems are 1, ",
    ),
    (
        "strides_of_all_memory_of_a_set",
        || {
            in_a_set(|_, target, source| {
                // SAFETY: refused.
                unsafe { active_sets::alltoalls(target, source, 1 << 62, 1 << 62, 3, (0, 1, 2)) };
            })
        },
        "failed: shmem_alltoalls: argument dest, 18446744073709551615 bytes at ",
    ),
    (
        "other_members_of_a_set",
        || {
            setup::init();
            sync([(0, 0, 2), (1, 0, 2), (0, 1, 2)][setup::my_pe().unsigned_abs() as usize]);
            setup::finalize();
        },
        "a deadlock between teams: PE ",
    ),
    (
        "not_of_a_set",
        || {
            setup::init();
            sync((0, 1, 2));
            setup::finalize();
        },
        "PE 1 failed: shmem_sync: arguments PE_start, logPE_stride and PE_size are 0, 1 and 2, exp",
    ),
    (
        "another_reduction",
        || {
            setup::init();
            let [source, target] = [(); 2].map(|()| memory::malloc(8).cast::<i64>());
            // SAFETY: words of this test.
            unsafe {
                if setup::my_pe() == 0 {
                    to_all::<i64, SumOp>(target, source, 1, (0, 0, 2));
                } else {
                    to_all::<i64, MaxOp>(target, source, 1, (0, 0, 2));
                }
            }
        },
        "calls do not match at call ",
    ),
    (
        "overlap",
        || {
            setup::init();
            let memory = memory::malloc(32).cast::<i64>();
            // SAFETY: words of this test.
            unsafe { reduce::<i64, SumOp>(Team::WORLD, memory.add(1), memory, 3) };
        },
        "source and target overlap in symmetric memory",
    ),
    (
        "overlapping_put",
        || {
            setup::init();
            let memory = memory::malloc(32).cast::<u8>();
            // SAFETY: bytes of this test.
            unsafe {
                rma::put(Context::DEFAULT, memory, memory, 20, setup::my_pe());
                rma::put(Context::DEFAULT, memory, memory.add(16), 16, setup::my_pe());
                rma::get(Context::DEFAULT, memory.add(8), memory, 9, setup::my_pe());
            }
        },
        "failed: shmem_get: arguments dest and source overlap: 9 bytes at ",
    ),
    (
        "overlap_at_a_peer",
        || {
            setup::init();
            let memory = memory::malloc(64).cast::<u64>();
            let theirs = memory::ptr(memory.cast(), 1).cast::<u64>();
            // SAFETY: words of this test.
            unsafe { rma::put(Context::DEFAULT, memory.add(1), theirs, 4, 1) };
        },
        "failed: shmem_put: arguments dest and source overlap: 32 bytes at ",
    ),
    (
        "overlapping_blocks",
        || {
            setup::init();
            let memory = memory::malloc(400).cast::<u64>();
            let (pe, at) = (setup::my_pe(), Context::DEFAULT);
            // SAFETY: words of this test.
            unsafe { strided::put("shmem_ibput", at, memory.add(1), memory, (20, 10), (2, 2), pe) };
            // SAFETY: as above.
            unsafe { broadcast(Team::WORLD, memory.add(1), memory, 20, 0) };
        },
        "failed: shmem_ibput: arguments dest and source overlap: 16 bytes at ",
    ),
    (
        "counter_at_an_odd_address",
        || {
            setup::init();
            let memory = memory::malloc(64).cast::<u8>();
            // SAFETY: a byte of this test.
            counting::set(counting::Counter(unsafe { memory.add(1) }.cast()), 1);
        },
        "failed: shmemx_ct_set: argument ct is ",
    ),
    (
        "signal_at_an_odd_address",
        || {
            setup::init();
            let memory = memory::malloc(64).cast::<u8>();
            // SAFETY: bytes of this test.
            unsafe { signal::signal_fetch(memory.add(1).cast()) };
        },
        "failed: shmem_signal_fetch: argument sig_addr is ",
    ),
    (
        "heap_larger_than_memory",
        || setup::init(),
        "SHMEM_SYMMETRIC_SIZE is `64T`: use less than the machine's memory",
    ),
    (
        "finalized_while_a_peer_waits",
        || {
            setup::init();
            if setup::my_pe() == 0 {
                barrier_all();
            }
            setup::finalize();
        },
        "PE 0: shmem_barrier_all: PE 1 has called shmem_finalize, or has exited, while others wait",
    ),
    (
        "global_exit",
        || {
            setup::init();
            if setup::my_pe() == 1 {
                setup::global_exit(1);
            }
            barrier_all();
        },
        "",
    ),
];

/// Runs `program` on PEs 0 and 2. Passes whether this is the first of them, and symmetric memory.
fn in_a_set(program: fn(bool, *mut i64, *mut i64)) {
    setup::init();
    let [source, target] = [(); 2].map(|()| memory::malloc(64).cast::<i64>());
    if setup::my_pe() != 1 {
        program(setup::my_pe() == 0, target, source);
    }
    setup::finalize();
}

fn put_to(target: *mut u64, pe: i32) {
    let value = 5;
    if setup::my_pe() == 0 {
        // SAFETY: a word of this test.
        unsafe { rma::put(Context::DEFAULT, target, &raw const value, 1, pe) };
    }
    barrier_all();
}
