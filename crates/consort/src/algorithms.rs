//! The algorithms of this library on this machine, as the tuner sees them.

use std::sync::{Arc, LazyLock};

use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_fabric::{CallSpec, Candidate, Capabilities, Collective, MachineModel, Query};
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
    /// Processes, which may copy each other's private buffers.
    Processes,
    /// Processes that may not: only symmetric buffers are exposed.
    Isolated,
}

/// What a copy of another process's memory takes more than one between threads. (Measured on AMD
/// Zen 4, broadcasts of 1 KiB.)
const SYSTEM_COPY_NS: f64 = 1600.0;

/// One of each fabric.
static ALL: LazyLock<[Algorithms; 3]> = LazyLock::new(|| {
    let topology = Arc::new(Topology::discover());
    let of = |fabric, identity: fn() -> Identity| {
        let cores = u32::try_from(topology.usable_cores()).unwrap_or(u32::MAX);
        let (topology, model) = (Arc::clone(&topology), MachineModel::typical(cores));
        Algorithms { topology, cores, model, fabric, identity: LazyLock::new(identity) }
    };
    [
        of(Fabric::Threads, || Algorithms::of(Fabric::Threads).named()),
        of(Fabric::Processes, || Algorithms::of(Fabric::Processes).named()),
        of(Fabric::Isolated, || Algorithms::of(Fabric::Isolated).named()),
    ]
});

impl Fabric {
    /// What follows the machine in the identity of its wisdom, and its name in that of the file.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Threads => None,
            Self::Processes => Some("processes"),
            Self::Isolated => Some("isolated-processes"),
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
        let [threads, processes, isolated] = &*ALL;
        match fabric {
            Fabric::Threads => threads,
            Fabric::Processes => processes,
            Fabric::Isolated => isolated,
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

    /// What the PEs can do in calls of teams of this size, on such buffers.
    fn of_team(&self, pes: u32, symmetric: bool) -> Capabilities {
        let exposes = self.fabric != Fabric::Isolated || symmetric;
        Capabilities { exposes, ..Job::capabilities_of(pes) }
    }

    /// What the PEs can do in a call. A PE has one message buffer, for blocking calls only.
    pub(crate) fn capabilities(&self, call: &CallSpec) -> Capabilities {
        let capabilities = self.of_team(call.pes, call.symmetric);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    /// What the system's copies of private buffers take, besides what copies between threads do.
    fn copies_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let exposes = || {
            let call = CallSpec::from(query);
            let alone = Capabilities { exposes: false, ..self.capabilities(&call) };
            !serves(&Setting::of(call, alone), candidate)
        };
        if self.fabric != Fabric::Processes || query.symmetric || !exposes() {
            return 0.0;
        }
        match query.collective {
            Collective::Broadcast | Collective::Scatter => SYSTEM_COPY_NS,
            _ => SYSTEM_COPY_NS * f64::from(query.pes - 1),
        }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Catalog for Algorithms {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        candidates(query, self.of_team(query.pes, query.symmetric))
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        estimate_ns(query, candidate, &self.model) + self.copies_ns(query, candidate)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        serves(&Setting::of(*call, self.capabilities(call)), candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let call = CallSpec::from(query);
        fingerprint(&call, candidate, self.capabilities(&call))
    }
}
