//! The choice of an algorithm, as a team makes it for a new call.
//!
//! ```sh
//! cargo bench -p consort --bench choices
//! ```

use consort::{
    ops::OperatorClass,
    sync_modes::SyncModes,
    tune::{Algorithms, Collective, Query},
};
use consort_fabric::CallSpec;
use consort_tuner::{Catalog, Entry, Measurements, Selector, Table, Wisdom};
use divan::{Bencher, black_box};

const PES: u32 = 4;

fn main() {
    divan::main();
}

/// Looks up wisdom that is compiled for a team, which comes first in a selection.
#[divan::bench(args = [8, 4096, 1 << 20])]
fn table(bencher: Bencher<'_, '_>, bytes: u64) {
    let algorithms = Algorithms::here();
    let table = Table::new(&wisdom(algorithms), algorithms, PES, algorithms.cores());
    let query = query(Collective::AllReduce, bytes);
    assert!(table.look_up(&query).is_some());
    bencher.bench_local(|| black_box(&table).look_up(black_box(&query)));
}

/// Selects a candidate, with the reason, by a team's table.
#[divan::bench]
fn selection_by_wisdom(bencher: Bencher<'_, '_>) {
    let algorithms = Algorithms::here();
    let table = Table::new(&wisdom(algorithms), algorithms, PES, algorithms.cores());
    select(bencher, Measurements::Table(&table));
}

/// Selects a candidate without wisdom: the model estimates all candidates.
#[divan::bench]
fn selection_by_model(bencher: Bencher<'_, '_>) {
    select(bencher, Measurements::Nothing);
}

/// Compiles wisdom for a team.
#[divan::bench]
fn table_of_wisdom(bencher: Bencher<'_, '_>) {
    let algorithms = Algorithms::here();
    let wisdom = wisdom(algorithms);
    bencher.bench_local(|| {
        Table::new(black_box(&wisdom), algorithms, PES, algorithms.cores()).entry_count()
    });
}

fn select(bencher: Bencher<'_, '_>, measured: Measurements<'_>) {
    let selector = Selector { catalog: Algorithms::here(), measured, forced: None };
    let barrier = CallSpec::barrier(PES);
    let call = CallSpec {
        collective: Collective::AllReduce,
        sync: SyncModes::MINE,
        bytes: 4096,
        datatype: "u64",
        element_bytes: 8,
        operator: "sum",
        ..barrier
    };
    assert!(selector.select(&call).is_some());
    bencher.bench_local(|| selector.select(black_box(&call)).map(|selection| selection.by));
}

/// Returns entries for some collectives at sizes from 8 bytes to 1 MiB.
fn wisdom(algorithms: &Algorithms) -> Wisdom {
    let mut wisdom = Wisdom::new(algorithms.identity().clone());
    let collectives = [Collective::Broadcast, Collective::Reduce, Collective::AllReduce];
    for collective in collectives {
        for bytes in (3..=20).map(|power| 1 << power) {
            let query = query(collective, bytes);
            let candidates = algorithms.candidates(&query);
            // Neighbours differ, so that no two sizes are merged into one entry.
            let turn = usize::try_from(bytes.ilog2()).unwrap_or(0) % candidates.len();
            wisdom.insert(Entry::alone(query, candidates[turn].clone(), 1000.0));
        }
    }
    wisdom
}

const fn query(collective: Collective, bytes: u64) -> Query {
    let (sync, operator) = (SyncModes::MINE, OperatorClass::Commutative);
    Query { collective, sync, pes: PES, bytes, operator, symmetric: false }
}
