//! A claim, and its evaluation.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::Result;
use consort::Fabric;
use consort_machine::topology::Topology;

use crate::figures::{
    experiment::{Experiment, Outcome},
    quantity::{Bound, Quantity, Source},
};

/// The name of this machine, as that of a figure.
const HERE: &str = "here";

/// A claim of a paper, and the experiment that checks it.
pub struct Claim {
    /// Its name.
    pub id: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// The claim in a sentence.
    pub about: &'static str,
    /// The same in a line, with figures.
    pub says: &'static str,
    /// The paper's figures: the machine, the quantity, and its value.
    pub bounds: &'static [Bound],
    /// The least number of PEs that its experiment needs.
    pub least_pes: u32,
    /// The place where its experiment runs.
    pub place: Place,
    /// Runs the experiment and returns its outcome for the claim.
    pub judge: fn(&Experiment<'_>) -> Result<Outcome>,
}

/// The place where a claim's experiment runs.
#[derive(Clone, Copy)]
pub enum Place {
    /// On this machine.
    Here,
    /// On this machine, and also on the paper's machines, simulated.
    BesideSimulated(fn(Source) -> Result<Vec<Quantity>>),
    /// On a simulated machine only.
    Simulated,
}

impl Claim {
    /// Runs the experiment for `budget`, with `pes` PEs or else the number that suits it, until
    /// `stop` is set. Passes the share that is complete to `show`. With `whole` it has all figures,
    /// however long that takes, and with `beside` the paper's machines are simulated too. Returns
    /// nothing if it was stopped before its end, and the time of simulating the paper's machines
    /// beside this one.
    ///
    /// # Errors
    /// When a job or a simulation fails, or the experiment needs another number of PEs.
    pub fn evaluate(
        &self,
        pes: Option<u32>,
        budget: Duration,
        whole: bool,
        beside: bool,
        stop: &AtomicBool,
        show: &dyn Fn(f64),
    ) -> Result<Option<(Outcome, Duration)>> {
        let source = Source { claim: self.id, bounds: self.bounds };
        let cores = u32::try_from(Topology::discover().usable_cores()).unwrap_or(u32::MAX);
        // Relaxed, here and below: the flag publishes no other data.
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let fabric = Fabric::Threads;
        let experiment = Experiment { source, fabric, pes, whole, cores, budget, stop, show };
        let judged = (self.judge)(&experiment);
        if stop.load(Relaxed) {
            // What lacks measurements may have failed for that.
            return Ok(None);
        }
        let (mut outcome, begun) = (judged?, Instant::now());
        if let (Place::BesideSimulated(simulate), true) = (self.place, beside) {
            merge(&mut outcome.quantities, simulate(source)?);
        }
        for one in &mut outcome.quantities {
            one.machine = machine_of(one);
        }
        Ok(Some((outcome, begun.elapsed())))
    }
}

/// The machine that a figure is of: the paper's, or this one if neither the paper nor a simulation
/// has a value.
fn machine_of(one: &Quantity) -> &'static str {
    let values = [one.paper, one.model, one.simulated, one.fitted];
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
    use crate::figures::quantity::bound;

    #[test]
    fn a_figure_that_no_paper_has_is_of_this_machine() {
        const BOUNDS: &[Bound] = &[bound("a", "of the paper", 2.0)];
        let source = Source { claim: "G1", bounds: BOUNDS };
        let figure = |what| source.quantity("a", what, "us").native(1.0);
        let machine = |what| machine_of(&figure(what));
        assert_eq!([machine("of the paper"), machine("another")], ["a", HERE]);
        assert_eq!(machine_of(&figure("another").simulated(3.0)), "a");
    }

    #[test]
    fn a_simulated_figure_joins_the_native_one_of_its_name() {
        const BOUNDS: &[Bound] = &[bound("a", "reduce", 2.0)];
        let source = Source { claim: "H6", bounds: BOUNDS };
        let figure = |machine| source.quantity(machine, "reduce", "us");
        let mut all = vec![figure("a").native(1.0)];
        merge(&mut all, vec![figure("a").simulated(3.0), figure("b").simulated(3.0)]);
        let figures: Vec<_> =
            all.iter().map(|one| (one.native, one.simulated, one.rel_error)).collect();
        assert_eq!(figures, [(Some(1.0), Some(3.0), Some(0.5)), (None, Some(3.0), None)]);
    }
}
