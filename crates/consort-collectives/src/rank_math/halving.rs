//! Recursive halving: the owner of a range of nodes sends the second half to that half's first
//! node, until each node owns only itself.
//!
//! Nodes are *relative* ranks, counted from the root. An owner of `n` nodes sends `floor(n / 2)` of
//! them, so `ceil(log2 P)` rounds suffice (the binomial tree of Petrović 2015, section 3.3.2).

use std::ops::Range;

use consort_fabric::Rank;

/// The range that one PE receives, and the ranges that it sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Half {
    /// The PE that sends the range, and this PE's index among its children; `None` at the root.
    pub parent: Option<(Rank, u32)>,
    /// The nodes that this PE owns at first; the first of them is itself.
    pub range: Range<u32>,
    /// The PEs to which it sends the second half of its remaining range, and the nodes of each
    /// half.
    pub children: Vec<(Rank, Range<u32>)>,
}

/// Returns the ranges of `rank` among `pes` PEs. At first the root owns all nodes.
#[must_use]
pub fn half(rank: Rank, root: Rank, pes: u32) -> Half {
    let relative = (rank.0 + pes - root.0) % pes;
    let absolute = |node: u32| root.plus(node as usize, pes as usize);
    let middle = |range: &Range<u32>| range.end - (range.end - range.start) / 2;
    let (mut parent, mut range, mut handed) = (None, 0..pes, 0);
    while range.start != relative {
        let middle = middle(&range);
        if relative < middle {
            range.end = middle;
            handed += 1;
        } else {
            parent = Some((absolute(range.start), handed));
            range.start = middle;
            handed = 0;
        }
    }
    let (mut children, mut owned) = (Vec::new(), range.clone());
    while owned.end - owned.start > 1 {
        let middle = middle(&owned);
        children.push((absolute(middle), middle..owned.end));
        owned.end = middle;
    }
    Half { parent, range, children }
}

/// Returns the number of rounds, which is also the largest number of children of a PE.
#[must_use]
pub const fn rounds(pes: u32) -> u32 {
    pes.next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_hands_each_pe_its_range() {
        for pes in (1..70).chain([100, 128]) {
            for root in [0, pes / 2, pes - 1].map(Rank) {
                let all: Vec<_> = (0..pes).map(|rank| half(Rank(rank), root, pes)).collect();
                assert_eq!(all[root.index()].range, 0..pes);
                assert_eq!(all[root.index()].children.len(), rounds(pes) as usize);
                let handed: usize = all.iter().map(|half| half.children.len()).sum();
                assert_eq!(handed, pes as usize - 1);
                for (rank, Half { parent, range, children }) in (0..).zip(&all) {
                    let relative = (rank + pes - root.0) % pes;
                    assert_eq!(range.start, relative);
                    assert!(children.len() <= rounds(pes) as usize);
                    assert_eq!(parent.is_none(), Rank(rank) == root);
                    if let Some((parent, index)) = parent {
                        let given = &all[parent.index()].children[*index as usize];
                        assert_eq!(*given, (Rank(rank), range.clone()), "{pes}");
                    }
                    // The halves and the PE itself cover the range without a gap.
                    let mut end = range.end;
                    for (_, half) in children {
                        assert_eq!(half.end, end);
                        assert_eq!(half.len(), (end - range.start) as usize / 2);
                        end = half.start;
                    }
                    assert_eq!(end, relative + 1);
                }
            }
        }
    }
}
