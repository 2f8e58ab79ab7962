//! Nodes: groups of PEs that are nearer to each other than to the rest.
//!
//! A size of 0 counts as 1, so no division has to check its divisor. A compiler may move such a
//! check before the check of the variant. The check would then read bytes that [`Nodes::One`] does
//! not initialize. That is harmless, but tools that detect uses of uninitialized memory report it.

/// The placement of a team's PEs on nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nodes {
    /// All on one node. Also used if the placement is unknown, or has none of the other forms.
    #[default]
    One,
    /// This number of consecutive ranks on each node, and the rest on the last.
    Blocks(u32),
    /// PEs dealt in turn to this number of nodes.
    InTurn(u32),
}

/// The most divisions on each side of [`Levels`].
const MOST_LEVELS: usize = 3;

/// The levels of a machine besides its [`Nodes`]: the divisions of each node, and the groups of
/// nodes. [`Nodes::One`] stands for no further level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Levels {
    /// The divisions of a node, from the outermost. The first divides the PEs of a node, by their
    /// places. Each other one divides the groups of the one before it.
    pub inside: [Nodes; MOST_LEVELS],
    /// The groups of nodes, from the innermost. The first groups nodes, by their numbers. Each
    /// other one groups the groups of the one before it.
    pub around: [Nodes; MOST_LEVELS],
}

impl Levels {
    /// No level besides the nodes.
    pub const NONE: Self = Self::around([Nodes::One; MOST_LEVELS]);

    /// Returns the levels in which nodes are grouped like this and not divided.
    #[must_use]
    pub const fn around(around: [Nodes; MOST_LEVELS]) -> Self {
        Self { inside: [Nodes::One; MOST_LEVELS], around }
    }

    /// Returns the nodes of a team and their groups, from the groups of each PE on some levels,
    /// from the innermost to the outermost. The innermost groups are the nodes. A level is left out
    /// if it has no form or is the same as the level below it.
    #[must_use]
    pub fn of<const LEVELS: usize>(pes: &[[u32; LEVELS]]) -> (Nodes, Self) {
        let mut groups: Vec<[u32; LEVELS]> = pes.to_vec();
        if groups.is_empty() {
            return Default::default();
        }
        let mut all = Vec::new();
        for level in 0..LEVELS {
            let nodes = Nodes::of(&groups.iter().map(|group| group[level]).collect::<Vec<_>>());
            let below = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let is_innermost = level == 0;
            if is_innermost || nodes != Nodes::One && nodes.count(below) < below {
                let first = |node| groups[nodes.members(node, below).first as usize];
                groups = (0..nodes.count(below)).map(first).collect();
                all.push(nodes);
            }
        }
        let mut all = all.into_iter();
        let nodes = all.next().unwrap_or_default();
        let around = std::array::from_fn(|_| all.next().unwrap_or_default());
        (nodes, Self::around(around))
    }

    /// Returns the placement of the PEs of one node, and the levels besides it.
    #[must_use]
    pub const fn of_node(self) -> (Nodes, Self) {
        let [nodes, inside @ ..] = self.inside;
        (nodes, Self { inside: rest(inside), ..Self::NONE })
    }

    /// Returns the placement of one PE of each node, and the levels besides it.
    #[must_use]
    pub const fn of_leaders(self) -> (Nodes, Self) {
        let [nodes, around @ ..] = self.around;
        (nodes, Self::around(rest(around)))
    }

    /// Returns the number of divisions inside a node, and the number of groupings of nodes.
    #[must_use]
    pub fn depths(self) -> [usize; 2] {
        [self.inside, self.around]
            .map(|levels| levels.iter().take_while(|&&nodes| nodes != Nodes::One).count())
    }
}

/// Returns the levels after the first.
const fn rest([next, last]: [Nodes; MOST_LEVELS - 1]) -> [Nodes; MOST_LEVELS] {
    [next, last, Nodes::One]
}

/// PEs of a team whose ranks are equally far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranks {
    /// The rank of the first PE.
    pub first: u32,
    /// The distance between consecutive ranks.
    pub stride: u32,
    /// The number of PEs.
    pub count: u32,
}

impl Ranks {
    /// Returns the rank in the team of the PE with this index.
    #[inline(always)]
    #[must_use]
    pub const fn rank(self, index: u32) -> u32 {
        self.first + index * self.stride
    }

