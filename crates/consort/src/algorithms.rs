//! The algorithms of this library on this machine, as the tuner sees them.

use std::{
    fmt,
    path::PathBuf,
    str::FromStr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_fabric::{CallSpec, Candidate, Capabilities, MachineModel, Nodes, Query};
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
    /// How they lie on processes that share no memory, if they do.
    nodes: Option<Nodes>,
    identity: LazyLock<Identity, fn() -> Identity>,
}

/// What PEs are, as far as algorithms depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fabric {
    /// Threads of one process.
    #[default]
    Threads,
    /// Processes of one machine.
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
        let (nodes, identity) = (None, LazyLock::new(identity));
        Algorithms { topology, cores, model, fabric, nodes, identity }
    };
    [
        of(Fabric::Threads, || Algorithms::of(Fabric::Threads).named()),
        of(Fabric::Processes, || Algorithms::of(Fabric::Processes).named()),
    ]
});

/// One for each form of nodes that a team has had. They are kept for ever.
static BETWEEN: Mutex<Vec<&'static Algorithms>> = Mutex::new(Vec::new());

impl Fabric {
    /// All of them.
    pub const EVERY: [Self; 2] = [Self::Threads, Self::Processes];

    /// The name, on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }

    /// What the wisdom of PEs other than threads has in its machine's name.
    fn suffix(self) -> String {
        match self {
            Self::Threads => String::new(),
            Self::Processes => format!("; {}", self.name()),
        }
    }

    /// The path of the wisdom for such PEs, where `path` is that for threads: it has their name
    /// before the extension, as in `wisdom.processes.toml`.
    #[must_use]
    pub fn path_of_wisdom(self, path: PathBuf) -> PathBuf {
        if self == Self::Threads {
            return path;
        }
        let extension = path.extension();
        let extension =
            extension.map_or_else(String::new, |text| format!(".{}", text.to_string_lossy()));
        path.with_extension(format!("{}{extension}", self.name()))
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`Fabric`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fabric: use threads or processes")]
pub struct UnknownFabric(String);

impl FromStr for Fabric {
    type Err = UnknownFabric;

    fn from_str(text: &str) -> Result<Self, UnknownFabric> {
        let named = Self::EVERY.into_iter().find(|fabric| fabric.name() == text);
        named.ok_or_else(|| UnknownFabric(text.to_owned()))
    }
}

impl Algorithms {
    /// The algorithms of threads of this process: [`Algorithms::of`] these.
    #[must_use]
    pub fn here() -> &'static Self {
        Self::of(Fabric::Threads)
    }

    /// The algorithms of such PEs. The machine and the affinity mask are read at the first call.
    #[must_use]
    pub fn of(fabric: Fabric) -> &'static Self {
        let [threads, processes] = &*ALL;
        match fabric {
            Fabric::Threads => threads,
            Fabric::Processes => processes,
        }
    }

    /// The algorithms of PEs that lie on processes like this, which share no memory.
    pub(crate) fn between(nodes: Nodes) -> &'static Self {
        let mut all = BETWEEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.nodes == Some(nodes)) {
            return known;
        }
        let Self { topology, cores, model, fabric, .. } = Self::here();
        let identity: fn() -> Identity = || {
            let machine = Self::here().topology.machine_key();
            Identity::new(&(machine + "; mpi"), Self::here())
        };
        let kept: &'static Self = Box::leak(Box::new(Self {
            topology: Arc::clone(topology),
            cores: *cores,
            model: model.clone().between(nodes),
            fabric: *fabric,
            nodes: Some(nodes),
            identity: LazyLock::new(identity),
        }));
        all.push(kept);
        kept
    }

    /// Whether the PEs share no memory.
    pub(crate) fn is_between(&self) -> bool {
        self.nodes.is_some()
    }

    /// The algorithms of the same PEs in a team that lies on nodes like this.
    pub(crate) fn on(&'static self, nodes: Nodes) -> &'static Self {
        if self.nodes.is_some() { Self::between(nodes) } else { self }
    }

    /// What the PEs are.
    #[must_use]
    pub fn fabric(&self) -> Fabric {
        self.fabric
    }

    fn named(&self) -> Identity {
        let machine = self.topology.machine_key();
        Identity::new(&(machine + &self.fabric.suffix()), self)
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
    pub(crate) fn capabilities(&self, call: &CallSpec) -> Capabilities {
        let capabilities = self.capabilities_of(call.pes);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    fn capabilities_of(&self, pes: u32) -> Capabilities {
        match self.nodes {
            None => Job::capabilities_of(pes),
            Some(nodes) => Job::capabilities_between(pes, nodes),
        }
    }

    /// What copies of private buffers take that processes make before peers reach them.
    fn staging_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let exposes = || {
            let call = CallSpec::from(query);
            let alone = Capabilities { exposes: false, ..self.capabilities(&call) };
            !serves(&Setting::of(call, alone), candidate)
        };
        if self.fabric != Fabric::Processes || query.symmetric || !exposes() {
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
        candidates(query, self.capabilities_of(query.pes))
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        estimate_ns(query, candidate, &self.model) + self.staging_ns(query, candidate)
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        serves(&Setting::of(*call, self.capabilities(call)), candidate)
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let call = CallSpec::from(query);
        fingerprint(&call, candidate, self.capabilities(&call))
    }
}
