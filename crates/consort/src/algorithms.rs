//! The algorithms of this library on this machine, as the tuner sees them.

use std::{
    fmt,
    path::PathBuf,
    str::FromStr,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use consort_collectives::{Setting, candidates, estimate_ns, fingerprint, serves};
use consort_fabric::{CallSpec, Candidate, Capabilities, MachineModel, Nodes, Query, Vendor};
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
    /// Those of one team, if it lies on the processes of an MPI in another way than the world.
    nodes: Option<Nodes>,
    /// Whether the fabric's own collectives are among them: they are the world's.
    vendor: bool,
    identity: OnceLock<Identity>,
}

/// What PEs are, as far as algorithms depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fabric {
    /// Threads of one process.
    #[default]
    Threads,
    /// Processes of one machine.
    Processes,
    /// PEs of the processes that an MPI starts.
    Mpi(ProcessShape),
}

/// How PEs lie on the processes of an MPI. Those of one process are its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessShape {
    /// The PEs of each process, of which there is at least one.
    pub pes_each: u32,
    /// Whether ranks are dealt to the processes in turn, or those of a process follow each other.
    pub in_turn: bool,
}

impl ProcessShape {
    /// Each process is one PE.
    pub const SINGLE: Self = Self { pes_each: 1, in_turn: false };

    /// How many processes PEs lie on.
    #[must_use]
    pub fn processes(self, pes: u32) -> u32 {
        pes.div_ceil(self.pes_each.max(1))
    }

    /// The processes of the PEs of a world of so many.
    pub(crate) fn nodes(self, pes: u32) -> Nodes {
        if self.in_turn && self.pes_each > 1 {
            Nodes::InTurn(self.processes(pes).max(1))
        } else {
            Nodes::Blocks(self.pes_each.max(1))
        }
    }
}

/// Which of the processes that an MPI has started share memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Those of one machine.
    #[default]
    Machine,
    /// None: messages go between any two, by the MPI. For measurements of that, and for tests.
    Process,
}

/// What it takes to find memory for a copy of a private buffer. (Measured on AMD Zen 4.)
const STAGING_NS: f64 = 100.0;

/// One of each fabric, and of each other form of nodes that a team has had. They are kept for ever.
static ALL: Mutex<Vec<&'static Algorithms>> = Mutex::new(Vec::new());

/// This machine's topology, read once.
static TOPOLOGY: LazyLock<Arc<Topology>> = LazyLock::new(|| Arc::new(Topology::discover()));

impl Fabric {
    /// The name, on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
            Self::Mpi(_) => "mpi",
        }
    }

    /// What the wisdom of PEs other than threads has in its machine's name.
    fn suffix(self) -> String {
        match self {
            Self::Threads => String::new(),
            _ => format!("; {self}"),
        }
    }

    /// The path of the wisdom for such PEs, where `path` is that for threads: it has their name
    /// before the extension, as in `wisdom.processes.toml` and `wisdom.mpi-2.toml`.
    #[must_use]
    pub fn path_of_wisdom(self, path: PathBuf) -> PathBuf {
        if self == Self::Threads {
            return path;
        }
        let extension = path.extension();
        let extension =
            extension.map_or_else(String::new, |text| format!(".{}", text.to_string_lossy()));
        path.with_extension(format!("{}{extension}", self.to_string().replace(':', "-")))
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpi(ProcessShape { pes_each: each @ 2.., in_turn }) => {
                let order = if *in_turn { ":in-turn" } else { "" };
                f.pad(&format!("mpi:{each}{order}"))
            }
            _ => f.pad(self.name()),
        }
    }
}

/// A text that names no [`Fabric`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no fabric: use threads, processes or mpi; mpi:2 is with 2 PEs a process, and \
     mpi:2:in-turn if ranks are dealt to the processes in turn"
)]
pub struct UnknownFabric(String);

impl FromStr for Fabric {
    type Err = UnknownFabric;

    fn from_str(text: &str) -> Result<Self, UnknownFabric> {
        let unknown = || UnknownFabric(text.to_owned());
        let words: Vec<&str> = text.split(':').collect();
        let (each, in_turn) = match words[..] {
            ["threads"] => return Ok(Self::Threads),
            ["processes"] => return Ok(Self::Processes),
            ["mpi"] => ("1", false),
            ["mpi", each] => (each, false),
            ["mpi", each, "in-turn"] => (each, true),
            _ => return Err(unknown()),
        };
        let pes_each = each.parse().ok().filter(|&each| each > 0).ok_or_else(unknown)?;
        Ok(Self::Mpi(ProcessShape { pes_each, in_turn: in_turn && pes_each > 1 }))
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
        Self::kept(fabric, None, matches!(fabric, Fabric::Mpi(_)))
    }

