//! A claim and its evaluation.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::launch::Fabric;
use consort_machine::topology::Topology;

use crate::figures::{
    experiment::{Experiment, Outcome},
    figure::{Figure, Figures, Paper},
    quantity::Quantity,
};

/// The name of this machine in figures.
const HERE: &str = "here";

/// A claim of a paper, and the experiment that checks it.
pub struct Claim {
    /// Its name.
    pub id: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// The claim in one sentence.
    pub about: &'static str,
    /// The claim in one line, with figures.
    pub says: &'static str,
    /// The mechanism that decides its figures, in one sentence.
    pub mechanism: &'static str,
    /// The paper's figures, as the modules of its experiment declare them.
    pub figures: &'static [Figures],
    /// The smallest number of PEs that its experiment needs.
    pub least_pes: u32,
    /// The place where its experiment runs.
    pub place: Place,
}

/// Runs an experiment and returns its outcome for the claim.
type Judge = fn(&Experiment<'_>) -> Result<Outcome>;

/// The place where a claim's experiment runs, with the functions that run it.
#[derive(Clone, Copy)]
pub enum Place {
    /// On this machine.
    Here(Judge),
    /// On this machine, and also on simulations of the paper's machines.
    HereAndSimulated(Judge, fn() -> Result<Vec<Quantity>>),
    /// On a simulated machine only.
    Simulated(Judge),
}

impl Claim {
    /// Returns all figures of the paper.
    pub fn figures(&self) -> impl Iterator<Item = &'static Figure> {
        self.figures.iter().flat_map(|of_module| of_module.iter()).flat_map(|some| some.iter())
    }

    /// Runs the experiment for `budget` until `stop` is set, with `pes` PEs or else the number that
    /// suits it. Passes the completed share to `show`. With `whole` it includes all figures,
    /// however long that takes. With `simulates` it also simulates the paper's machines. Returns the
    /// outcome, or nothing if it was stopped early, and the time that simulating the paper's
    /// machines took in addition to this one.
    ///
    /// # Errors
    /// When a job or a simulation fails, the experiment needs a different number of PEs, or a
    /// simulation lacks a figure of the paper.
    pub fn evaluate(
        &self,
        pes: Option<u32>,
        budget: Duration,
        whole: bool,
        simulates: bool,
        stop: &AtomicBool,
        show: &dyn Fn(f64),
    ) -> Result<Option<(Outcome, Duration)>> {
        let cores = u32::try_from(Topology::discover().usable_cores()).unwrap_or(u32::MAX);
        // Relaxed, here and below, because the flag publishes no other data.
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let fabric = Fabric::Threads;
        let experiment = Experiment { fabric, pes, whole, cores, budget, stop, show };
        let judged = match self.place {
            Place::Here(judge) | Place::HereAndSimulated(judge, _) | Place::Simulated(judge) => {
                judge(&experiment)
            }
        };
        if stop.load(Relaxed) {
            // Missing measurements may be the reason for the error.
            return Ok(None);
        }
        let (mut outcome, begun) = (judged?, Instant::now());
        match self.place {
            Place::HereAndSimulated(_, simulate) if simulates => {
                merge(&mut outcome.quantities, simulate()?);
            }
            Place::Simulated(_) => self.check(&outcome.quantities)?,
            _ => {}
        }
        for one in &mut outcome.quantities {
            one.claim = self.id;
            one.machine = machine_of(one);
        }
        Ok(Some((outcome, begun.elapsed())))
    }

    /// Checks that no figure of the paper is left out.
    fn check(&self, quantities: &[Quantity]) -> Result<()> {
        for figure in self.figures() {
            for &(machine, _) in figure.papers {
                let is = |one: &Quantity| (one.figure, one.machine) == (Some(figure.id), machine);
                ensure!(quantities.iter().any(is), "missing figure {} of {machine}", figure.id);
            }
        }
        Ok(())
    }
}

/// Returns the machine of a figure: the paper's, or this one if neither the paper nor a simulation
/// has a value.
fn machine_of(one: &Quantity) -> &'static str {
    let values = [one.paper.map(Paper::number), one.model, one.simulated, one.fitted];
    if values.iter().any(Option::is_some) { one.machine } else { HERE }
}

/// Merges the quantities of the simulated machines into those of this machine.
fn merge(quantities: &mut Vec<Quantity>, simulated: Vec<Quantity>) {
    for one in simulated {
        let same = |other: &&mut Quantity| {
            (other.machine, &other.quantity) == (one.machine, &one.quantity)
        };
        match quantities.iter_mut().find(same) {
            Some(native) => {
                native.simulated = one.simulated;
                native.fitted = one.fitted;
                native.rel_error = one.rel_error;
                native.holds = one.holds;
            }
            None => quantities.push(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "a";
    const B: &str = "b";

    figures! { FIGURES of "H6", "": "us":
        REDUCE("reduce", A == 2.0)
    }

    #[test]
    fn quantity_without_paper_or_simulation_is_of_this_machine() {
        let machine = |one: Quantity| machine_of(&one.native(1.0));
        assert_eq!(machine(REDUCE.on(A)), A);
        assert_eq!(machine(REDUCE.on(B)), HERE);
        assert_eq!(machine(REDUCE.on(B).simulated(3.0)), B);
    }

    #[test]
    fn simulated_figure_is_merged_with_native_one_of_same_name() {
        let mut all = vec![REDUCE.on(A).native(1.0)];
        merge(&mut all, vec![REDUCE.on(A).simulated(3.0), REDUCE.on(B).simulated(3.0)]);
        let figures: Vec<_> =
            all.iter().map(|one| (one.native, one.simulated, one.rel_error)).collect();
        assert_eq!(figures, [(Some(1.0), Some(3.0), Some(0.5)), (None, Some(3.0), None)]);
    }

    #[test]
    fn missing_figure_of_the_paper_is_an_error() {
        let claim = Claim { figures: &[FIGURES], ..*crate::claims::find("T8").unwrap() };
        claim.check(&[REDUCE.on(A).simulated(3.0)]).unwrap();
        let error = claim.check(&[REDUCE.on(B).simulated(3.0)]).unwrap_err();
        assert_eq!(error.to_string(), "missing figure H6.REDUCE of a");
    }
}
