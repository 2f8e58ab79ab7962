//! Recursive halving: a range of nodes is divided in two, and its owner hands the second half to
//! the first node there, until each node owns itself alone.
//!
//! Nodes are *relative* ranks, counted from the root. Of `n` nodes the owner hands on
//! `floor(n / 2)`, so that `ceil(log2 P)` rounds do (the binomial tree of Petrović 2015, section
//! 3.3.2).

use std::ops::Range;

use consort_fabric::Rank;

/// What one PE is handed, and what it hands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// Who hands it its range, and its index among that PE's children; none at the root.
    pub parent: Option<(Rank, u32)>,
    /// The nodes it owns at first, itself the first of them.
    pub range: Range<u32>,
    /// Whom it hands the second half of what it still owns, and which nodes those are.
    pub children: Vec<(Rank, Range<u32>)>,
}

/// The part of `rank` among `pes` PEs, all of which the root owns at first.
#[must_use]
pub fn half(rank: Rank, root: Rank, pes: u32) -> Half {
    let relative = (rank.0 + pes - root.0) % pes;
    let absolute = |node: u32| root.plus(node.into(), pes);
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

/// The most PEs that one PE hands anything: the rounds that it takes.
#[must_use]
pub const fn rounds(pes: u32) -> u32 {
    pes.next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_is_handed_what_it_owns_by_its_parent_and_keeps_itself() {
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
                    // The halves and the PE itself are the range, without a gap.
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
