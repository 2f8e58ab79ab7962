//! Trees over the ranks of a team: flat, chain, k-nomial and k-ary.
//!
//! Nodes are *relative* ranks, counted from the root. In a k-nomial tree, write a node in base `k`.
//! Its parent has 0 in place of the lowest nonzero digit, and each child has a nonzero value in one
//! digit below that digit. So each subtree is a range of consecutive nodes, which allows a
//! reduction to combine in rank order. Radix 1 is the chain (Nishtala and Yelick 2009, section
//! 2.2).

use consort_fabric::Rank;

/// The shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// All other nodes are children of the root.
    Flat,
    /// k-nomial of this radix, at least 1.
    Knomial(u32),
    /// Node `i` has children `k i + 1 ..= k i + k`; `k` is at least 1.
    Kary(u32),
}

/// Parent and children of one PE, with the children in ascending order of their relative ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The parent, and this node's index among its children; `None` at the root.
    pub parent: Option<(Rank, u32)>,
    /// The children.
    pub children: Vec<Rank>,
}

/// The PEs that a PE notifies when data has arrived, if notifications take other routes than the
/// data.
///
/// A parent and its children, in their order, are the nodes of a binary tree: the parent notifies
/// the first two, and each child notifies two more. So the time until all `k` are notified grows
/// with `log2 k`, and not with `k` (Petrović 2015, section 3.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NotificationTree {
    /// Children of the same parent, to be notified of the parent's data.
    pub siblings: Vec<Rank>,
    /// This PE's children, to be notified of its own data.
    pub children: Vec<Rank>,
}

impl Shape {
    /// Returns the PEs that `rank` notifies in the tree of `pes` PEs rooted at `root`.
    #[must_use]
    pub fn notified(self, rank: Rank, root: Rank, pes: u32) -> NotificationTree {
        let next_two = |place: usize, family: &[Rank]| -> Vec<Rank> {
            family.iter().copied().skip(2 * place).take(2).collect()
        };
        let Node { parent, children } = self.node(rank, root, pes);
        let siblings = parent.map_or_else(Vec::new, |(parent, index)| {
            next_two(index as usize + 1, &self.node(parent, root, pes).children)
        });
        NotificationTree { siblings, children: next_two(0, &children) }
    }

    /// Returns the neighbours of `rank` in the tree of `pes` PEs rooted at `root`.
    #[must_use]
    pub fn node(self, rank: Rank, root: Rank, pes: u32) -> Node {
        let relative = (rank.0 + pes - root.0) % pes;
        let absolute = |node: u32| root.plus(node as usize, pes as usize);
        let parent = self.parent(relative).map(|parent| {
            let index = self.children(parent, pes).iter().position(|&node| node == relative);
            let index = index.and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
            (absolute(parent), index)
        });
        Node { parent, children: self.children_of(rank, root, pes) }
    }

    /// Returns the children of `rank` in the tree of `pes` PEs rooted at `root`, as in
    /// [`Shape::node`].
    #[must_use]
    pub fn children_of(self, rank: Rank, root: Rank, pes: u32) -> Vec<Rank> {
        let relative = (rank.0 + pes - root.0) % pes;
        let absolute = |node: u32| root.plus(node as usize, pes as usize);
        self.children(relative, pes).into_iter().map(absolute).collect()
    }

    /// Returns the largest number of children of a node.
    #[must_use]
    pub fn fan(self, pes: u32) -> u32 {
        match self {
            Self::Flat => pes - 1,
            Self::Knomial(1) => 1.min(pes - 1),
            Self::Knomial(_) => u32::try_from(self.children(0, pes).len()).unwrap_or(u32::MAX),
            Self::Kary(radix) => radix.min(pes - 1),
        }
    }

    /// Returns the number of edges from the root to the furthest node.
    #[must_use]
    pub fn depth(self, pes: u32) -> u32 {
        match self {
            Self::Flat => 1.min(pes - 1),
            Self::Knomial(1) | Self::Kary(1) => pes - 1,
            Self::Knomial(radix) => (0..pes)
                .map(|mut node| {
                    let mut digits = 0;
                    while node > 0 {
                        digits += u32::from(!node.is_multiple_of(radix));
                        node /= radix;
                    }
                    digits
                })
                .max()
                .unwrap_or(0),
            Self::Kary(radix) => {
                let (mut node, mut depth) = (pes - 1, 0);
                while node > 0 {
                    node = (node - 1) / radix;
                    depth += 1;
                }
                depth
            }
        }
    }

    /// Returns the number of edges from PE 0, which is the root, to a PE.
    #[must_use]
    pub fn depth_of(self, rank: Rank, pes: u32) -> u32 {
        let up = |&node: &u32| self.parent(node);
        let depth = std::iter::successors(Some(rank.0.min(pes - 1)), up).count() - 1;
        u32::try_from(depth).unwrap_or(u32::MAX)
    }

    fn parent(self, node: u32) -> Option<u32> {
        if node == 0 {
            return None;
        }
        Some(match self {
            Self::Flat => 0,
            Self::Knomial(1) => node - 1,
            Self::Knomial(radix) => {
                let mut power = 1;
                while (node / power).is_multiple_of(radix) {
                    power *= radix;
                }
                node - node / power % radix * power
            }
            Self::Kary(radix) => (node - 1) / radix,
        })
    }

