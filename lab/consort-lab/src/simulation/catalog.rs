//! The algorithms that a described machine can run, and the model's estimates for them.

use anyhow::{Result, ensure};
use consort::tune::{Candidate, Query};
use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_console::usage::Usage;
use consort_fabric::{CallSpec, Capabilities, MachineModel};
use consort_sim::{Simulation, machines::Machine};
use consort_tuner::Catalog;

/// The first PEs of a machine, as the tuner sees them.
#[derive(Debug)]
pub struct Described {
    model: MachineModel,
    capabilities: Capabilities,
}

impl Described {
    /// Returns the first `pes` PEs of `machine`.
    ///
    /// # Errors
    /// When the machine has fewer PEs.
    pub fn of(machine: Machine, pes: u32) -> Result<Self> {
        let most = machine.pes();
        ensure!(
            (1..=most).contains(&pes),
            Usage(format!("--pes {pes}: {} has {most} PEs", machine.name))
        );
        let model = machine.model(pes);
        let capabilities = Simulation::on(machine, pes).capabilities()?;
        Ok(Self { model, capabilities })
    }
}

impl Catalog for Described {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        candidates(query, self.capabilities)
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        estimate_ns(query, candidate, &self.model)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        serves(&Setting::of(*call, self.capabilities), candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        fingerprint(&CallSpec::from(query), candidate, self.capabilities)
    }
}

#[cfg(test)]
mod tests {
    use consort::{sync_modes::SyncModes, tune::Collective};
    use consort_fabric::CallSpec;
    use consort_tuner::{Measurements, Selector};

    use super::super::program::Program;
    use super::*;
    use consort_bench::{harness::Mode, query_json::sums};

    /// Returns the time of the model's choice, among all algorithms or those named `algorithm`,
    /// divided by the best; both are simulated.
    fn penalty(name: &str, collective: Collective, bytes: usize, algorithm: Option<&str>) -> f64 {
        let machine = Machine::find(name).unwrap();
        let pes = machine.pes();
        let described = Described::of(machine.clone(), pes).unwrap();
        let query = sums(collective, SyncModes::MINE, pes, bytes, false);
        let mut candidates = described.candidates(&query);
        candidates.retain(|one| algorithm.is_none_or(|algorithm| one.algorithm == algorithm));
        let estimate_ns = |one: &Candidate| described.estimate_ns(&query, one);
        let mut chosen = candidates
            .iter()
            .min_by(|one, other| estimate_ns(one).total_cmp(&estimate_ns(other)))
            .unwrap()
            .clone();
        if algorithm.is_none() {
            let model = Selector::new(&described, Measurements::Nothing);
            let choice = model.select(&CallSpec::from(&query)).unwrap().candidate;
            // The choice may combine the best of each part. Then it is not one of the candidates.
            let is_combined = !candidates.contains(&choice);
            assert!(
                *choice == chosen || is_combined && estimate_ns(&choice) <= estimate_ns(&chosen)
            );
            chosen = choice.into_owned();
        }
        let simulation = Simulation::on(machine, pes);
        let simulated_ns = |candidate: &Candidate| {
            let simulated = Program::once(query, candidate).simulate_on(&simulation).unwrap();
            simulated.call_ns(Mode::Latency).unwrap()
        };
        let best_ns = candidates.iter().map(simulated_ns).fold(f64::INFINITY, f64::min);
        simulated_ns(&chosen) / best_ns
    }

    /// The model with contention determines the degree of OC-BCAST, without a search.
    #[test]
    fn tree_degree_is_chosen_by_formula() {
        for lines in [1, 32, 96, 192, 1024] {
            let penalty = penalty("scc", Collective::Broadcast, 32 * lines, Some("oc_bcast"));
            assert!(penalty < 1.2, "{lines} lines: {penalty} times the best");
        }
    }

    #[test]
    fn model_chooses_well_on_built_in_machines() {
        for name in ["scc", "barcelona-x8", "clovertown-x2"] {
            for collective in [Collective::Broadcast, Collective::Reduce] {
                for bytes in [8, 8192] {
                    let penalty = penalty(name, collective, bytes, None);
                    assert!(penalty < 1.7, "{collective} of {bytes} B on {name}: {penalty}");
                }
            }
        }
    }
}
