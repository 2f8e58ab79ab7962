//! Reduce-scatter in two levels: inside nodes, and between them; see [`two_level`].
//!
//! Kielmann, Hofman, Bal, Plaat and Bhoedjang, "MagPIe" (PPoPP 1999): messages between nodes are
//! sent once, and PEs of a node exchange the rest.

use consort_fabric::Collective;

use crate::compose::two_level::{self, Levels};

pub type TwoLevel = two_level::TwoLevel<Parts>;

/// The parts.
#[derive(Debug)]
pub struct Parts;

impl Levels for Parts {
    const PARTS: [Option<Collective>; 3] =
        [Some(Collective::Reduce), Some(Collective::ReduceScatter), Some(Collective::Scatter)];
    type Up = crate::reduce::Any;
    type Across = super::Any;
    type Down = crate::scatter::Any;
}
