//! What there is to test: the registry's algorithms with all values of their parameters, in all
//! modes, at sizes, roots and classes of operators.

use std::fmt;

use consort_collectives::{Algorithm, Parameter, Setting, Visitor, names, serves, visit};
use consort_fabric::{Candidate, Capabilities, Collective, Mode, OperatorClass, Rank, Sync};

use crate::data::element_bytes;

/// Values off the grid of those that the tuner tries, where a range allows them.
const ODD_RADIX: u64 = 3;
const ODD_BYTES: u64 = 1000;

/// None, a byte, an element, more than a line, whole chunks, and several with a rest.
pub(crate) static SIZES: [usize; 9] = [0, 1, 8, 57, 1000, 7057, 20_000, 70_001, 270_000];

/// The length of a block at a size: of many blocks, those of long messages are as long in all.
fn block_bytes(collective: Collective, pes: u32, bytes: usize) -> usize {
    let blocks = collective.source_blocks(pes, true).max(collective.target_blocks(pes, true));
    if bytes <= 57 || blocks <= 1 {
        return bytes;
    }
    let block = bytes.div_ceil(blocks as usize);
    if bytes.is_multiple_of(8) { block.next_multiple_of(8) } else { block | 1 }
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// What all enter and leave by, where they do so together.
    pub(crate) barrier: Candidate,
    pub(crate) sync: Sync,
    /// The size that the length of a block was made of.
    pub(crate) size: usize,
    /// Bytes of a block.
    pub(crate) bytes: usize,
    pub(crate) root: Rank,
    /// Whether its buffers lie in the symmetric heap.
    pub(crate) symmetric: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind: Kind { collective, candidate, is_ordered }, .. } = self;
        write!(f, "{collective} {candidate}, {} B, root {}", self.bytes, self.root)?;
        write!(f, ", {} by {}", self.sync, self.barrier)?;
        let symmetric = if self.symmetric { ", symmetric" } else { "" };
        let ordered = if *is_ordered { ", ordered" } else { "" };
        write!(f, "{symmetric}{ordered}")
    }
}

/// An algorithm, and what it combines with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) collective: Collective,
    pub(crate) candidate: Candidate,
    pub(crate) is_ordered: bool,
}

impl Kind {
    pub(crate) const fn class(&self) -> OperatorClass {
        if self.is_ordered { OperatorClass::Ordered } else { OperatorClass::Commutative }
    }
}

impl Case {
    /// Whether all enter or leave it together.
    pub(crate) fn synchronizes(&self) -> bool {
        self.kind.collective == Collective::Barrier
            || self.sync.entry == Mode::All
            || self.sync.exit == Mode::All
    }

    /// What PE 0's schedule is made for.
    pub(crate) const fn setting(&self, pes: u32, capabilities: Capabilities) -> Setting {
        Setting {
            collective: self.kind.collective,
            rank: Rank(0),
            pes,
            root: self.root,
            bytes: self.bytes,
            element_bytes: element_bytes(self.bytes),
            operator: self.kind.class(),
            sync: self.sync,
            symmetric: self.symmetric,
            capabilities,
            first_slot: Setting::first_slot(self.kind.collective, pes),
            beside: false,
            counter: 1,
        }
    }

    pub(crate) fn is_served(&self, pes: u32, capabilities: Capabilities) -> bool {
        let Kind { collective, candidate, .. } = &self.kind;
        serves(*collective, &self.setting(pes, capabilities), candidate)
    }
}

/// All values of all parameters: what the tuner tries, and one that it does not.
struct Values;

impl Visitor for Values {
    type Output = Vec<Candidate>;

