//! The NUMA node on which a thread runs.

use std::path::Path;

use crate::{affinity, fork_safe::Found, topology::numa_nodes};

/// Returns the NUMA node of the processor on which the calling thread runs; 0 if it is unknown.
pub(super) fn current() -> u32 {
    /// The node of each processor; empty if there are not several nodes.
    static NODES: Found<Box<[u32]>> = Found::new();
    let nodes = NODES.get_or_find(|| several(numa_nodes(Path::new("/"))));
    if nodes.is_empty() {
        return 0;
    }
    let node = affinity::current().and_then(|cpu| nodes.get(cpu.0 as usize));
    node.copied().unwrap_or(0)
}

/// Returns the nodes if they are not all the same.
fn several(nodes: Vec<u32>) -> Box<[u32]> {
    let is_one = nodes.windows(2).all(|two| two[0] == two[1]);
    if is_one { Box::default() } else { nodes.into() }
}

#[cfg(all(test, target_os = "linux", not(any(miri, consort_portable))))]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn a_pinned_thread_has_the_node_of_its_processor() {
        for cpu in Topology::discover().cpus() {
            let pinned = std::thread::scope(|scope| {
                let pinned = || affinity::pin(cpu.id).ok().map(|()| current());
                scope.spawn(pinned).join().expect("no panic")
            });
            assert!(pinned.is_none_or(|node| node == cpu.node), "{cpu:?}: {pinned:?}");
        }
    }

    #[test]
    fn one_node_needs_no_table() {
        assert!(several(vec![0, 0, 0]).is_empty());
        assert_eq!(*several(vec![0, 1, 0]), [0, 1, 0]);
    }
}
