//! All-to-all in two levels, inside nodes and between them; see [`two_level`].
//!
//! A representative of each node communicates with the others (Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.1), like the coordinators of clusters in MagPIe (Kielmann et al. 1999). The
//! leader of a node sends the blocks of all its PEs for all PEs of another node as one block.

use consort_fabric::Collective;

use crate::compose::two_level::{self, Levels};

pub type TwoLevel = two_level::TwoLevel<Parts>;

/// The parts.
#[derive(Hash)]
pub struct Parts;

impl Levels for Parts {
    const PARTS: [Option<Collective>; 3] =
        [Some(Collective::Gather), Some(Collective::AllToAll), Some(Collective::Scatter)];
    type Up = crate::gather::Any;
    type Across = super::Any;
    type Down = crate::scatter::Any;
}
