//! Clusters: nodes on a network, with the costs of the LogGP model.
//!
//! Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: incorporating long messages into the LogP
//! model" (1995): latency, overhead, gap between messages, gap between bytes. Beyond the model,
//! each hop after the first adds to the latency, and PEs of a node exchange messages through its
//! memory.

use consort_fabric::{Levels, Nodes};
use serde::{Deserialize, Serialize};

use super::{
    Described,
    reading::{self, Flaw, ensure, product},
};

/// Nodes on a network, in the LogGP model.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The number of nodes.
    #[serde(deserialize_with = "reading::count")]
    pub nodes: u32,
    /// The number of PEs in a node.
    #[serde(deserialize_with = "reading::count")]
    pub pes_per_node: u32,
    /// `L`: the latency between nodes a single hop apart.
    #[serde(deserialize_with = "reading::positive")]
    pub latency_ns: f64,
    /// `o`: how long a message occupies the sending PE, and the receiving PE.
    #[serde(deserialize_with = "reading::not_negative")]
    pub overhead_ns: f64,
    /// How long a call of a collective occupies its PE in addition to its messages. Nothing by
    /// default.
    #[serde(default, deserialize_with = "reading::not_negative")]
    pub call_ns: f64,
    /// The number of network interfaces of a node. Its PEs share them evenly.
    #[serde(deserialize_with = "reading::count")]
    pub interfaces_per_node: u32,
    /// How PEs are placed on nodes.
    #[serde(default)]
    pub placement: Placement,
    /// `g`: the gap between two messages of an interface.
    #[serde(deserialize_with = "reading::not_negative")]
    pub gap_ns: f64,
    /// `G`: the time of each byte of a message after the first.
    #[serde(deserialize_with = "reading::positive")]
    pub gap_per_byte_ns: f64,
    /// The additional latency of each hop after the first.
    #[serde(deserialize_with = "reading::not_negative")]
    pub hop_ns: f64,
    /// How the nodes are connected.
    pub network: Network,
    /// Messages between PEs of a node.
    pub inside: Inside,
    /// The computing rates of its processors, if known.
    #[serde(default)]
    pub compute: Option<Compute>,
}

/// The computing rates of the processors of a node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// The peak rate of a node, in 10^9 operations on doubles per second.
    #[serde(deserialize_with = "reading::positive")]
    pub node_gflops: f64,
    /// The time of an addition of doubles that needs the result of the previous one, if known.
    #[serde(default, deserialize_with = "reading::optional")]
    pub dependent_add_ns: Option<f64>,
}

/// How PEs are placed on the nodes of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Consecutive PEs are on the same node.
    #[default]
    Blocks,
    /// PEs are placed on all nodes in turn.
    InTurn,
}

/// How the nodes of a cluster are connected.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Network {
    /// Levels of switches. A hop is a switch.
    FatTree {
        /// The number of nodes below a switch of the lowest level, and of switches below a switch
        /// of each other level.
        #[serde(deserialize_with = "reading::count")]
        arity: u32,
    },
    /// A grid whose ends are joined. A hop is a link.
    Torus {
        /// The number of nodes along each dimension. Neighbours along the first have consecutive
        /// numbers.
        sides: Vec<u32>,
    },
}

/// Messages between PEs of a node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The one-way time to transfer a line.
    #[serde(deserialize_with = "reading::positive")]
    pub transfer_ns: f64,
    /// How long a message occupies each of the two PEs.
    #[serde(deserialize_with = "reading::not_negative")]
    pub overhead_ns: f64,
    /// The bandwidth of copying a message, in bytes per nanosecond.
    #[serde(deserialize_with = "reading::positive")]
    pub copy_gbps: f64,
    /// Groups of PEs that are nearer to each other, such as those of a cache, from the smallest.
    #[serde(default, rename = "group")]
    pub groups: Vec<Group>,
}

/// The division of a node's PEs into groups, which are nearer to each other.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The number of PEs in a group, at consecutive places of their node.
    #[serde(deserialize_with = "reading::count")]
    pub pes: u32,
    /// The one-way time to transfer a line within a group.
    #[serde(deserialize_with = "reading::positive")]
    pub transfer_ns: f64,
}

