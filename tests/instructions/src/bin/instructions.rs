//! Calls whose instructions ci/instructions counts: the cost of a blocking call of a team of two
//! for PE 0 when PE 1's message has already arrived.
//!
//! Run under callgrind, which counts only inside functions whose names begin with `counted_`, and
//! writes its counts before each call of `quarter_is_over`. A quarter of the team's window of calls
//! is the unit: flow control does the same in each.
//!
//! ```sh
//! cargo run --release -p consort-instructions --bin instructions             # lists the operations
//! cargo run --release -p consort-instructions --bin instructions -- barrier
//! ```
//!
//! PE 1 makes its calls of a quarter before PE 0 does. In a reduction to PE 0 and a broadcast from
//! PE 1, it sends and runs ahead; in a barrier it enters, and PE 0 sleeps until it has surely done
//! so. A quarter in which PE 0 had to wait nevertheless counts more instructions, so the result is
//! the least of the quarters.

#![expect(unsafe_code, reason = "calls a function of the C interface")]

use std::{
    env,
    ffi::c_int,
    hint::black_box,
    process::ExitCode,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Release},
    },
    thread,
    time::Duration,
};

use consort::{
    Job, Rank, Result, Team, Waiting,
    ops::Sum,
    tune::{Candidate, Collective},
};
use consort_c::team::{TeamHandle, consort_team_barrier};

/// The calls of a quarter of a small team's window.
const QUARTER: u64 = 16;

/// The number of counted quarters.
const QUARTERS: u64 = 8;

/// Long enough for a thread to enter a barrier, even under callgrind.
const ENTERING: Duration = Duration::from_millis(2);

