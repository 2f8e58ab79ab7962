//! The cases to test: the registry's algorithms with all values of their parameters, in all modes,
//! at sizes, roots and classes of operators.

use std::{fmt, sync::Arc};

use consort_collectives::{Algorithm, Setting, barrier::Synchronizer, describe, serves};
use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, OperatorClass, Rank, SyncMode, SyncModes,
};

use crate::{
    data::element_bytes,
    registry::{everything, of_algorithm, on_levels, on_nodes},
};

/// Zero, a byte, an element, two and a half words, more than a line, whole chunks, and several with
/// a remainder.
pub static SIZES: [usize; 10] = [0, 1, 8, 20, 57, 1000, 7057, 20_000, 70_001, 270_000];

/// Returns the length of a block at a size. Long messages divide the size among their blocks.
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
pub struct Case {
    /// The collective and the candidate that serves it.
    pub kind: Arc<Kind>,
    /// The entry and exit barrier of all PEs, if the modes need one.
    pub barrier: Arc<Candidate>,
    /// Its modes.
    pub sync: SyncModes,
    /// The size from which the length of a block was derived.
    pub size: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// The root, if it has one.
    pub root: Rank,
    /// Whether its buffers are in the symmetric heap.
    pub symmetric: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind { collective, candidate, is_ordered, in_place } = &*self.kind;
        match candidate {
            Some(candidate) => write!(f, "{collective} {candidate}")?,
            None => write!(f, "{collective}")?,
        }
        write!(f, ", {} B, root {}", self.bytes, self.root)?;
        write!(f, ", {} by {}", self.sync, self.barrier)?;
        let symmetric = if self.symmetric { ", symmetric" } else { "" };
        let ordered = if *is_ordered { ", ordered" } else { "" };
        let in_place = if *in_place { ", in place" } else { "" };
        write!(f, "{symmetric}{ordered}{in_place}")
    }
}

/// A collective, the candidate that serves it, and its operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The collective.
    pub collective: Collective,
    /// The candidate that serves it; if `None`, the runtime under test selects one.
    pub candidate: Option<Candidate>,
    /// Whether the operator is not commutative.
    pub is_ordered: bool,
    /// Whether results replace contributions.
    pub in_place: bool,
}

impl Kind {
    /// Returns the algorithm's name.
    #[must_use]
    pub fn algorithm(&self) -> &str {
        self.candidate.as_ref().map_or("selected", |candidate| &candidate.algorithm)
    }

    /// Returns the operator's class.
    #[must_use]
    pub const fn class(&self) -> OperatorClass {
        if self.is_ordered { OperatorClass::Ordered } else { OperatorClass::Commutative }
    }
}

impl Case {
    /// Returns a barrier, by an algorithm that every fabric has.
    #[must_use]
    pub fn barrier() -> Self {
        let candidate = Candidate::new("dissemination").with("radix", 2);
        let kind = Kind {
            collective: Collective::Barrier,
            candidate: Some(candidate.clone()),
            is_ordered: false,
            in_place: false,
        };
        let (sync, root) = (SyncModes::STRICT, Rank(0));
        let (kind, barrier) = (Arc::new(kind), Arc::new(candidate));
        Self { kind, barrier, sync, size: 0, bytes: 0, root, symmetric: false }
    }

    /// Returns the call on a team of `pes`.
    #[must_use]
    pub fn call(&self, pes: u32) -> CallSpec {
        CallSpec {
            collective: self.kind.collective,
            sync: self.sync,
            root: self.root,
            bytes: self.bytes,
            datatype: if element_bytes(self.bytes) == 1 { "u8" } else { "u64" },
            element_bytes: element_bytes(self.bytes),
            operator: match self.kind.class() {
                _ if !self.kind.collective.combines() => "",
                OperatorClass::Commutative => "Sum",
                OperatorClass::Ordered => "a closure",
            },
            class: self.kind.class(),
            symmetric: self.symmetric,
            in_place: self.kind.in_place,
            ..CallSpec::barrier(pes)
        }
    }

    /// Returns whether its candidate can serve it, on a fabric with these capabilities.
    #[must_use]
    pub fn is_served(&self, pes: u32, capabilities: Capabilities) -> bool {
        let call = self.call(pes);
        let serves = |call, candidate| serves(&Setting::of(call, capabilities), candidate);
        let can_be = Synchronizer::can_be(&self.barrier);
        let around = !call.has_barrier() || can_be && serves(CallSpec::barrier(pes), &self.barrier);
        around && self.kind.candidate.as_ref().is_none_or(|candidate| serves(call, candidate))
    }

    /// Returns whether the caller may read the result when the call returns. A private buffer is
    /// then the caller's, so it is excluded with exit mode None on a fabric that would keep it.
    #[must_use]
    pub fn settles(&self) -> bool {
        self.symmetric || self.sync.exit != SyncMode::None
    }
}

/// Returns a collective with each of these candidates, with each class of operator, and in place if
/// it has a method for that.
fn kinds(
    collective: Collective,
    candidates: impl IntoIterator<Item = Option<Candidate>>,
) -> Vec<Kind> {
    let classes: &[_] = if collective.combines() { &[false, true] } else { &[false] };
    let of = |candidate: Option<Candidate>| {
        let places: &[_] = match collective {
            Collective::Reduce | Collective::AllReduce | Collective::Scan => &[false, true],
            _ => &[false],
        };
        let works = |candidate: &Candidate| {
            describe(collective, &candidate.algorithm).is_ok_and(|one| one.in_place)
        };
        let works = candidate.as_ref().is_none_or(works);
        let places = places.iter().filter(move |&&in_place| works || !in_place);
        let both = move |&in_place: &bool| classes.iter().map(move |&class| (in_place, class));
        places.flat_map(both).map(move |(in_place, is_ordered)| Kind {
            collective,
            candidate: candidate.clone(),
            is_ordered,
            in_place,
        })
    };
    candidates.into_iter().flat_map(of).collect()
}

