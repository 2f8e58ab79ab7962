//! The algorithms of this library on this machine, as the tuner sees them.

use std::sync::Arc;

use consort_collectives::{
    Algorithm, Description, Parameter, PlanError, Setting, candidates, describe, estimate_ns,
    fingerprint, of_values, revisions, serves,
};
use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, Levels, MachineModel, Nodes, Query, Vendor,
};
use consort_machine::{
    fork_safe::{Found, Mutex},
    topology::Topology,
};
use consort_mpi::MpiProcess;
use consort_native::Job;
use consort_tuner::{Catalog, Identity, Revisions};

use crate::{fabric::Fabric, runtime::making::Outside};

/// The algorithms that the PEs of a job can use, a model of a typical machine with as many cores,
/// and the identity that wisdom must have to be used here. `consort tune` searches these
/// algorithms.
#[derive(Debug)]
pub struct Algorithms {
    topology: Arc<Topology>,
    /// The part of the machine that the PEs of all processes may use together.
    of_all: Arc<Topology>,
    model: MachineModel,
    fabric: Fabric,
    /// The nodes of a team whose placement on an MPI's processes differs from the world's.
    nodes: Option<Nodes>,
    /// Whether the fabric's own collectives, which belong to the world, are included.
    vendor: bool,
    /// The program's own algorithms.
    own: Own,
    /// The placement of PEs on caches, and of these on larger units, by number of PEs.
    caches: Mutex<Vec<(u32, (Nodes, Levels))>>,
    identity: Found<Identity>,
}

/// A program's own algorithms.
type Own = Vec<(Collective, Outside)>;

/// The registered algorithms, in order of registration.
static REGISTERED: Mutex<Own> = Mutex::new(Vec::new());

/// Registers an algorithm of the program for calls of `collective`, in all jobs and pools that this
/// process launches from now on. It is treated like the library's algorithms: tuning measures it,
/// wisdom names it, the model estimates it by [`Algorithm::cost_ns`], and refinement at run time
/// tries it. It does not become part of compositions. All processes of a job must register the same
/// algorithms. In a job with [`helper_threads`](crate::JobBuilder::helper_threads) it serves
/// blocking calls only. A barrier serves only calls of `barrier`: the entry and exit barriers of
/// other calls are the library's.
///
/// `docs/adding-an-algorithm.md` shows an example, and a `consort` command that tunes it.
///
/// # Panics
/// When the collective has another algorithm of that name, or when the name or that of a parameter
/// contains anything but ASCII letters, digits and underscores.
pub fn register<A: Algorithm>(collective: Collective) {
    let new = Outside::of::<A>();
    let name = new.description.name;
    let written = |written: Candidate, one: &Parameter| written.with(one.name, 1);
    let candidate = new.description.parameters.iter().fold(Candidate::new(name), written);
    // Wisdom that names the candidate is parsed again.
    match candidate.to_string().parse::<Candidate>() {
        Ok(read) => {
            assert!(read == candidate, "`{candidate}` is read as {read:?}: use other names")
        }
        Err(bad) => panic!("{bad}"),
    }
    let is_ours = describe(collective, name).is_ok();
    assert!(!is_ours, "the library has a {collective} `{name}`: use another name");
    let mut all = REGISTERED.lock();
    match all.iter().find(|(of, one)| *of == collective && one.description.name == name) {
        None => all.push((collective, new)),
        Some((_, known)) => {
            let (known, new) = (known.type_name, new.type_name);
            assert!(
                known == new,
                "{known} and {new} are both a {collective} `{name}`: use another name"
            );
        }
    }
}

/// The time to find memory for a copy of a private buffer. (Measured on AMD Zen 4.)
const STAGING_NS: f64 = 100.0;

/// One instance for each fabric, and for each other placement of a team on nodes. Never freed.
static ALL: Mutex<Vec<&'static Algorithms>> = Mutex::new(Vec::new());