impl Inside {
    /// Returns the one-way time to transfer a line between PEs at two places of a node.
    pub fn transfer_between_ns(&self, a: u32, b: u32) -> f64 {
        let group = self.groups.iter().find(|group| a / group.pes == b / group.pes);
        group.map_or(self.transfer_ns, |group| group.transfer_ns)
    }
}

impl Described for Cluster {
    fn complete(self) -> Result<Self, Flaw> {
        product("nodes", &[self.nodes, self.pes_per_node])?;
        let most = self.pes_per_node;
        let message = format!("expected at most {most}, one for each PE");
        ensure(self.interfaces_per_node <= most, "interfaces_per_node", message)?;
        let sizes = self.inside.groups.iter().map(|group| group.pes).chain([self.pes_per_node]);
        let sizes: Vec<u32> = sizes.collect();
        let are_nested =
            sizes.windows(2).all(|pair| pair[0] < pair[1] && pair[1].is_multiple_of(pair[0]));
        let message = "expected at most 3 groups, each a part of the next, the last of a node";
        ensure(are_nested && sizes.len() <= 4, "inside.group", message)?;
        match &self.network {
            Network::FatTree { arity } => {
                let message = "expected 2 or more nodes below a switch, found 1";
                ensure(*arity >= 2, "network.fat-tree.arity", message)?;
            }
            Network::Torus { sides } => {
                let nodes = product("network.torus.sides", sides)?;
                let message = format!("expected sides of {} nodes, found {nodes}", self.nodes);
                ensure(nodes == self.nodes, "network.torus.sides", message)?;
            }
        }
        Ok(self)
    }
}

impl Cluster {
    /// Returns the number of PEs.
    pub fn pes(&self) -> u32 {
        self.nodes * self.pes_per_node
    }

    /// Returns the placement of the PEs on nodes.
    pub fn placed(&self) -> Nodes {
        match self.placement {
            Placement::Blocks => Nodes::Blocks(self.pes_per_node),
            Placement::InTurn => Nodes::InTurn(self.nodes),
        }
    }

    /// Returns the levels besides the nodes: the groups of PEs inside, and in a fat tree the nodes
    /// below one switch.
    pub fn levels(&self) -> Levels {
        let mut around = [Nodes::One; 3];
        if let Network::FatTree { arity } = self.network {
            let below = std::iter::successors(Some(arity), |below| below.checked_mul(arity));
            for (level, _) in around.iter_mut().zip(below.take_while(|&below| below < self.nodes)) {
                *level = Nodes::Blocks(arity);
            }
        }
        let mut inside = [Nodes::One; 3];
        for (level, group) in inside.iter_mut().zip(self.inside.groups.iter().rev()) {
            *level = Nodes::Blocks(group.pes);
        }
        Levels { inside, around }
    }

    /// Returns the node of a PE.
    pub fn node(&self, pe: u32) -> u32 {
        self.placed().node(pe)
    }

    /// Returns the index of a PE's network interface, among all interfaces.
    pub fn interface(&self, pe: u32) -> u32 {
        let place = self.placed().place(pe);
        let own = place * self.interfaces_per_node / self.pes_per_node;
        self.node(pe) * self.interfaces_per_node + own
    }

    /// Returns the number of hops between two nodes, which is 0 from a node to itself.
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        match &self.network {
            _ if a == b => 0,
            Network::FatTree { arity } => {
                let (mut a, mut b, mut levels) = (a / arity, b / arity, 1);
                while a != b {
                    (a, b, levels) = (a / arity, b / arity, levels + 1);
                }
                2 * levels - 1
            }
            Network::Torus { sides } => {
                let (mut a, mut b, mut hops) = (a, b, 0);
                for side in sides {
                    let apart = (a % side).abs_diff(b % side);
                    hops += apart.min(side - apart);
                    (a, b) = (a / side, b / side);
                }
                hops
            }
        }
    }

    /// Returns the latency between two nodes in nanoseconds, which is 0 from a node to itself.
    pub fn latency_between_ns(&self, a: u32, b: u32) -> f64 {
        match self.hops(a, b) {
            0 => 0.0,
            hops => self.latency_ns + f64::from(hops - 1) * self.hop_ns,
        }
    }
}