    fn visit<A: Algorithm>(self) -> Vec<Candidate> {
        let mut all = vec![Candidate::new(A::NAME)];
        for Parameter { name, values, range: (least, most) } in A::PARAMETERS {
            let odd = if name.ends_with("_bytes") { ODD_BYTES } else { ODD_RADIX };
            let odd = Some(odd).filter(|odd| (least..=most).contains(&odd));
            let with_each = |candidate: &Candidate| -> Vec<_> {
                let values = values.iter().copied().chain(odd);
                values.map(|value| candidate.clone().with(name, value)).collect()
            };
            all = all.iter().flat_map(with_each).collect();
        }
        all
    }
}

/// Every candidate of a collective, whatever it can serve.
fn candidates(collective: Collective) -> Vec<Candidate> {
    let of = |name: &&str| visit(collective, name, Values).expect("a name of the registry");
    names(collective).iter().flat_map(of).collect()
}

/// Every case on a number of PEs, by number.
pub(crate) struct Space {
    pes: u32,
    pub(crate) kinds: Vec<Kind>,
    barriers: Vec<Candidate>,
    syncs: Vec<Sync>,
    pub(crate) sizes: &'static [usize],
}

impl Space {
    pub(crate) fn of(pes: u32, sizes: &'static [usize]) -> Self {
        let mut kinds = Vec::new();
        for collective in Collective::EVERY {
            let classes: &[_] = if collective.combines() { &[false, true] } else { &[false] };
            for candidate in candidates(collective) {
                let kind =
                    |&is_ordered| Kind { collective, candidate: candidate.clone(), is_ordered };
                kinds.extend(classes.iter().map(kind));
            }
        }
        let barriers = candidates(Collective::Barrier);
        Self { pes, kinds, barriers, syncs: Sync::every().collect(), sizes }
    }

    /// How many there are.
    fn count(&self) -> usize {
        [self.kinds.len(), self.sizes.len(), self.syncs.len(), 3, 2].iter().product()
    }

    fn case(&self, number: usize) -> Case {
        let mut rest = number;
        let mut digit = |base: usize| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        let kind = self.kinds[digit(self.kinds.len())].clone();
        let size = self.sizes[digit(self.sizes.len())];
        let sync = self.syncs[digit(self.syncs.len())];
        let root = Rank([0, self.pes / 2, self.pes - 1][digit(3)]);
        let symmetric = digit(2) == 1;
        let barrier = self.barriers[number % self.barriers.len()].clone();
        match kind.collective {
            Collective::Barrier => {
                let (sync, root) = (Sync::STRICT, Rank(0));
                Case { kind, barrier, sync, size: 0, bytes: 0, root, symmetric: false }
            }
            collective => {
                let bytes = block_bytes(collective, self.pes, size);
                Case { kind, barrier, sync, size, bytes, root, symmetric }
            }
        }
    }

    /// Every case of the modes that have names of their own.
    pub(crate) fn in_few_modes(&self) -> impl Iterator<Item = Case> {
        let named = [Sync::STRICT, Sync::LOOSE, Sync::MINE];
        (0..self.count())
            .map(|number| self.case(number))
            .filter(move |case| named.contains(&case.sync))
    }

    /// Cases from number `first` on, each of which differs from the one before in all that it can:
    /// any number of them is spread evenly over all there are, by the golden ratio.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = Case> {
        let count = self.count();
        let near = count * 61_803 / 100_000;
        let is_coprime = |&stride: &usize| {
            let (mut a, mut b) = (count, stride);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a == 1
        };
        let stride = (near..).find(is_coprime).expect("a number coprime to another");
        (first..).map(move |index| self.case(index % count * stride % count))
    }
}

#[test]
fn every_case_comes_once() {
    let space = Space::of(7, &SIZES);
    let mut seen: Vec<_> =
        space.from(0).take(space.count()).map(|case| format!("{case:?}")).collect();
    seen.sort_unstable();
    seen.dedup_by(|one, other| one == other);
    let barriers = space.barriers.len();
    assert_eq!(
        seen.iter().filter(|case| !case.contains("Barrier")).count(),
        space.count() / space.kinds.len() * (space.kinds.len() - barriers)
    );
}
