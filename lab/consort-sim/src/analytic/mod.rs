//! Models in closed form, for any parameters. Simulations are compared with them.
//!
//! 1. `scc`: broadcasts on a mesh of cores with message buffers, the Intel SCC (Petrović 2015);
//! 2. `loggp`: collectives on a cluster (Alexandrov et al. 1995).

pub mod loggp;
pub mod scc;
