//! How much moves on each of two levels, and in which order.

use consort_fabric::{Collective, Nodes};

/// How much each part moves, in blocks of the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    /// What is one block in each part.
    pub(super) blocks: [usize; 3],
    /// What a leader has before its part across.
    pub(super) raised: usize,
    /// What a leader scatters down; 0 if it broadcasts.
    pub(super) scattered: usize,
    /// Raised rows of a block for each PE, which leaders reorder; 0 if they reorder nothing.
    pub(super) rows: usize,
    /// Columns of a block from each PE that have come across, which leaders make rows; 0 if they
    /// reorder nothing.
    pub(super) columns: usize,
}

impl Volume {
    /// Of a collective that is made of such parts.
    pub(super) fn new(
        parts: [Option<Collective>; 3],
        collective: Collective,
        pes: u32,
        nodes: Nodes,
    ) -> Self {
        let (count, members) = (nodes.count(pes), nodes.members(0, pes).count);
        let [up, across, down] = parts;
        let given = collective.source_blocks(pes, up.is_none()) as usize;
        let raised = given * up.map_or(1, |up| up.target_blocks(members, true)) as usize;
        let [sent, received] = across.map_or([0; 2], |across| {
            [across.source_blocks(count, true), across.target_blocks(count, true)]
        });
        let block = raised / sent.max(1) as usize;
        let lowered = collective.target_blocks(pes, false) as usize;
        let scatters = down == Some(Collective::Scatter);
        // Blocks of a node follow each other if its ranks do, and there is one for each of them.
        let reorders =
            |blocks| if blocks > 1 || matches!(nodes, Nodes::InTurn(_)) { blocks } else { 0 };
        Self {
            blocks: [given, block, lowered],
            raised,
            scattered: if scatters { lowered * members as usize } else { 0 },
            rows: if sent > 1 { reorders(raised / pes as usize) } else { 0 },
            columns: if received > 1 { reorders(block / members as usize) } else { 0 },
        }
    }

    /// The blocks that leaders copy to reorder them.
    pub(super) const fn reordered(&self, pes: u32) -> usize {
        (self.rows + self.columns) * pes as usize
    }
}

/// The order in which blocks go across: node by node, in it row by row. `order[k]` is the index of
/// the `k`th in rows in the order of the ranks, where `run` blocks that stay together are one.
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

/// The order in which blocks that have come across are wanted: row by row, in it by rank.
/// `order[k]` is the index of the `k`th as they come: node by node, PE by PE, a block of each row.
pub(super) fn by_rank(nodes: Nodes, pes: u32, rows: u32) -> Vec<u32> {
    let members = nodes.members(0, pes).count;
    let index = move |pe| nodes.node(pe) * members + nodes.place(pe);
    (0..rows).flat_map(|row| (0..pes).map(move |pe| index(pe) * rows + row)).collect()
}