    fn children(self, node: u32, pes: u32) -> Vec<u32> {
        let pes = u64::from(pes);
        let node = u64::from(node);
        let mut children = Vec::new();
        match self {
            Self::Flat if node == 0 => children.extend(1..pes),
            Self::Flat => {}
            Self::Knomial(1) => children.extend((node + 1..pes).take(1)),
            Self::Knomial(radix) => {
                let radix = u64::from(radix);
                let mut power = 1;
                while power < pes && (node / power).is_multiple_of(radix) {
                    children.extend((1..radix).map(|digit| node + digit * power));
                    power *= radix;
                }
            }
            Self::Kary(radix) => {
                let radix = u64::from(radix);
                children.extend(radix * node + 1..=radix * node + radix);
            }
        }
        children
            .into_iter()
            .filter_map(|child| u32::try_from(child).ok().filter(|_| child < pes))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 9] = [
        Shape::Flat,
        Shape::Knomial(1),
        Shape::Knomial(2),
        Shape::Knomial(3),
        Shape::Knomial(16),
        Shape::Kary(1),
        Shape::Kary(2),
        Shape::Kary(7),
        Shape::Kary(64),
    ];

    #[test]
    fn parents_and_children_agree_and_reach_everyone() {
        for shape in SHAPES {
            for pes in (1..40).chain([64, 100]) {
                for root in [0, pes / 2, pes - 1].map(Rank) {
                    let nodes: Vec<_> = (0..pes).map(|r| shape.node(Rank(r), root, pes)).collect();
                    assert_eq!(nodes[root.index()].parent, None);
                    let edges: usize = nodes.iter().map(|node| node.children.len()).sum();
                    assert_eq!(edges, pes as usize - 1, "{shape:?} {pes}");
                    let mut deepest = 0;
                    for rank in 0..pes {
                        let (mut at, mut depth) = (rank, 0);
                        while let Some((parent, index)) = nodes[at as usize].parent {
                            let children = &nodes[parent.index()].children;
                            assert_eq!(children[index as usize], Rank(at), "{shape:?} {pes}");
                            assert!(children.len() <= shape.fan(pes) as usize);
                            at = parent.0;
                            depth += 1;
                        }
                        assert_eq!(at, root.0);
                        deepest = deepest.max(depth);
                    }
                    assert_eq!(deepest, shape.depth(pes), "{shape:?} {pes}");
                }
            }
        }
    }

    #[test]
    fn every_pe_is_notified_once_within_its_family() {
        for shape in SHAPES {
            for pes in (1..40).chain([64, 100]) {
                for root in [0, pes / 2, pes - 1].map(Rank) {
                    let node = |rank| shape.node(rank, root, pes);
                    let mut told_by = vec![Vec::new(); pes as usize];
                    for rank in (0..pes).map(Rank) {
                        let NotificationTree { siblings, children } =
                            shape.notified(rank, root, pes);
                        assert!(siblings.len() <= 2 && children.len() <= 2);
                        let parent = node(rank).parent.map(|(parent, _)| parent);
                        for sibling in siblings {
                            assert_eq!(node(sibling).parent.map(|(parent, _)| parent), parent);
                            told_by[sibling.index()].push(rank);
                        }
                        for child in children {
                            assert_eq!(node(child).parent.map(|(parent, _)| parent), Some(rank));
                            told_by[child.index()].push(rank);
                        }
                    }
                    for rank in (0..pes).map(Rank) {
                        let mut at = rank;
                        let parent = node(rank).parent;
                        assert_eq!(told_by[rank.index()].len(), usize::from(parent.is_some()));
                        let Some((parent, index)) = parent else { continue };
                        let mut hops = 0;
                        while at != parent {
                            at = told_by[at.index()][0];
                            hops += 1;
                        }
                        assert_eq!(hops, (index + 2).ilog2(), "{shape:?} {pes} {rank}");
                    }
                }
            }
        }
    }

    #[test]
    fn notification_follows_figure_3_1() {
        // Petrović 2015, figure 3.1: 12 PEs, k = 7. PE 1 gets data from PE 0, and PEs 8 to 11 from
        // PE 1.
        let (shape, rank, root) = (Shape::Kary(7), Rank(1), Rank(0));
        let Node { parent, children } = shape.node(rank, root, 12);
        assert_eq!(parent, Some((Rank(0), 0)));
        assert_eq!(children, [8, 9, 10, 11].map(Rank));
        let notified = shape.notified(rank, root, 12);
        assert_eq!(notified.siblings, [3, 4].map(Rank));
        assert_eq!(notified.children, [8, 9].map(Rank));
    }

    #[test]
    fn a_subtree_of_a_knomial_tree_is_a_range_of_ranks() {
        fn subtree(shape: Shape, node: u32, pes: u32, into: &mut Vec<u32>) {
            into.push(node);
            for child in shape.children(node, pes) {
                subtree(shape, child, pes, into);
            }
        }
        for radix in [1, 2, 3, 4, 8, 16] {
            for pes in 1..70 {
                for node in 0..pes {
                    let mut nodes = Vec::new();
                    subtree(Shape::Knomial(radix), node, pes, &mut nodes);
                    assert!(
                        nodes
                            .iter()
                            .copied()
                            .eq(node..node + u32::try_from(nodes.len()).expect("few nodes"))
                    );
                }
            }
        }
    }

    #[test]
    fn binomial_tree_is_that_of_figure_1() {
        // The tree of Figure 1: 0 has 1, 2 and 4; 2 has 3; 4 has 5 and 6; 6 has 7.
        let children = |node| Shape::Knomial(2).children(node, 8);
        assert_eq!(children(0), [1, 2, 4]);
        assert_eq!(children(4), [5, 6]);
        assert_eq!(children(6), [7]);
        assert_eq!(children(7), [0; 0]);
    }
}
