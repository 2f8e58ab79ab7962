//! The tree of a call: along it, data spread from the root, or was combined towards the root, or
//! PEs learned that PE 0 had entered a barrier.
//!
//! It is derived from the trace. In a broadcast, a PE's parent is the PE from which it first
//! received data. In a reduction, it is the PE to which it last sent data. In a barrier, it is the
//! PE whose signal first implied that PE 0 had entered, directly or through earlier signals.

use std::collections::HashMap;

use consort::tune::Collective;
use consort_sim::{Step, Trace};

/// A message of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The time when it was sent.
    pub from_ps: u64,
    /// The time when it arrived.
    pub to_ps: u64,
}

/// The position of a PE when the tree is drawn from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The PE.
    pub rank: u32,
    /// The root has depth 0.
    pub depth: usize,
    /// The row: leaves have consecutive rows, and other nodes are in the middle of their children.
    pub row: f64,
    /// Whether it has no children.
    pub is_leaf: bool,
    /// The message from or to its parent.
    pub edge: Option<Edge>,
}

/// Returns the messages of the tree, by the PE that is not the parent.
fn edges(what: Collective, trace: &Trace, pes: u32, root: u32) -> Vec<Option<Edge>> {
    let mut messages: Vec<(Edge, &Step)> =
        trace.steps().iter().filter_map(|step| Some((message(step)?, step))).collect();
    messages.sort_by_key(|(edge, _)| edge.to_ps);
    if what != Collective::Barrier {
        messages.retain(|(_, step)| step.bytes > 0 && !is_word(step));
    }
    let mut edges = vec![None; pes as usize];
    let mut known = vec![None; pes as usize];
    if [Collective::Reduce, Collective::Gather].contains(&what) {
        known[root as usize] = Some(u64::MAX);
        for (edge, _) in messages.into_iter().rev() {
            if known[edge.to as usize].is_some() && known[edge.from as usize].is_none() {
                known[edge.from as usize] = Some(edge.from_ps);
                edges[edge.from as usize] = Some(edge);
            }
        }
        return edges;
    }
    known[root as usize] = Some(0);
    // The first informed PE that changed each counter. Later readers of the counter learn from it.
    let mut counters: HashMap<u32, Edge> = HashMap::new();
    for (edge, step) in messages {
        let knows = |pe: u32| known[pe as usize].is_some_and(|since| since <= edge.from_ps);
        let (informed, edge) = if is_word(step) {
            if knows(edge.from) {
                counters.entry(edge.to).or_insert(edge);
            }
            let first = counters.get(&edge.to).copied();
            (edge.from, first.map(|first| Edge { to: edge.from, to_ps: edge.to_ps, ..first }))
        } else {
            // A PE that sends data has it. The receiver's step does not contain the time at which
            // sending started.
            (edge.to, (knows(edge.from) || step.what == "receive").then_some(edge))
        };
        if let (Some(edge), None) = (edge, known[informed as usize]) {
            known[informed as usize] = Some(edge.to_ps);
            edges[informed as usize] = Some(edge);
        }
    }
    edges
}

/// Returns whether a step is an operation on a word that several PEs change.
fn is_word(step: &Step) -> bool {
    matches!(step.what, "count" | "atomic")
}

/// Returns the message of a step, if it has one. A message is counted at its receiver, not at its
/// sender.
fn message(step: &Step) -> Option<Edge> {
    let (me, peer) = (step.pe, step.peer?);
    let (from, to) = match step.what {
        "receive" | "get" | "get and combine" => (peer, me),
        "send" | "credit" => return None,
        _ => (me, peer),
    };
    (from != to || is_word(step)).then_some(Edge {
        from,
        to,
        from_ps: step.from_ps,
        to_ps: step.to_ps,
    })
}

/// Returns the tree, with each PE after its parent. PEs without a parent are additional roots.
pub fn tree(what: Collective, trace: &Trace, pes: u32, root: u32) -> Vec<Node> {
    let mut edges = edges(what, trace, pes, root);
    for edge in edges.iter_mut().flatten() {
        // A receiver's step starts with waiting. The message was sent when its sender's step
        // started.
        let sent = trace.steps().iter().rev().find(|step| {
            let pair = (step.pe, step.peer) == (edge.from, Some(edge.to));
            step.what == "send" && pair && step.from_ps < edge.to_ps
        });
        edge.from_ps = sent.map_or(edge.from_ps, |step| step.from_ps);
    }
    let mut children = vec![Vec::new(); pes as usize];
    let mut roots = vec![root];
    for rank in (0..pes).filter(|&rank| rank != root) {
        match &edges[rank as usize] {
            None => roots.push(rank),
            Some(edge) if edge.to == rank => children[edge.from as usize].push(rank),
            Some(edge) => children[edge.to as usize].push(rank),
        }
    }
    for children in &mut children {
        children.sort_by_key(|&rank| edges[rank as usize].map(|edge| edge.to_ps));
    }
    let mut layout = Layout { edges, children, rows: 0.0, nodes: Vec::new() };
    for root in roots {
        layout.place(root, 0);
    }
    layout.nodes
}