    /// Returns the index of a PE by its rank in the team; `None` if it is not one of these PEs.
    #[must_use]
    pub const fn index(self, rank: u32) -> Option<u32> {
        if rank < self.first || !(rank - self.first).is_multiple_of(self.stride) {
            return None;
        }
        let index = (rank - self.first) / self.stride;
        if index < self.count { Some(index) } else { None }
    }

    /// Returns some of these PEs, given their indices.
    #[must_use]
    pub const fn some(self, indices: Self) -> Self {
        Self {
            first: self.rank(indices.first),
            stride: self.stride * indices.stride,
            count: indices.count,
        }
    }
}

impl Nodes {
    /// Returns the form of a placement from the node of each PE, in rank order.
    #[must_use]
    pub fn of(nodes: &[u32]) -> Self {
        // A number for each node, in the order in which they first appear.
        let mut numbers = Vec::new();
        let mut number = |node: &u32| match numbers.iter().position(|known| known == node) {
            Some(at) => at,
            None => {
                numbers.push(*node);
                numbers.len() - 1
            }
        };
        let numbered: Vec<usize> = nodes.iter().map(&mut number).collect();
        let first = numbered.iter().take_while(|&&node| node == 0).count();
        let count = numbered.iter().max().map_or(1, |most| most + 1);
        let [first, count] = [first, count].map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        let is = |form: Self| {
            let pes = (0_u32..).zip(&numbered);
            pes.into_iter().all(|(pe, &node)| form.node(pe) as usize == node)
        };
        let forms = [Self::One, Self::Blocks(first.max(1)), Self::InTurn(count)];
        forms.into_iter().find(|&form| is(form)).unwrap_or_default()
    }

    /// Returns the first form with the same placement of a team of `pes`.
    #[must_use]
    pub fn of_team(self, pes: u32) -> Self {
        Self::of(&(0..pes).map(|pe| self.node(pe)).collect::<Vec<_>>())
    }

    /// Returns the number of nodes of a team of `pes` PEs.
    #[must_use]
    pub fn count(self, pes: u32) -> u32 {
        match self {
            Self::One => 1,
            Self::Blocks(block) => pes.div_ceil(at_least_one(block)),
            Self::InTurn(nodes) => at_least_one(nodes).min(pes),
        }
    }

    /// Returns the node of a PE.
    #[must_use]
    pub const fn node(self, pe: u32) -> u32 {
        match self {
            Self::One => 0,
            Self::Blocks(block) => pe / at_least_one(block),
            Self::InTurn(nodes) => pe % at_least_one(nodes),
        }
    }

    /// Returns the index of a PE among those of its node.
    #[must_use]
    pub const fn place(self, pe: u32) -> u32 {
        match self {
            Self::One => pe,
            Self::Blocks(block) => pe % at_least_one(block),
            Self::InTurn(nodes) => pe / at_least_one(nodes),
        }
    }

    /// Returns the PEs of a node, in a team of `pes`.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn members(self, node: u32, pes: u32) -> Ranks {
        assert!(node < self.count(pes), "node {node} is one of the team's");
        match self {
            Self::One => Ranks { first: 0, stride: 1, count: pes },
            Self::Blocks(block) => {
                let block = at_least_one(block);
                let first = node * block;
                Ranks { first, stride: 1, count: block.min(pes - first) }
            }
            Self::InTurn(nodes) => {
                let nodes = at_least_one(nodes);
                Ranks { first: node, stride: nodes, count: (pes - node).div_ceil(nodes) }
            }
        }
    }

    /// Returns the PEs with the same index on each node, in a team of `pes`; `None` if some node
    /// has no such PE.
    ///
    /// # Panics
    /// When the team has no PEs.
    #[must_use]
    pub fn across(self, place: u32, pes: u32) -> Option<Ranks> {
        let count = self.count(pes);
        let ranks = match self {
            Self::One => Ranks { first: place, stride: 1, count },
            Self::Blocks(block) => Ranks { first: place, stride: at_least_one(block), count },
            Self::InTurn(nodes) => Ranks { first: place * at_least_one(nodes), stride: 1, count },
        };
        let fits = self.members(count - 1, pes).count > place;
        fits.then_some(ranks)
    }
}

