//! The vocabulary of tuning: a [`Query`], and a [`Candidate`] that may answer it.
//!
//! Both are plain data. The tuner searches candidates without knowing any algorithm; the registry
//! of algorithms turns a candidate into a plan.

use std::{collections::BTreeMap, fmt, str::FromStr};

use crate::{OperatorClass, SyncModes};

/// A collective operation.
///
/// Data is divided into *blocks* of equal length. A PE contributes and receives no block, one
/// block, or one block for each PE of the team. Vector variants do the same with blocks of any
/// lengths; only the PEs that contribute or receive a block know its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collective {
    /// No PE leaves before all have entered.
    Barrier,
    /// The root's block, to every PE.
    Broadcast,
    /// Block `i` of the root, to PE `i`.
    Scatter,
    /// Every PE's block, to the root, in the order of the ranks.
    Gather,
    /// Every PE's block, to every PE, in the order of the ranks.
    AllGather,
    /// Block `i` of PE `j`, to PE `i`, as its block `j`: MPI's all-to-all.
    AllToAll,
    /// Every PE's block, combined, to the root.
    Reduce,
    /// Every PE's block, combined, to every PE.
    AllReduce,
    /// Block `i` of every PE, combined, to PE `i`.
    ReduceScatter,
    /// The blocks of PEs 0 to `i`, combined, to PE `i`.
    Scan,
    /// The blocks of PEs 0 to `i - 1`, combined, to PE `i`; PE 0 has no result.
    ExclusiveScan,
    /// The vector variant of [`Collective::Scatter`].
    ScatterVector,
    /// The vector variant of [`Collective::Gather`].
    GatherVector,
    /// The vector variant of [`Collective::AllGather`].
    AllGatherVector,
    /// The vector variant of [`Collective::AllToAll`].
    AllToAllVector,
}

impl Collective {
    /// Every collective.
    pub const EVERY: [Self; 15] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Scatter,
        Self::Gather,
        Self::AllGather,
        Self::AllToAll,
        Self::Reduce,
        Self::AllReduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::ExclusiveScan,
        Self::ScatterVector,
        Self::GatherVector,
        Self::AllGatherVector,
        Self::AllToAllVector,
    ];

    /// Every collective on blocks of equal length. Choices of algorithms are made for these.
    pub fn regulars() -> impl Iterator<Item = Self> {
        Self::EVERY.into_iter().filter(|one| !one.is_vector())
    }

    /// This collective on blocks of equal length.
    #[inline]
    #[must_use]
    pub const fn regular(self) -> Self {
        match self {
            Self::ScatterVector => Self::Scatter,
            Self::GatherVector => Self::Gather,
            Self::AllGatherVector => Self::AllGather,
            Self::AllToAllVector => Self::AllToAll,
            regular => regular,
        }
    }

    /// Whether its blocks may differ in length.
    #[inline]
    #[must_use]
    pub const fn is_vector(self) -> bool {
        matches!(
            self,
            Self::ScatterVector | Self::GatherVector | Self::AllGatherVector | Self::AllToAllVector
        )
    }

    /// The name: of its method, and in wisdom.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::AllGather => "all_gather",
            Self::AllToAll => "all_to_all",
            Self::Reduce => "reduce",
            Self::AllReduce => "all_reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::ExclusiveScan => "exclusive_scan",
            Self::ScatterVector => "scatter_vector",
            Self::GatherVector => "gather_vector",
            Self::AllGatherVector => "all_gather_vector",
            Self::AllToAllVector => "all_to_all_vector",
        }
    }

    /// Whether it has a root, from which the data comes or to which it goes.
    #[inline]
    #[must_use]
    pub const fn is_rooted(self) -> bool {
        matches!(self.regular(), Self::Broadcast | Self::Scatter | Self::Gather | Self::Reduce)
    }

    /// Whether it combines data with an operator.
    #[inline]
    #[must_use]
    pub const fn combines(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::AllReduce | Self::ReduceScatter | Self::Scan | Self::ExclusiveScan
        )
    }

    /// How many blocks a PE of a team of `pes` contributes. `is_root` is whether the PE is the
    /// root.
    #[inline]
    #[must_use]
    pub const fn source_blocks(self, pes: u32, is_root: bool) -> u32 {
        match self {
            Self::Barrier => 0,
            Self::Broadcast => is_root as u32,
            Self::Scatter | Self::ScatterVector => pes * is_root as u32,
            Self::AllToAll | Self::AllToAllVector | Self::ReduceScatter => pes,
            Self::Gather
            | Self::GatherVector
            | Self::AllGather
            | Self::AllGatherVector
            | Self::Reduce
            | Self::AllReduce
            | Self::Scan
            | Self::ExclusiveScan => 1,
        }
    }

    /// How many blocks a PE of a team of `pes` receives. `is_root` is whether the PE is the root.
    /// The root of a broadcast has its block already.
    #[inline]
    #[must_use]
    pub const fn target_blocks(self, pes: u32, is_root: bool) -> u32 {
        match self {
            Self::Barrier => 0,
            Self::Broadcast => !is_root as u32,
            Self::Reduce => is_root as u32,
            Self::Gather | Self::GatherVector => pes * is_root as u32,
            Self::AllGather | Self::AllGatherVector | Self::AllToAll | Self::AllToAllVector => pes,
            Self::Scatter
            | Self::ScatterVector
            | Self::AllReduce
            | Self::ReduceScatter
            | Self::Scan
            | Self::ExclusiveScan => 1,
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{asked}` is no collective: use {}", Collective::EVERY.map(Collective::name).join(", "))]
pub struct UnknownCollective {
    asked: String,
}

impl FromStr for Collective {
    type Err = UnknownCollective;

    fn from_str(text: &str) -> Result<Self, UnknownCollective> {
        Self::EVERY
            .into_iter()
            .find(|collective| collective.name() == text)
            .ok_or_else(|| UnknownCollective { asked: text.to_owned() })
    }
}

/// The facts that a choice of algorithm may depend on: only facts that all PEs of a team share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The operation.
    pub collective: Collective,
    /// Its synchronization modes.
    pub sync: SyncModes,
    /// The size of the team.
    pub pes: u32,
    /// Bytes of a block; 0 for a barrier.
    pub bytes: u64,
    /// The class of the operator; `Commutative` where nothing is combined.
    pub operator: OperatorClass,
    /// Whether the buffers are in symmetric memory, which peers reach without a rendezvous.
    pub symmetric: bool,
}

/// An algorithm and the values of its parameters, by name: `knomial(radix=4)`; of one that is made
/// of others, these: `two_level(flat,recursive_doubling,knomial(radix=4))`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The algorithm's name in its collective's folder.
    pub algorithm: String,
    /// Parameter names and values; units are part of the name.
    pub parameters: BTreeMap<String, u64>,
    /// The algorithms of its parts, if these are chosen.
    pub parts: Vec<Candidate>,
}

impl Candidate {
    /// An algorithm without parameters.
    #[must_use]
    pub fn new(algorithm: &str) -> Self {
        let (parameters, parts) = Default::default();
        Self { algorithm: algorithm.to_owned(), parameters, parts }
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: u64) -> Self {
        self.parameters.insert(parameter.to_owned(), value);
        self
    }

    /// The same with one more part.
    #[must_use]
    pub fn of(mut self, part: Self) -> Self {
        self.parts.push(part);
        self
    }

    /// The value of a parameter, if it is given.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<u64> {
        self.parameters.get(name).copied()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let parts = self.parts.iter().map(Self::to_string);
        let all: Vec<String> = parameters.chain(parts).collect();
        let name = &self.algorithm;
        f.pad(&if all.is_empty() { name.clone() } else { format!("{name}({})", all.join(",")) })
    }
}

/// A text that describes no candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` describes no candidate: write NAME or NAME(PARAMETER=NUMBER,...), as in knomial(radix=4)"
)]
pub struct BadCandidate(String);