/// A call whose instructions are counted, and PE 1's call at the same time.
struct Operation {
    name: &'static str,
    /// The algorithm that serves it: the model's choice for two PEs.
    candidate: (Collective, &'static str),
    counted: Counted,
    peer: fn(&Team) -> Result<()>,
    /// Whether PE 1 may leave the call before PE 0 enters.
    runs_ahead: bool,
}

/// A counted function, on a team or on its handle in C.
enum Counted {
    InRust(fn(&Team) -> Result<()>),
    InC(fn(&TeamHandle) -> c_int),
}

const OPERATIONS: [Operation; 10] = [
    Operation {
        name: "barrier",
        candidate: (Collective::Barrier, "dissemination(radix=2)"),
        counted: Counted::InRust(counted_barrier),
        peer: |team| team.barrier(),
        runs_ahead: false,
    },
    Operation {
        name: "barrier_in_c",
        candidate: (Collective::Barrier, "dissemination(radix=2)"),
        counted: Counted::InC(counted_barrier_in_c),
        peer: |team| team.barrier(),
        runs_ahead: false,
    },
    Operation {
        name: "reduce_root",
        candidate: (Collective::Reduce, "chain(chunk_bytes=1024)"),
        counted: Counted::InRust(counted_reduce_root),
        peer: |team| team.reduce(black_box(2_u64), Sum, Rank(0)).map(drop),
        runs_ahead: true,
    },
    Operation {
        name: "reduce_leaf",
        candidate: (Collective::Reduce, "chain(chunk_bytes=1024)"),
        counted: Counted::InRust(counted_reduce_leaf),
        peer: |team| team.reduce(black_box(2_u64), Sum, Rank(1)).map(drop),
        runs_ahead: false,
    },
    Operation {
        name: "broadcast_root",
        candidate: (Collective::Broadcast, "flat"),
        counted: Counted::InRust(counted_broadcast_root),
        peer: |team| team.broadcast(black_box(2_u64), Rank(0)).map(drop),
        runs_ahead: false,
    },
    Operation {
        name: "broadcast_leaf",
        candidate: (Collective::Broadcast, "flat"),
        counted: Counted::InRust(counted_broadcast_leaf),
        peer: |team| team.broadcast(black_box(2_u64), Rank(1)).map(drop),
        runs_ahead: true,
    },
    Operation {
        name: "all_reduce",
        candidate: (Collective::AllReduce, "flat"),
        counted: Counted::InRust(counted_all_reduce),
        peer: |team| team.all_reduce(black_box(2_u64), Sum).map(drop),
        runs_ahead: false,
    },
    Operation {
        name: "all_gather",
        candidate: (Collective::AllGather, "bruck(radix=2)"),
        counted: Counted::InRust(counted_all_gather),
        peer: all_gather,
        runs_ahead: false,
    },
    Operation {
        name: "reduce_1k_root",
        candidate: (Collective::Reduce, "chain(chunk_bytes=2048)"),
        counted: Counted::InRust(counted_reduce_1k_root),
        peer: |team| reduce_kib(team, Rank(0)),
        runs_ahead: true,
    },
    Operation {
        name: "reduce_1k_leaf",
        candidate: (Collective::Reduce, "chain(chunk_bytes=2048)"),
        counted: Counted::InRust(counted_reduce_1k_leaf),
        peer: |team| reduce_kib(team, Rank(1)),
        runs_ahead: false,
    },
];

/// Makes a reduction of 1 KiB.
fn reduce_kib(team: &Team, root: Rank) -> Result<()> {
    let (source, mut target) = (black_box([1_u32; 256]), [0; 256]);
    let done = team.slices(&source, &mut target).reduce(Sum, root);
    keep(&target);
    done
}

/// Makes an all-gather of 8 bytes.
fn all_gather(team: &Team) -> Result<()> {
    let mut target = [0_u64; 2];
    let done = team.slices(&[black_box(1)], &mut target).all_gather();
    keep(&target);
    done
}

/// Makes the compiler treat a result as used.
fn keep<T>(result: T) {
    let _ = black_box(result);
}

#[inline(never)]
fn counted_barrier(team: &Team) -> Result<()> {
    team.barrier()
}

#[inline(never)]
fn counted_barrier_in_c(team: &TeamHandle) -> c_int {
    // SAFETY: the handle is valid.
    unsafe { consort_team_barrier(team) }
}

#[inline(never)]
fn counted_all_reduce(team: &Team) -> Result<()> {
    team.all_reduce(black_box(1_u64), Sum).map(keep)
}

#[inline(never)]
fn counted_all_gather(team: &Team) -> Result<()> {
    all_gather(team)
}

#[inline(never)]
fn counted_reduce_root(team: &Team) -> Result<()> {
    team.reduce(black_box(1_u64), Sum, Rank(0)).map(keep)
}

#[inline(never)]
fn counted_reduce_leaf(team: &Team) -> Result<()> {
    team.reduce(black_box(1_u64), Sum, Rank(1)).map(keep)
}

#[inline(never)]
fn counted_reduce_1k_root(team: &Team) -> Result<()> {
    reduce_kib(team, Rank(0))
}

#[inline(never)]
fn counted_reduce_1k_leaf(team: &Team) -> Result<()> {
    reduce_kib(team, Rank(1))
}

#[inline(never)]
fn counted_broadcast_root(team: &Team) -> Result<()> {
    team.broadcast(black_box(1_u64), Rank(0)).map(keep)
}

#[inline(never)]
fn counted_broadcast_leaf(team: &Team) -> Result<()> {
    team.broadcast(black_box(1_u64), Rank(1)).map(keep)
}

#[inline(never)]
fn quarter_is_over(call: u64) {
    black_box(call);
}

/// Waits until `word` has reached `number`, outside all calls.
fn until(word: &AtomicU64, number: u64) {
    while word.load(Acquire) < number {
        thread::yield_now();
    }
}

/// Both PEs create their plans, and make the first quarters of calls, uncounted.
fn warm_up(operation: &Operation, team: &Team) -> Result<()> {
    (0..4 * QUARTER).try_for_each(|_| (operation.peer)(team))
}

fn run(operation: &Operation) -> Result<()> {
    // Calls that PE 1 has made or is about to enter; calls that PE 0 has left.
    let (ahead, left) = (AtomicU64::new(0), AtomicU64::new(0));
    let calls = QUARTERS * QUARTER;
    let peer = |team: &Team| -> Result<()> {
        for call in 0..calls {
            if operation.runs_ahead {
                until(&left, call - call % QUARTER);
                (operation.peer)(team)?;
                ahead.store(call + 1, Release);
            } else {
                until(&left, call);
                ahead.store(call + 1, Release);
                (operation.peer)(team)?;
            }
        }
        Ok(())
    };
    let counted = |team: &Team| -> Result<()> {
        let in_c = TeamHandle::new(team.clone());
        for call in 0..calls {
            let ends_quarter = (call + 1).is_multiple_of(QUARTER);
            if operation.runs_ahead {
                until(&ahead, call - call % QUARTER + QUARTER);
            } else {
                until(&ahead, call + 1);
                thread::sleep(ENTERING);
            }
            match operation.counted {
                Counted::InRust(call) => call(team)?,
                Counted::InC(call) => assert_eq!(call(&in_c), 0),
            }
            left.store(call + 1, Release);
            if ends_quarter {
                quarter_is_over(call);
            }
        }
        Ok(())
    };
    let (collective, candidate) = operation.candidate;
    let candidate: Candidate = candidate.parse().expect("a candidate");
    Job::threads(2)
        .waiting(Waiting::SpinYield) // valgrind is slow: a sleeping peer would have to be woken
        .heap_bytes(1 << 12)
        .force(collective, candidate)
        .run(|pe| {
            let team = pe.world();
            warm_up(operation, team)?;
            if team.rank() == Rank(0) { counted(team) } else { peer(team) }
        })?;
    Ok(())
}

fn main() -> ExitCode {
    let Some(name) = env::args().nth(1) else {
        for operation in &OPERATIONS {
            println!("{}", operation.name);
        }
        return ExitCode::SUCCESS;
    };
    let Some(operation) = OPERATIONS.iter().find(|operation| operation.name == name) else {
        eprintln!("unknown operation `{name}`: run without arguments for a list");
        return ExitCode::from(2);
    };
    match run(operation) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