struct Layout {
    edges: Vec<Option<Edge>>,
    children: Vec<Vec<u32>>,
    /// The rows used so far.
    rows: f64,
    nodes: Vec<Node>,
}

impl Layout {
    /// Places a PE and its subtree, and returns the PE's row.
    fn place(&mut self, rank: u32, depth: usize) -> f64 {
        let children = std::mem::take(&mut self.children[rank as usize]);
        let at = self.nodes.len();
        let edge = self.edges[rank as usize];
        self.nodes.push(Node { rank, depth, row: self.rows, is_leaf: children.is_empty(), edge });
        let rows: Vec<f64> = children.iter().map(|&child| self.place(child, depth + 1)).collect();
        match rows[..] {
            [] => self.rows += 1.0,
            [first, ..] => self.nodes[at].row = f64::midpoint(first, rows[rows.len() - 1]),
        }
        self.nodes[at].row
    }
}

#[cfg(test)]
mod tests {
    use consort::{Rank, sync_modes::SyncModes};
    use consort_sim::{Simulation, machines::Machine};

    use super::super::program::Program;
    use super::*;
    use consort_bench::query_json::sums;

    /// Returns the parent of each PE but the root, from a trace on the SCC.
    fn parents(collective: Collective, candidate: &str, pes: u32, root: u32) -> Vec<(u32, u32)> {
        let is_barrier = collective == Collective::Barrier;
        let (sync, bytes) = if is_barrier { (SyncModes::STRICT, 0) } else { (SyncModes::MINE, 64) };
        let query = sums(collective, sync, pes, bytes, false);
        let once = Program::once(query, &candidate.parse().unwrap());
        let program = Program { root: Rank(root), ..once };
        let simulation = Simulation::on(Machine::find("scc").unwrap(), pes).traced();
        let trace = program.simulate_on(&simulation).unwrap().outcome.trace;
        let nodes = tree(collective, &trace, pes, root);
        assert_eq!(nodes.len(), pes as usize);
        assert_eq!(nodes[0].rank, root);
        let parent = |node: &Node| {
            let edge = node.edge?;
            assert!(edge.from_ps < edge.to_ps, "{edge:?}");
            Some((node.rank, if edge.to == node.rank { edge.from } else { edge.to }))
        };
        let mut parents: Vec<(u32, u32)> = nodes.iter().filter_map(parent).collect();
        parents.sort_unstable();
        parents
    }

    #[test]
    fn data_spread_down_the_tree_of_oc_bcast() {
        let kary = [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 2)];
        let candidate = "oc_bcast(k=3,chunk_bytes=32)";
        assert_eq!(parents(Collective::Broadcast, candidate, 8, 0), kary);
        let turned = parents(Collective::Broadcast, candidate, 8, 5);
        let expected: Vec<(u32, u32)> =
            kary.iter().map(|(pe, parent)| ((pe + 5) % 8, (parent + 5) % 8)).collect();
        assert!(turned.iter().all(|edge| expected.contains(edge)), "{turned:?}");
    }

    #[test]
    fn contributions_move_up_the_tree() {
        let binomial = [(1, 0), (2, 0), (3, 2), (4, 0), (5, 4), (6, 4), (7, 6)];
        assert_eq!(parents(Collective::Reduce, "knomial(radix=2)", 8, 0), binomial);
    }

    #[test]
    fn barrier_arrival_spreads_from_informed_pes() {
        let rounds = [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1), (6, 2), (7, 3)];
        assert_eq!(parents(Collective::Barrier, "dissemination(radix=2)", 8, 0), rounds);
        assert_eq!(parents(Collective::Barrier, "central", 8, 0).len(), 7);
    }

    #[test]
    fn each_leaf_has_its_row() {
        let mut layout = Layout {
            edges: vec![None; 4],
            children: vec![vec![1, 2], vec![], vec![3], vec![]],
            rows: 0.0,
            nodes: Vec::new(),
        };
        layout.place(0, 0);
        let places: Vec<(u32, usize, f64)> =
            layout.nodes.iter().map(|node| (node.rank, node.depth, node.row)).collect();
        assert_eq!(places, [(0, 0, 0.5), (1, 1, 0.0), (2, 1, 1.0), (3, 2, 1.0)]);
    }
}