/// Returns this machine's topology, which is read once.
fn topology() -> &'static Arc<Topology> {
    static KNOWN: Found<Arc<Topology>> = Found::new();
    KNOWN.get_or_find(|| Arc::new(Topology::discover()))
}

/// Returns the topology that the launcher may use, if an MPI has started this process.
fn topology_of_launcher() -> &'static Arc<Topology> {
    static KNOWN: Found<Arc<Topology>> = Found::new();
    KNOWN.get_or_find(|| match MpiProcess::here() {
        Some(_) => Arc::new(topology().of_launcher()),
        None => Arc::clone(topology()),
    })
}

impl Algorithms {
    /// Returns the algorithms of threads of this process, as [`Algorithms::of`].
    #[must_use]
    pub fn here() -> &'static Self {
        Self::of(Fabric::Threads)
    }

    /// Returns the algorithms of the PEs of a fabric. The first call reads the machine and the
    /// affinity mask.
    #[must_use]
    pub fn of(fabric: Fabric) -> &'static Self {
        let own = REGISTERED.lock().clone();
        Self::kept(fabric, None, fabric.shape().is_some(), &own)
    }

    /// Returns the instance with these parts, which is created once. Algorithms are never
    /// unregistered, so their number identifies the set.
    fn kept(
        fabric: Fabric,
        nodes: Option<Nodes>,
        vendor: bool,
        own: &[(Collective, Outside)],
    ) -> &'static Self {
        let find = |all: &[&'static Self]| {
            all.iter().copied().find(|one| {
                let theirs = (one.fabric, one.nodes, one.vendor, one.own.len());
                theirs == (fabric, nodes, vendor, own.len())
            })
        };
        let known = find(&ALL.lock());
        if let Some(known) = known {
            return known;
        }
        // Without the lock, so that forks wait for the lock only for a moment.
        let topology = Arc::clone(topology());
        let of_all = match fabric {
            Fabric::Threads => Arc::clone(&topology),
            _ => Arc::clone(topology_of_launcher()),
        };
        let processors = u32::try_from(of_all.processors()).unwrap_or(u32::MAX);
        let model = MachineModel::typical(processors);
        let new = Box::new(Self {
            topology,
            of_all,
            model,
            fabric,
            nodes,
            vendor,
            own: own.to_vec(),
            caches: Mutex::default(),
            identity: Found::new(),
        });
        let mut all = ALL.lock();
        find(&all).unwrap_or_else(|| {
            let kept: &'static Self = Box::leak(new);
            all.push(kept);
            kept
        })
    }

    /// Returns whether the PEs share no memory.
    pub(crate) fn is_between(&self) -> bool {
        self.fabric.shape().is_some()
    }

    /// Returns the algorithms of the same PEs in a team of `pes` with this placement on nodes.
    pub(crate) fn on(&'static self, nodes: Nodes, pes: u32) -> &'static Self {
        match self.fabric.nodes(pes) {
            Some(own) if own.of_team(pes) == nodes.of_team(pes) => {
                Self::kept(self.fabric, None, self.vendor, &self.own)
            }
            Some(_) => Self::kept(self.fabric, Some(nodes), self.vendor, &self.own),
            None => self,
        }
    }

    /// Returns the same algorithms without the fabric's own collectives.
    pub(crate) fn without_vendor(&'static self) -> &'static Self {
        Self::kept(self.fabric, self.nodes, false, &self.own)
    }

    /// Returns the same algorithms without the program's own.
    pub(crate) fn without_own(&'static self) -> &'static Self {
        Self::kept(self.fabric, self.nodes, self.vendor, &[])
    }

    /// Returns the program's own algorithm of this name, if there is one.
    pub(crate) fn own(&self, collective: Collective, name: &str) -> Option<&Outside> {
        let is_it =
            |one: &&(Collective, Outside)| (one.0, one.1.description.name) == (collective, name);
        self.own.iter().find(is_it).map(|(_, outside)| outside)
    }

    /// Lists the program's own algorithms for people.
    pub(crate) fn shown_own(&self) -> String {
        let shown = |(collective, one): &(Collective, Outside)| {
            let Description { name, revision, .. } = one.description;
            format!("{collective} {name} of revision {revision}")
        };
        self.own.iter().map(shown).collect::<Vec<String>>().join(", ")
    }

    /// Returns the name and the parameters of an algorithm.
    ///
    /// # Errors
    /// When no algorithm has that name.
    pub fn describe(&self, collective: Collective, name: &str) -> Result<Description, PlanError> {
        if let Some(own) = self.own(collective, name) {
            return Ok(own.description);
        }
        describe(collective, name).map_err(|error| match error {
            PlanError::UnknownAlgorithm { collective, name, known } => {
                let own = self.own.iter().filter(|(of, _)| *of == collective);
                let known = own.fold(known, |all, (_, one)| all + ", " + one.description.name);
                PlanError::UnknownAlgorithm { collective, name, known }
            }
            other => other,
        })
    }

    /// Returns whether these are for a team whose placement on processes differs from a world's.
    pub(crate) fn is_of_part(&self) -> bool {
        self.nodes.is_some()
    }

    /// Returns the nodes of a team of `pes`, if its PEs share no memory.
    fn nodes(&self, pes: u32) -> Option<Nodes> {
        self.fabric.nodes(pes).map(|own| self.nodes.unwrap_or(own))
    }

    /// Returns the fabric of the PEs.
    #[must_use]
    pub fn fabric(&self) -> Fabric {
        self.fabric
    }

    /// Returns how many PEs can each have a processor to themselves, whatever the quota.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.of_all.processors()
    }

    /// Returns the identity of this machine and library. Wisdom with the same identity may be used.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        self.identity.get_or_find(|| {
            let machine = self.of_all.machine_key();
            Identity::new(&(machine + &self.fabric.suffix()), self)
        })
    }

    /// Returns the PEs' capabilities in a call. A PE has one message buffer, for blocking calls
    /// only.
    pub(crate) fn capabilities(&self, call: &CallSpec) -> Capabilities {
        let capabilities = self.capabilities_of(call.pes);
        let buffer_bytes = if call.nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    fn capabilities_of(&self, pes: u32) -> Capabilities {
        match self.nodes(pes) {
            None => {
                let (nodes, levels) = self.caches(pes);
                Capabilities { nodes, levels, ..Job::capabilities_of(pes) }
            }
            Some(nodes) => {
                let vendor =
                    Vendor { team: self.vendor && nodes == Nodes::Blocks(1), leaders: self.vendor };
                Capabilities { vendor, ..Job::capabilities_between(pes, nodes) }
            }
        }
    }

    /// Returns the placement on last-level caches of PEs that share memory, and the groups of
    /// caches: NUMA nodes and packages.
    fn caches(&self, pes: u32) -> (Nodes, Levels) {
        let mut caches = self.caches.lock();
        if let Some((_, known)) = caches.iter().find(|(of, _)| *of == pes) {
            return *known;
        }
        let found = Levels::of(&self.of_all.levels_of(pes as usize));
        caches.push((pes, found));
        found
    }

    /// Returns the model of `pes` PEs.
    fn model(&self, pes: u32) -> MachineModel {
        match (self.nodes(pes), self.caches(pes)) {
            (Some(nodes), _) => self.model.clone().between(nodes),
            (None, (Nodes::One, _)) => self.model.clone(),
            (None, (caches, levels)) => self.model.clone().between_caches(caches, levels),
        }
    }

    /// Returns the time to copy private buffers of processes before peers can access the data.
    fn staging_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let exposes = || {
            let call = CallSpec::from(query);
            let alone = Capabilities { exposes: false, ..self.capabilities(&call) };
            !self.can_serve(&Setting::of(call, alone), candidate)
        };
        if self.fabric != Fabric::Processes || query.symmetric || !exposes() {
            return 0.0;
        }
        STAGING_NS + query.bytes as f64 / self.model.copy_gbps
    }

    fn can_serve(&self, setting: &Setting, candidate: &Candidate) -> bool {
        match self.own(setting.call.collective, &candidate.algorithm) {
            Some(own) => own.serves(setting, candidate),
            None => serves(setting, candidate),
        }
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Catalog for Algorithms {
    fn candidates(&self, query: &Query) -> Vec<Candidate> {
        let capabilities = self.capabilities_of(query.pes);
        let setting = Setting::of(query, capabilities);
        let own = self.own.iter().filter(|(collective, _)| *collective == query.collective);
        let own = own.flat_map(|(_, one)| {
            let all = of_values(&one.description).into_iter();
            all.filter(|candidate| one.serves(&setting, candidate))
        });
        candidates(query, capabilities).into_iter().chain(own).collect()
    }

    fn estimate_ns(&self, query: &Query, candidate: &Candidate) -> f64 {
        let own = self.own(query.collective, &candidate.algorithm).map(|own| own.cost_ns);
        let cost_ns = own.unwrap_or(estimate_ns)(query, candidate, &self.model(query.pes));
        let is_between = self.nodes(query.pes).is_some();
        if is_between { cost_ns } else { cost_ns + self.staging_ns(query, candidate) }
    }

    fn serves(&self, call: &CallSpec, candidate: &Candidate) -> bool {
        self.can_serve(&Setting::of(*call, self.capabilities(call)), candidate)
    }

    fn revisions(&self) -> Revisions {
        let own = self.own.iter().map(|&(collective, one)| (collective, one.description));
        own.fold(Revisions::of(revisions()), |all, (collective, one)| {
            all.and(collective, one.name, one.revision)
        })
    }

    fn fingerprint(&self, query: &Query, candidate: &Candidate) -> Option<u64> {
        let call = CallSpec::from(query);
        fingerprint(&call, candidate, self.capabilities(&call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{MachineShape, ProcessShape};

    /// The wisdom of worlds also serves teams with the same placement on the processes.
    #[test]
    fn team_with_another_layout_is_recognized() {
        let world = Algorithms::of(Fabric::Mpi(ProcessShape { pes_each: 2, in_turn: false }));
        assert!(!world.on(Nodes::Blocks(2), 4).is_of_part());
        assert!(!world.on(Nodes::One, 2).is_of_part(), "both PEs of a process");
        for nodes in [Nodes::Blocks(1), Nodes::InTurn(2)] {
            assert!(world.on(nodes, 4).is_of_part(), "{nodes:?}");
        }
        assert!(!Algorithms::here().on(Nodes::One, 4).is_of_part());
        assert_ne!(world.identity(), Algorithms::of(Fabric::Mpi(ProcessShape::SINGLE)).identity());
    }

    /// Four PEs on two machines with two processes of one PE each: an algorithm of two levels sees
    /// the same nodes as with two processes of two PEs. The wisdom is separate.
    #[test]
    fn machines_are_nodes() {
        let of = |in_turn| {
            let process = ProcessShape { pes_each: 1, in_turn };
            Algorithms::of(Fabric::Mixed(MachineShape { processes: Some(2), process }))
        };
        let process = Algorithms::of(Fabric::Mpi(ProcessShape { pes_each: 2, in_turn: false }));
        assert_eq!(of(false).nodes(4), process.nodes(4));
        assert_eq!(of(true).nodes(4), Some(Nodes::InTurn(2)));
        assert!(!of(true).on(Nodes::InTurn(2), 4).is_of_part());
        assert!(of(true).on(Nodes::Blocks(2), 4).is_of_part());
        let identities = [of(false), of(true), process].map(|one| one.identity().machine.clone());
        assert!(identities[0] != identities[1] && identities[0] != identities[2]);
    }
}
