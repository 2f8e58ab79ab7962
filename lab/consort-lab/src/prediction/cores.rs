//! Predicts calls of threads of this machine by simulations on its description.
//!
//! Only blocks of one class count: the class, near or far, that the cores had when the machine was
//! described.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use consort::{
    launch::Fabric,
    sync_modes::SyncModes,
    tune::{Algorithms, Arrival, Candidate, Collective, Query},
};
use consort_fabric::CallSpec;
use consort_sim::{
    Simulation,
    machines::{Kind, Machine, State},
};
use consort_tuner::{Measurements, Selector, TransferClass, default_path};

use super::{Basis, Call, Predicted, Prediction, simulate, times};
use consort_bench::{harness::Work, query_json::sums, wisdom::usable};
use consort_console::usage::Usage;

impl Prediction<'_> {
    /// Measures threads, and simulates on `machine`: a barrier, broadcasts and reductions. Passes
    /// the present step and the completed share to `show`.
    ///
    /// # Errors
    /// When the machine cannot be this one, has too few PEs, or measuring fails.
    pub fn on_cores(&self, machine: &Machine, show: &dyn Fn(&str, f64)) -> Result<Predicted> {
        let Kind::Coherent(cores) = &machine.kind else {
            bail!(Usage(format!(
                "{}: only machines with coherent caches can describe this one",
                machine.name
            )))
        };
        let usable = Algorithms::here().cores();
        ensure!(
            self.pes <= machine.pes() && self.pes as usize <= usable,
            Usage(format!(
                "--pes {}: {} has {} PEs, and {usable} cores are usable here",
                self.pes,
                machine.name,
                machine.pes(),
            ))
        );
        let distance = cores.distance(0, 1);
        let transfer_ns =
            cores.store_ns(State::Shared, distance) + cores.load_ns(State::Modified, distance);
        let class = TransferClass::of(transfer_ns);
        let (planned, begun) = (self.planned_calls()?, Instant::now());
        let simulation = Simulation::on(machine.clone(), self.pes);
        let mut predicted = Vec::new();
        for (index, (query, candidate)) in planned.iter().enumerate() {
            show("simulating", index as f64 / planned.len() as f64);
            predicted.push(simulate(&simulation, query, candidate)?);
        }
        let simulating = begun.elapsed();
        let budget = self.budget.saturating_sub(simulating);
        let work: Vec<Work> =
            planned.iter().map(|(query, candidate)| Work::of(query, candidate)).collect();
        let show = |share| show("measuring", share);
        let taken = self.measure(Fabric::Threads, &work, Some(class), budget, &show)?;
        let count = planned.len();
        let all = planned.into_iter().zip(&taken.timings).zip(predicted);
        let calls: Vec<Call> = all
            .filter_map(|((call, timing), ns)| {
                Call::new(call, (ns, None), &mut times(timing, Some(class)))
            })
            .collect();
        self.ensure_measured(&calls)?;
        ensure!(
            !calls.is_empty(),
            "the cores are not {class} now, but they were when {} was described: describe the \
             machine again with `consort-lab calibrate`, or try again",
            machine.name,
        );
        let basis = Basis::Cores { transfer_ns, class };
        Ok(Predicted {
            missing: count - calls.len(),
            simulating,
            longest_launch: taken.longest_launch,
            ..Predicted::new((machine.name.clone(), self.pes), basis, calls)
        })
    }

    /// Returns the calls, each with the algorithm that serves it on this machine.
    fn planned_calls(&self) -> Result<Vec<(Query, Candidate)>> {
        let algorithms = Algorithms::here();
        let wisdom = usable(&default_path(Arrival::Together)?, algorithms.identity());
        let call = |collective, sync, bytes| sums(collective, sync, self.pes, bytes, false);
        let mut queries = vec![call(Collective::Barrier, SyncModes::STRICT, 0)];
        for &sync in self.syncs {
            for collective in [Collective::Broadcast, Collective::Reduce, Collective::AllReduce] {
                queries.extend(self.sizes_bytes.iter().map(|&bytes| call(collective, sync, bytes)));
            }
        }
        let measured = Measurements::new(wisdom.as_ref(), algorithms.cores());
        let selector = Selector::new(algorithms, measured);
        let serving = |query: Query| {
            let selected = selector.select(&CallSpec::from(&query));
            let selected = selected.with_context(|| format!("no algorithm serves {query:?}"))?;
            Ok((query, selected.candidate.into_owned()))
        };
        queries.into_iter().map(serving).collect()
    }
}
