//! The experiments behind figures and tables of papers.
//!
//! The claims H are those of Nishtala and Yelick, "Optimizing collective communication on
//! multicores" (HotPar 2009), whose machines had 8, 32 and 256 threads. The same experiment runs
//! here, natively, with the same kinds of trees. If it needs more PEs than this machine has cores,
//! PEs share cores. Its figures then mainly measure scheduling, and the page says so. The
//! experiment also runs on the paper's machines, simulated. The claims G and P are about networks.
//! Their experiments run here, where PEs share memory, except for G7 and G10, whose processes an
//! MPI starts. Some also run on the papers' networks, simulated.
//!
//! 1. `figure`: declares a figure of a paper; `quantity`: one with the values to compare;
//!    `experiment`: the settings and the outcome;
//! 2. `measure`: measures kinds of work in turn, all of them briefly, then the best of each group;
//! 3. `hotpar`: the paper's machines, simulated; `bars`: bars of text characters;
//! 4. `barrier`, `modes`, `crossover`, `flat`, `radix`: H1, H3, H4, H5, H6;
//! 5. `scc`: T2 to T5 and T7, of Petrović's thesis (2015) on the Intel SCC, simulated;
//! 6. `networks`: the machines of GASNet's collectives, simulated; `gasnet`, `transfers`,
//!    `dissemination`, `tuning` (with `look_up`), `applications` and `scaling`: G1, G4 and G7, G5,
//!    G6, G9, G10, of Nishtala et al. on GASNet's collectives (2011);
//! 7. `locks`: T8 to T15, of the same thesis on three machines, simulated, and F8, all locks of the
//!    library on two of them;
//! 8. `counting`: P3, P4 and P5, of Dinan et al. on counting puts (2014);
//! 9. `mixture`: F7, PEs as threads, processes, and a mix of both on many machines.

#[macro_use]
pub mod figure;

pub mod applications;
pub mod barrier;
mod bars;
pub mod counting;
pub mod crossover;
pub mod dissemination;
pub mod experiment;
pub mod flat;
pub mod gasnet;
pub mod hotpar;
pub mod locks;
mod look_up;
mod measure;
pub mod mixture;
pub mod modes;
pub mod networks;
pub mod quantity;
pub mod radix;
pub mod scaling;
pub mod scc;
pub mod transfers;
pub mod tuning;