/// Returns a nonzero divisor.
const fn at_least_one(size: u32) -> u32 {
    if size == 0 { 1 } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form is recognized from the nodes of its PEs.
    #[test]
    fn forms_are_found() {
        for pes in 1..20 {
            for by in 1..21 {
                for form in [Nodes::Blocks(by), Nodes::InTurn(by)] {
                    let nodes: Vec<u32> = (0..pes).map(|pe| 7 + 3 * form.node(pe)).collect();
                    let found = Nodes::of(&nodes);
                    let same = (0..pes).all(|pe| found.node(pe) == form.node(pe));
                    assert!(same, "{form:?} of {pes} is {found:?}");
                }
            }
        }
        assert_eq!(Nodes::of(&[0, 0, 1, 0]), Nodes::One, "it has no form");
        assert_eq!(Nodes::of(&[]), Nodes::One);
        for form in [Nodes::Blocks(0), Nodes::InTurn(0)] {
            assert_eq!((form.node(0), form.place(0), form.count(1)), (0, 0, 1));
            assert_eq!(form.members(0, 1), Ranks { first: 0, stride: 1, count: 1 });
        }
    }

    /// 2 packages of 2 NUMA nodes of 3 caches, in teams that fill them or do not.
    #[test]
    fn levels_are_found() {
        let place = |pe: u32| [pe / 4, pe / 12, pe / 24];
        let of = |pes| Levels::of(&(0..pes).map(place).collect::<Vec<_>>());
        let around = |around| Levels::around(around);
        let (caches, one) = (Nodes::Blocks(4), Nodes::One);
        let [three, two] = [3, 2].map(Nodes::Blocks);
        for pes in [48, 47, 37] {
            assert_eq!(of(pes), (caches, around([three, two, one])), "{pes}");
        }
        assert_eq!(of(24), (caches, around([three, one, one])), "one package");
        assert_eq!(of(12), (caches, Levels::NONE), "one NUMA node");
        assert_eq!(of(4), (one, Levels::NONE), "one cache");
        assert_eq!(of(0), (one, Levels::NONE));
        // A cache for each NUMA node: they are one level.
        let same =
            Levels::of(&(0..8_u32).map(|pe| [pe / 2, pe / 2 + 7, pe / 4]).collect::<Vec<_>>());
        assert_eq!(same, (two, around([two, one, one])));
    }

    #[test]
    fn parts_have_the_levels_that_are_left() {
        let [a, b, c, d] = [2, 3, 4, 5].map(Nodes::Blocks);
        let levels = Levels { inside: [a, b, Nodes::One], around: [c, d, Nodes::One] };
        assert_eq!(levels.depths(), [2, 2]);
        let (nodes, left) = levels.of_node();
        assert_eq!((nodes, left.depths()), (a, [1, 0]));
        assert_eq!(left.of_node(), (b, Levels::NONE));
        let (nodes, left) = levels.of_leaders();
        assert_eq!((nodes, left.depths()), (c, [0, 1]));
        assert_eq!(left.of_leaders(), (d, Levels::NONE));
        assert_eq!(Levels::NONE.of_node(), (Nodes::One, Levels::NONE));
    }

    /// The members of all nodes are all PEs, each once, and each PE is at its place.
    #[test]
    fn every_pe_is_on_a_node_once() {
        let forms = |most| {
            let one = std::iter::once(Nodes::One);
            one.chain((1..=most).flat_map(|by| [Nodes::Blocks(by), Nodes::InTurn(by)]))
        };
        for pes in 1..20 {
            for nodes in forms(21) {
                let mut seen = vec![0; pes as usize];
                for node in 0..nodes.count(pes) {
                    let members = nodes.members(node, pes);
                    assert!(members.count > 0, "{nodes:?} of {pes}");
                    for place in 0..members.count {
                        let pe = members.rank(place);
                        seen[pe as usize] += 1;
                        assert_eq!((nodes.node(pe), nodes.place(pe)), (node, place), "{nodes:?}");
                        assert_eq!(members.index(pe), Some(place));
                        let across = nodes.across(place, pes);
                        let everywhere = (0..nodes.count(pes))
                            .all(|other| nodes.members(other, pes).count > place);
                        assert_eq!(across.is_some(), everywhere, "{nodes:?} of {pes}: {place}");
                        assert!(across.is_none_or(|across| across.rank(node) == pe));
                    }
                    assert_eq!(members.index(members.rank(members.count)), None);
                }
                assert_eq!(seen, vec![1; pes as usize], "{nodes:?}");
            }
        }
    }
}