impl FromStr for Candidate {
    type Err = BadCandidate;

    fn from_str(text: &str) -> Result<Self, BadCandidate> {
        let bad = || BadCandidate(text.to_owned());
        let word =
            |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let (name, rest) = text.split_once('(').map_or((text, None), |(n, r)| (n, Some(r)));
        if !word(name) {
            return Err(bad());
        }
        let mut candidate = Self::new(name);
        if let Some(rest) = rest {
            for item in items(rest.strip_suffix(')').ok_or_else(bad)?) {
                let Some((parameter, value)) = item.split_once('=').filter(|_| !item.contains('('))
                else {
                    candidate = candidate.of(item.parse().map_err(|_| bad())?);
                    continue;
                };
                let value = value.parse().ok().filter(|_| word(parameter)).ok_or_else(bad)?;
                candidate = candidate.with(parameter, value);
            }
        }
        // Nothing is made of one part: this is a parameter without a value.
        if candidate.parts.len() == 1 { Err(bad()) } else { Ok(candidate) }
    }
}

/// What is between commas, but for those in parentheses.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_read_back_from_its_text() {
        let candidate = Candidate::new("pipelined").with("radix", 2).with("chunk_bytes", 4096);
        assert_eq!(candidate.to_string(), "pipelined(chunk_bytes=4096,radix=2)");
        assert_eq!(candidate.to_string().parse(), Ok(candidate));
        assert_eq!("flat".parse(), Ok(Candidate::new("flat")));
        let [one, other] = ["flat", "knomial"].map(Candidate::new);
        let nested = Candidate::new("two_level").of(one).of(other.with("radix", 4)).with("x", 1);
        assert_eq!(nested.to_string(), "two_level(x=1,flat,knomial(radix=4))");
        assert_eq!(nested.to_string().parse(), Ok(nested));
        for bad in [
            "",
            "flat(",
            "flat()",
            "flat(radix)",
            "flat(a(b)",
            "flat(radix=x)",
            "flat(=1)",
            "a b",
            "a(,b)",
        ] {
            assert!(bad.parse::<Candidate>().is_err(), "{bad:?}");
        }
    }
}
