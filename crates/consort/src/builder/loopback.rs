//! PEs of this process that act as those of several processes.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use consort_fabric::Nodes;
use consort_native::{Config, FileLocation, Job, Loopback, SharedFile};

use super::ground::Ground;
use crate::{
    Error, Result,
    error::LaunchError,
    fabric::{Fabric, ProcessShape},
    tune::Algorithms,
};

/// The parts of one process.
pub(super) struct End {
    transport: Loopback,
    forms: [Nodes; 2],
    ground: Ground,
}

impl End {
    /// Creates the ends of all processes. The first form places the PEs on processes, the second on
    /// nodes.
    pub(super) fn all(pes: u32, forms: [Nodes; 2], seed: u64) -> Result<Vec<Self>> {
        let [processes, nodes] = forms;
        let count = processes.count(pes);
        let mut known: HashMap<u32, FileLocation> = HashMap::new();
        let ground = |process| {
            if nodes.count(pes) == count {
                return Ok(Ground::Own);
            }
            match known.entry(nodes.node(processes.members(process, pes).first)) {
                Entry::Occupied(at) => SharedFile::find(*at.get()).map(Ground::Finds),
                Entry::Vacant(place) => SharedFile::new().map(|file| {
                    place.insert(file.at());
                    Ground::Fills(file)
                }),
            }
        };
        let grounds: Result<Vec<Ground>, _> = (0..count).map(ground).collect();
        let grounds =
            grounds.map_err(|error| Error::Launch(LaunchError::Mpi(error.to_string())))?;
        let ends = Loopback::ends(count, seed).into_iter().zip(grounds);
        Ok(ends.map(|(transport, ground)| Self { transport, forms, ground }).collect())
    }

    pub(super) fn algorithms(&self, pes: u32) -> &'static Algorithms {
        let [_, nodes] = self.forms;
        match nodes.count(pes) {
            1 => Algorithms::of(Fabric::Processes),
            _ => {
                let algorithms = Algorithms::of(Fabric::Mpi(ProcessShape::SINGLE)).on(nodes, pes);
                algorithms.without_vendor()
            }
        }
    }

    pub(super) fn job(self, config: Config) -> Result<Arc<Job>> {
        let Self { transport, forms, ground } = self;
        let [_, nodes] = forms;
        let config = Config { nodes, ..config };
        let memory = ground.memory(config, None, || Ok(()))?;
        Ok(Job::linked(memory, Box::new(transport), forms)?)
    }
}
