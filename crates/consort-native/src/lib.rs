//! The threads fabric: cache lines, waiting, topology and affinity of this machine.
