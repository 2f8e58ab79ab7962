//! The algorithms of this library on this machine, as the tuner sees them.

use std::sync::LazyLock;

use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_fabric::{CallSpec, Candidate, Capabilities, MachineModel, Query};
use consort_native::{Job, topology::Topology};
use consort_tuner::{Catalog, Identity};

/// The algorithms that threads of this process can use, a model of a typical machine with as many
/// cores, and the identity that wisdom must have to be used here. `consort tune` searches these
/// algorithms.
#[derive(Debug)]
pub struct Algorithms {
    topology: Topology,
    cores: u32,
    model: MachineModel,
    identity: LazyLock<Identity, fn() -> Identity>,
}

static HERE: LazyLock<Algorithms> = LazyLock::new(|| {
    let topology = Topology::discover();
    let cores = u32::try_from(topology.usable_cores()).unwrap_or(u32::MAX);
    let identity = || {
        let here = Algorithms::here();
        Identity::new(&here.topology.machine_key(), here)
    };
    let model = MachineModel::typical(cores);
    Algorithms { topology, cores, model, identity: LazyLock::new(identity) }
});

impl Algorithms {
    /// The algorithms of this process. Its machine and affinity mask are read at the first call.
    #[must_use]
    pub fn here() -> &'static Self {
        &HERE
    }

    /// The number of usable cores.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// The identity of this machine and library. Wisdom with the same identity may be used.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The capabilities of threads for a call. A PE has one message buffer, for blocking calls
    /// only.
    pub(crate) fn capabilities(call: &CallSpec) -> Capabilities {
        let capabilities = Job::capabilities_of(call.pes);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Catalog for Algorithms {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        candidates(query, Job::capabilities_of(query.pes))
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        estimate_ns(query, candidate, &self.model)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        serves(&Setting::of(*call, Self::capabilities(call)), candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let call = CallSpec::from(query);
        fingerprint(&call, candidate, Self::capabilities(&call))
    }
}
