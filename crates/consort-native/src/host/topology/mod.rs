//! What this machine is made of, and how much of it this process may use.
//!
//! Processors, cores, packages, NUMA nodes and caches are read from Linux's `/sys`, the
//! processor's name from `/proc/cpuinfo`, and the limits from the affinity mask and the cgroups'
//! quotas. Whatever is missing gets the plainest value: a processor that tells nothing of itself
//! is one core of package 0. Elsewhere than on Linux only the number of processors is known.
//!
//! [`Topology::from_root`] reads the same files under another root: a copy of another machine's,
//! or a test's.

mod machine;
mod placement;
mod processors;
mod quota;
mod sysfs;
#[cfg(test)]
mod tests;

pub use machine::Topology;
pub use processors::{Cache, CacheKind, Cpu};
