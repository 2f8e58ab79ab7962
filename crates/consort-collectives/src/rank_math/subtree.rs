//! Blocks of a whole subtree in one message, for scatter and gather over k-nomial trees.
//!
//! A subtree of a k-nomial tree is a range of nodes, which are ranks relative to the root. (The
//! trees are those of Nishtala and Yelick 2009, section 2.2; Barnett et al. 1994 scatter along the
//! binomial tree.) So its blocks are contiguous, or in two parts if ranks wrap around.

use std::ops::Range;

use consort_fabric::{CallSpec, MachineModel, Place, Query, Rank, Span, SyncModes};

use super::tree::Shape;
use crate::Setting;

/// A PE's subtree of a k-nomial tree, and its neighbours in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subtree {
    /// The nodes of the subtree; the first one is this PE's.
    pub nodes: Range<u32>,
    /// The parent, and this PE's index among its children; `None` at the root.
    pub parent: Option<(Rank, u32)>,
    /// The children and their subtrees, the smallest first.
    pub children: Vec<(Rank, Range<u32>)>,
}

impl Subtree {
    /// Returns the subtree of `rank` in the flat or k-nomial tree of `pes` PEs rooted at `root`.
    ///
    /// # Panics
    /// If subtrees of this shape are not ranges of nodes.
    #[must_use]
    pub fn of(rank: Rank, root: Rank, pes: u32, shape: Shape) -> Self {
        let radix = match shape {
            Shape::Flat => pes.max(2),
            Shape::Knomial(radix) => radix,
            Shape::Kary(_) => panic!("subtrees of k-ary trees are not ranges of nodes"),
        };
        let node = shape.node(rank, root, pes);
        let relative = |rank: Rank| (rank.0 + pes - root.0) % pes;
        let mut children: Vec<(Rank, Range<u32>)> = Vec::new();
        let mut end = end(relative(rank), pes, radix);
        let nodes = relative(rank)..end;
        for &child in node.children.iter().rev() {
            children.push((child, relative(child)..end));
            end = relative(child);
        }
        children.reverse();
        Self { nodes, parent: node.parent, children }
    }

    /// Returns the spans of the blocks of some nodes. Blocks are in node order in scratch memory,
    /// and in rank order in the root's buffer.
    #[must_use]
    pub fn blocks(&self, setting: &Setting, nodes: Range<u32>, place: Place) -> Vec<Span> {
        let Setting { call: CallSpec { root, pes, bytes, .. }, .. } = *setting;
        // Both ends of a message divide it where the ranks wrap around.
        let wrap = (pes - root.0).clamp(nodes.start, nodes.end);
        let part = |Range { start, end }: Range<u32>| {
            let first = match place {
                Place::Accumulator => start - self.nodes.start,
                _ => root.plus(start as usize, pes as usize).0,
            };
            Span { place, at: first as usize * bytes, bytes: (end - start) as usize * bytes }
        };
        let parts = [nodes.start..wrap, wrap..nodes.end].into_iter();
        parts.filter(|nodes| !nodes.is_empty()).map(part).collect()
    }
}

fn end(node: u32, pes: u32, radix: u32) -> u32 {
    if node == 0 || radix == 1 {
        return pes;
    }
    let mut power = 1;
    while (node / power).is_multiple_of(radix) {
        power *= radix;
    }
    pes.min(node.saturating_add(power))
}

/// Returns the size of the largest subtree other than the whole tree.
#[must_use]
pub fn largest(pes: u32, shape: Shape) -> u32 {
    let children = Subtree::of(Rank(0), Rank(0), pes, shape).children;
    children.iter().map(|(_, nodes)| nodes.end - nodes.start).max().unwrap_or(0)
}

/// Returns the model's estimate for a scatter down a tree or a gather up a tree, in nanoseconds.
#[must_use]
pub fn cost_ns(shape: Shape, query: &Query, model: &MachineModel) -> f64 {
    let bytes = query.bytes as f64;
    let (fan, depth) = (f64::from(shape.fan(query.pes)), f64::from(shape.depth(query.pes)));
    let lines_ns = |blocks: f64| model.lines_ns(blocks * bytes);
    let others = f64::from(query.pes) - 1.0;
    let pass = lines_ns(others) + fan * model.overhead_ns;
    let hops = model.hops_ns(depth, query.pes);
    // Each level forwards the remaining blocks, which become fewer and fewer.
    let largest = f64::from(largest(query.pes, shape));
    let inner =
        if largest > 1.0 { lines_ns(largest) + largest * bytes / model.copy_gbps } else { 0.0 };
    if model.is_shared(query.pes) {
        let moved = depth * others / f64::from(model.cores.max(1));
        return hops + lines_ns(moved);
    }
    if query.sync == SyncModes::LOOSE {
        return model.streamed_ns(bytes * largest.max(1.0)).max(pass + inner);
    }
    hops + pass + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtree_is_its_root_and_the_child_subtrees() {
        let radices = [1, 2, 3, 4, 8, 100].map(Shape::Knomial);
        for shape in radices.into_iter().chain([Shape::Flat]) {
            for pes in (1..40).chain([64, 100]) {
                for root in [0, pes / 2, pes - 1].map(Rank) {
                    for rank in (0..pes).map(Rank) {
                        let Subtree { nodes, parent, children } =
                            Subtree::of(rank, root, pes, shape);
                        assert_eq!(root.plus(nodes.start as usize, pes as usize), rank);
                        let mut next = nodes.start + 1;
                        for (child, of_child) in children {
                            assert_eq!(of_child.start, next);
                            assert_eq!(Subtree::of(child, root, pes, shape).nodes, of_child);
                            assert!(of_child.end - of_child.start <= largest(pes, shape));
                            next = of_child.end;
                        }
                        assert_eq!(next, nodes.end);
                        assert_eq!(parent.is_none(), rank == root);
                    }
                }
            }
        }
    }
}
