//! Calls of a team of one PE with an existing plan: the cost of a call without any message.
//!
//! ```sh
//! cargo bench -p consort --bench plans
//! ```

use consort::{Job, Rank, Team, ops::Sum};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// The plan of the previous call serves the call.
#[divan::bench]
fn same_call(bencher: Bencher<'_, '_>) {
    alone(|team| bencher.bench_local(|| team.all_reduce(black_box(1_u64), Sum)));
}

/// The plan is found among those of other calls.
#[divan::bench]
fn calls_in_turn(bencher: Bencher<'_, '_>) {
    alone(|team| {
        bencher.bench_local(|| {
            let sum = team.all_reduce(black_box(1_u64), Sum)?;
            let copy = team.broadcast(black_box(2_u32), Rank(0))?;
            team.barrier().map(|()| (sum, copy))
        });
    });
}

/// The program keeps the plan.
#[divan::bench]
fn planned_barrier(bencher: Bencher<'_, '_>) {
    alone(|team| {
        let barrier = team.plan_barrier().expect("a barrier has a plan");
        bencher.bench_local(|| barrier.start()?.wait());
    });
}

/// Runs `measure` as the only PE of a job.
fn alone(measure: impl FnOnce(&Team)) {
    let job = Job::threads(1).build().expect("a job of one PE");
    let run: consort::Result<()> = job.run(|pe| {
        measure(pe.world());
        Ok(())
    });
    run.expect("a PE alone does not fail");
}