/// Every case on a number of PEs, by number.
#[derive(Clone, Debug)]
pub struct Space {
    pes: u32,
    kinds: Vec<Arc<Kind>>,
    barriers: Vec<Arc<Candidate>>,
    syncs: Vec<SyncModes>,
    sizes: &'static [usize],
}

impl Space {
    /// Returns the cases of all algorithms of the registry.
    #[must_use]
    pub fn of(pes: u32, sizes: &'static [usize]) -> Self {
        let all = Collective::EVERY.into_iter();
        Self::by(pes, sizes, all.flat_map(|one| kinds(one, on_nodes(one).into_iter().map(Some))))
    }

    /// Returns the cases of the algorithms for several levels. `depths` is how often the parts
    /// inside nodes and the part between nodes can be divided again.
    #[must_use]
    pub fn on_levels(pes: u32, sizes: &'static [usize], depths: [usize; 2]) -> Self {
        let all = Collective::EVERY.into_iter();
        let of = |one| kinds(one, on_levels(one, depths).into_iter().map(Some));
        Self::by(pes, sizes, all.flat_map(of))
    }

    /// Returns the cases of one algorithm, which need not be in the registry.
    #[must_use]
    pub fn of_algorithm<A: Algorithm>(
        collective: Collective,
        pes: u32,
        sizes: &'static [usize],
    ) -> Self {
        Self::by(pes, sizes, kinds(collective, of_algorithm::<A>().into_iter().map(Some)))
    }

    /// Adds each collective with the selection of the runtime under test.
    #[must_use]
    pub fn and_selected(mut self) -> Self {
        let all = Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier);
        self.kinds.extend(all.flat_map(|one| kinds(one, [None])).map(Arc::new));
        self
    }

    fn by(pes: u32, sizes: &'static [usize], kinds: impl IntoIterator<Item = Kind>) -> Self {
        // A barrier in two levels cannot be an entry or exit barrier.
        let barriers = everything(Collective::Barrier).into_iter().map(Arc::new).collect();
        let kinds = kinds.into_iter().map(Arc::new).collect();
        let syncs = SyncModes::every().collect();
        Self { pes, kinds, barriers, syncs, sizes }
    }

    /// Returns the team's size.
    #[must_use]
    pub const fn pes(&self) -> u32 {
        self.pes
    }

    /// Returns the candidates for the cases.
    pub fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        self.kinds.iter().filter_map(|kind| kind.candidate.as_ref())
    }

    /// Returns the number of cases.
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
                let (sync, root) = (SyncModes::STRICT, Rank(0));
                Case { kind, barrier, sync, size: 0, bytes: 0, root, symmetric: false }
            }
            collective => {
                let bytes = block_bytes(collective, self.pes, size);
                let symmetric = symmetric && !kind.in_place;
                Case { kind, barrier, sync, size, bytes, root, symmetric }
            }
        }
    }

    /// Returns every case, in all nine modes.
    pub fn in_all_modes(&self) -> impl Iterator<Item = Case> {
        (0..self.count()).map(|number| self.case(number))
    }

    /// Returns every case in the named modes.
    pub fn in_few_modes(&self) -> impl Iterator<Item = Case> {
        let named = [SyncModes::STRICT, SyncModes::LOOSE, SyncModes::MINE];
        (0..self.count())
            .map(|number| self.case(number))
            .filter(move |case| named.contains(&case.sync))
    }

    /// Returns an endless sequence of cases, from number `first` on. Each case differs from the
    /// previous one as much as possible: any number of them is spread evenly over all cases.
    ///
    /// # Panics
    /// When there is no case.
    pub fn from(&self, first: usize) -> impl Iterator<Item = Case> {
        let count = self.count();
        let stride = stride(count);
        (first..).map(move |index| self.case(index % count * stride % count))
    }
}

/// Returns the number at a place in a sequence of all numbers below `count`. Any consecutive
/// numbers in it are spread evenly, by the golden ratio.
///
/// # Panics
/// When `count` is 0.
#[must_use]
pub fn spread(place: usize, count: usize) -> usize {
    place % count * stride(count) % count
}

/// Returns the distance between successive numbers of the sequence, which is coprime to `count`.
fn stride(count: usize) -> usize {
    let near = count * 61_803 / 100_000;
    let is_coprime = |&stride: &usize| {
        let (mut a, mut b) = (count, stride);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    (near..).find(is_coprime).expect("a number coprime to another")
}

#[test]
fn every_case_comes_once() {
    let space = Space::of(7, &SIZES);
    let mut seen: Vec<_> =
        space.from(0).take(space.count()).map(|case| format!("{case:?}")).collect();
    seen.sort_unstable();
    seen.dedup_by(|one, other| one == other);
    // Barriers have fewer cases, and cases in place are private.
    let apart = |kind: &&Arc<Kind>| kind.collective != Collective::Barrier && !kind.in_place;
    let is_apart = |case: &&String| !case.contains("Barrier") && case.contains("in_place: false");
    assert_eq!(
        seen.iter().filter(is_apart).count(),
        space.count() / space.kinds.len() * space.kinds.iter().filter(apart).count()
    );
    assert!(seen.iter().any(|case| case.contains("in_place: true")));
}
