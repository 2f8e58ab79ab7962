//! The topology of this machine, and the part of it that this process may use.
//!
//! Processors, cores, packages, NUMA nodes and caches are read from Linux's `/sys`, the
//! processor's name from `/proc/cpuinfo`, and the limits from the affinity mask and the cgroups'
//! quotas. Missing information gets the simplest value: a processor without topology files is one
//! core of package 0. On systems other than Linux only the number of processors is known.
//!
//! [`Topology::from_root`] reads the same files under another root: a copy of another machine's
//! files, or those of a test.

mod machine;
mod placement;
mod quota;
mod sysfs;
#[cfg(test)]
mod tests;

pub use machine::Topology;
#[cfg(not(loom))]
pub(crate) use sysfs::numa_nodes;
pub use sysfs::{Cache, CacheKind, Cpu};
