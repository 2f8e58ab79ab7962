//! All-to-all in two levels, inside nodes and between them; see [`two_level`].
//!
//! A representative of each node communicates with the others (Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.1), like the coordinators of clusters in MagPIe (Kielmann et al. 1999). The
//! representative of a node sends one large block to each other node. This block contains the
//! blocks that the PEs of its node send to the PEs of the other node.

use crate::compose::two_level;

pub type TwoLevel = two_level::TwoLevel<crate::gather::Any, super::Any, crate::scatter::Any>;
