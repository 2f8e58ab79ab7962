//! The algorithms of this library on this machine, as the tuner sees them.

use std::sync::{Arc, LazyLock};

use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_fabric::{CallSpec, Candidate, Capabilities, MachineModel, Query};
use consort_native::{Job, topology::Topology};
use consort_tuner::{Catalog, Identity};

/// The algorithms that the PEs of a job can use, a model of a typical machine with as many cores,
/// and the identity that wisdom must have to be used here. `consort tune` searches these
/// algorithms.
#[derive(Debug)]
pub struct Algorithms {
    topology: Arc<Topology>,
    cores: u32,
    model: MachineModel,
    fabric: Fabric,
    identity: LazyLock<Identity, fn() -> Identity>,
}

/// What PEs are, as far as algorithms depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fabric {
    /// Threads of one process.
    Threads,
    /// Processes.
    Processes,
}

/// What it takes to find memory for a copy of a private buffer. (Measured on AMD Zen 4.)
const STAGING_NS: f64 = 100.0;

/// One of each fabric.
static ALL: LazyLock<[Algorithms; 2]> = LazyLock::new(|| {
    let topology = Arc::new(Topology::discover());
    let of = |fabric, identity: fn() -> Identity| {
        let cores = u32::try_from(topology.usable_cores()).unwrap_or(u32::MAX);
        let (topology, model) = (Arc::clone(&topology), MachineModel::typical(cores));
        Algorithms { topology, cores, model, fabric, identity: LazyLock::new(identity) }
    };
    [
        of(Fabric::Threads, || Algorithms::of(Fabric::Threads).named()),
        of(Fabric::Processes, || Algorithms::of(Fabric::Processes).named()),
    ]
});

impl Fabric {
    /// What follows the machine in the identity of its wisdom, and its name in that of the file.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Threads => None,
            Self::Processes => Some("processes"),
        }
    }
}

impl Algorithms {
    /// The algorithms of threads of this process. Its machine and affinity mask are read at the
    /// first call.
    #[must_use]
    pub fn here() -> &'static Self {
        Self::of(Fabric::Threads)
    }

    /// The algorithms of such PEs.
    pub(crate) fn of(fabric: Fabric) -> &'static Self {
        let [threads, processes] = &*ALL;
        match fabric {
            Fabric::Threads => threads,
            Fabric::Processes => processes,
        }
    }

    pub(crate) fn fabric(&self) -> Fabric {
        self.fabric
    }

    fn named(&self) -> Identity {
        let machine = self.topology.machine_key();
        let fabric = self.fabric.name().map_or_else(String::new, |name| format!("; {name}"));
        Identity::new(&(machine + &fabric), self)
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

    /// What the PEs can do in a call. A PE has one message buffer, for blocking calls only.
    pub(crate) fn capabilities(call: &CallSpec) -> Capabilities {
        let capabilities = Job::capabilities_of(call.pes);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    /// What copies of private buffers take that processes make before peers reach them.
    fn staging_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let exposes = || {
            let call = CallSpec::from(query);
            let alone = Capabilities { exposes: false, ..Self::capabilities(&call) };
            !serves(&Setting::of(call, alone), candidate)
        };
        if self.fabric == Fabric::Threads || query.symmetric || !exposes() {
            return 0.0;
        }
        STAGING_NS + query.bytes as f64 / self.model.copy_gbps
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
        estimate_ns(query, candidate, &self.model) + self.staging_ns(query, candidate)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        serves(&Setting::of(*call, Self::capabilities(call)), candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let call = CallSpec::from(query);
        fingerprint(&call, candidate, Self::capabilities(&call))
    }
}
