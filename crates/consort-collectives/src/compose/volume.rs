//! The amount of data that moves on each of two levels, and the order of its blocks.

use consort_fabric::{Collective, Nodes};

/// The amount of data that each part moves, in blocks of the call.
#[derive(Clone, Copy, Hash)]
pub(super) struct Volume {
    /// The size of one block in each part.
    pub(super) blocks: [usize; 3],
    /// The data that a leader has gathered before its part across.
    pub(super) gathered: usize,
    /// The data that a leader scatters down; 0 if it broadcasts.
    pub(super) scattered: usize,
    /// The number of gathered rows, each with one block per PE, that leaders reorder before the
    /// part across; 0 if they reorder nothing.
    pub(super) rows: usize,
    /// The number of columns, each with one block from every PE, that leaders turn into rows after
    /// the part across; 0 if they reorder nothing.
    pub(super) columns: usize,
}

impl Volume {
    /// Returns the volume of a collective that consists of these parts.
    pub(super) fn new(
        parts: [Option<Collective>; 3],
        collective: Collective,
        pes: u32,
        nodes: Nodes,
    ) -> Self {
        let (count, members) = (nodes.count(pes), nodes.members(0, pes).count);
        let [up, across, down] = parts;
        let given = collective.source_blocks(pes, up.is_none()) as usize;
        let gathered = given * up.map_or(1, |up| up.target_blocks(members, true)) as usize;
        let [sent, received] = across.map_or([0; 2], |across| {
            [across.source_blocks(count, true), across.target_blocks(count, true)]
        });
        let block = gathered / sent.max(1) as usize;
        let lowered = collective.target_blocks(pes, false) as usize;
        let scatters = down == Some(Collective::Scatter);
        // The blocks of a node are adjacent if its ranks are, and if there is one block per rank.
        let reorders =
            |blocks| if blocks > 1 || matches!(nodes, Nodes::InTurn(_)) { blocks } else { 0 };
        Self {
            blocks: [given, block, lowered],
            gathered,
            scattered: if scatters { lowered * members as usize } else { 0 },
            rows: if sent > 1 { reorders(gathered / pes as usize) } else { 0 },
            columns: if received > 1 { reorders(block / members as usize) } else { 0 },
        }
    }

    /// Returns the number of blocks that leaders copy to reorder them.
    pub(super) const fn reordered(&self, pes: u32) -> usize {
        (self.rows + self.columns) * pes as usize
    }
}

/// Returns the order in which blocks go across: node by node, and row by row within a node.
/// `order[k]` is the index of the `k`th block in rows in rank order, where `run` blocks that stay
/// together count as one.
pub(super) fn by_node(nodes: Nodes, pes: u32, rows: u32, run: u32) -> Vec<u32> {
    let of_node = |node| {
        let members = nodes.members(node, pes);
        let of_row = move |row| {
            let firsts = (0..members.count).step_by(run as usize);
            firsts.map(move |place| (row * pes + members.rank(place)) / run)
        };
        (0..rows).flat_map(of_row)
    };
    (0..nodes.count(pes)).flat_map(of_node).collect()
}

/// Returns the final order of the blocks that have come across: row by row, and by rank within a
/// row. `order[k]` is the index of the `k`th block in order of arrival: node by node, PE by PE, one
/// block of each row.
pub(super) fn by_rank(nodes: Nodes, pes: u32, rows: u32) -> Vec<u32> {
    let members = nodes.members(0, pes).count;
    let index = move |pe| nodes.node(pe) * members + nodes.place(pe);
    (0..rows).flat_map(|row| (0..pes).map(move |pe| index(pe) * rows + row)).collect()
}