    fn kept(fabric: Fabric, nodes: Option<Nodes>, vendor: bool) -> &'static Self {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &&&Self| (one.fabric, one.nodes, one.vendor) == (fabric, nodes, vendor);
        if let Some(known) = all.iter().find(is_it) {
            return known;
        }
        let topology = Arc::clone(&TOPOLOGY);
        let cores = u32::try_from(topology.usable_cores()).unwrap_or(u32::MAX);
        let model = MachineModel::typical(cores);
        let identity = OnceLock::new();
        let kept: &'static Self =
            Box::leak(Box::new(Self { topology, cores, model, fabric, nodes, vendor, identity }));
        all.push(kept);
        kept
    }

    /// Whether the PEs share no memory.
    pub(crate) fn is_between(&self) -> bool {
        matches!(self.fabric, Fabric::Mpi(_))
    }

    /// The algorithms of the same PEs in a team of so many that lies on nodes like this.
    pub(crate) fn on(&'static self, nodes: Nodes, pes: u32) -> &'static Self {
        match self.fabric {
            Fabric::Mpi(shape) if shape.nodes(pes).of_team(pes) == nodes.of_team(pes) => {
                Self::kept(self.fabric, None, self.vendor)
            }
            Fabric::Mpi(_) => Self::kept(self.fabric, Some(nodes), self.vendor),
            _ => self,
        }
    }

    /// The same without collectives of the fabric's own.
    pub(crate) fn without_vendor(&'static self) -> &'static Self {
        Self::kept(self.fabric, self.nodes, false)
    }

    /// Whether they are those of a team that lies on processes in another way than a world.
    pub(crate) fn is_of_part(&self) -> bool {
        self.nodes.is_some()
    }

    /// The nodes of a team of `pes`, if its PEs share no memory.
    fn nodes(&self, pes: u32) -> Option<Nodes> {
        match self.fabric {
            Fabric::Mpi(shape) => Some(self.nodes.unwrap_or_else(|| shape.nodes(pes))),
            _ => None,
        }
    }

    /// What the PEs are.
    #[must_use]
    pub fn fabric(&self) -> Fabric {
        self.fabric
    }

    /// The number of usable cores.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// The identity of this machine and library. Wisdom with the same identity may be used.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.identity.get_or_init(|| {
            let machine = self.topology.machine_key();
            Identity::new(&(machine + &self.fabric.suffix()), self)
        })
    }

    /// What the PEs can do in a call. A PE has one message buffer, for blocking calls only.
    pub(crate) fn capabilities(&self, call: &CallSpec) -> Capabilities {
        let capabilities = self.capabilities_of(call.pes);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    fn capabilities_of(&self, pes: u32) -> Capabilities {
        match self.nodes(pes) {
            None => Job::capabilities_of(pes),
            Some(nodes) => {
                let vendor =
                    Vendor { team: self.vendor && nodes == Nodes::Blocks(1), leaders: self.vendor };
                Capabilities { vendor, ..Job::capabilities_between(pes, nodes) }
            }
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
        if let Some(nodes) = self.nodes(query.pes) {
            return estimate_ns(query, candidate, &self.model.clone().between(nodes));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fabrics_have_names() {
        let shape = |pes_each, in_turn| Fabric::Mpi(ProcessShape { pes_each, in_turn });
        for (fabric, name) in [
            (Fabric::Threads, "threads"),
            (Fabric::Processes, "processes"),
            (Fabric::Mpi(ProcessShape::SINGLE), "mpi"),
            (shape(2, false), "mpi:2"),
            (shape(4, true), "mpi:4:in-turn"),
        ] {
            assert_eq!((fabric.to_string().as_str(), name.parse()), (name, Ok(fabric)));
        }
        assert_eq!("mpi:1:in-turn".parse(), Ok(Fabric::Mpi(ProcessShape::SINGLE)));
        for name in ["", "mpi:", "mpi:0", "mpi:two", "mpi:2:blocks", "mpi:2:in-turn:", "thread"] {
            assert!(name.parse::<Fabric>().is_err(), "{name}");
        }
        let path = shape(2, true).path_of_wisdom("a/wisdom.toml".into());
        assert_eq!(path, PathBuf::from("a/wisdom.mpi-2-in-turn.toml"));
    }

    /// Wisdom of worlds of a shape serves the teams that lie on the processes in the same way.
    #[test]
    fn parts_of_a_world_that_lie_otherwise_are_told_apart() {
        let world = Algorithms::of(Fabric::Mpi(ProcessShape { pes_each: 2, in_turn: false }));
        assert!(!world.on(Nodes::Blocks(2), 4).is_of_part());
        assert!(!world.on(Nodes::One, 2).is_of_part(), "both PEs of a process");
        for nodes in [Nodes::Blocks(1), Nodes::InTurn(2)] {
            assert!(world.on(nodes, 4).is_of_part(), "{nodes:?}");
        }
        assert!(!Algorithms::here().on(Nodes::One, 4).is_of_part());
        assert_ne!(world.identity(), Algorithms::of(Fabric::Mpi(ProcessShape::SINGLE)).identity());
    }
}
