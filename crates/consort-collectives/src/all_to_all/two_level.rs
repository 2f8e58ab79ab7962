//! All-to-all in two levels: inside nodes, and between them; see [`two_level`].
//!
//! Kielmann, Hofman, Bal, Plaat and Bhoedjang, "MagPIe" (PPoPP 1999), for the levels: the leader of
//! a node sends the blocks of all its PEs for all PEs of another node in one message.

use consort_fabric::Collective;

use crate::compose::two_level::{self, Levels};

pub type TwoLevel = two_level::TwoLevel<Parts>;

/// The parts.
#[derive(Debug)]
pub struct Parts;

impl Levels for Parts {
    const PARTS: [Option<Collective>; 3] =
        [Some(Collective::Gather), Some(Collective::AllToAll), Some(Collective::Scatter)];
    type Up = crate::gather::Any;
    type Across = super::Any;
    type Down = crate::scatter::Any;
}
