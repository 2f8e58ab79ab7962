//! Broadcast in two levels, inside nodes and between them; see [`two_level`].
//!
//! A representative of each node communicates with the others (Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.1), like the coordinators of clusters in MagPIe (Kielmann et al. 1999).

use consort_fabric::Collective;

use crate::compose::two_level::{self, Levels, NoPart};

pub type TwoLevel = two_level::TwoLevel<Parts>;

/// The parts.
#[derive(Hash)]
pub struct Parts;

impl Levels for Parts {
    const PARTS: [Option<Collective>; 3] =
        [None, Some(Collective::Broadcast), Some(Collective::Broadcast)];
    type Up = NoPart;
    type Across = super::Any;
    type Down = super::Any;
}
