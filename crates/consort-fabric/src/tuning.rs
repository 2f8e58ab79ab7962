//! The subject of tuning: collectives, and a [`Query`] about one.

use std::{fmt, str::FromStr};

use crate::{OperatorClass, SyncModes, suggest::suggest, units::size};

crate::named_enum! {
    /// A collective operation.
    ///
    /// Data is divided into *blocks* of equal length. A PE contributes and receives no block, one
    /// block, or one block for each PE of the team. Vector variants do the same with blocks of any
    /// lengths; only the PEs that contribute or receive a block know its length.
    ///
    /// A collective's name is also the name of its method, and its key in wisdom.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Collective {
        /// No PE leaves before all have entered.
        Barrier = "barrier",
        /// The root's block, to every PE.
        Broadcast = "broadcast",
        /// Block `i` of the root, to PE `i`.
        Scatter = "scatter",
        /// Every PE's block, to the root, in the order of the ranks.
        Gather = "gather",
        /// Every PE's block, to every PE, in the order of the ranks.
        AllGather = "all_gather",
        /// Block `i` of PE `j`, to PE `i`, as its block `j`: MPI's all-to-all.
        AllToAll = "all_to_all",
        /// Every PE's block, combined, to the root.
        Reduce = "reduce",
        /// Every PE's block, combined, to every PE.
        AllReduce = "all_reduce",
        /// Block `i` of every PE, combined, to PE `i`.
        ReduceScatter = "reduce_scatter",
        /// The blocks of PEs 0 to `i`, combined, to PE `i`.
        Scan = "scan",
        /// The blocks of PEs 0 to `i - 1`, combined, to PE `i`; PE 0 has no result.
        ExclusiveScan = "exclusive_scan",
        /// The vector variant of [`Collective::Scatter`].
        ScatterVector = "scatter_vector",
        /// The vector variant of [`Collective::Gather`].
        GatherVector = "gather_vector",
        /// The vector variant of [`Collective::AllGather`].
        AllGatherVector = "all_gather_vector",
        /// The vector variant of [`Collective::AllToAll`].
        AllToAllVector = "all_to_all_vector",
    }
}

impl Collective {
    /// Returns every collective on blocks of equal length. Algorithms are chosen for these.
    pub fn regulars() -> impl Iterator<Item = Self> {
        Self::EVERY.into_iter().filter(|one| !one.is_vector())
    }

    /// Returns this collective on blocks of equal length.
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

    /// Returns whether blocks may differ in length.
    #[inline]
    #[must_use]
    pub const fn is_vector(self) -> bool {
        matches!(
            self,
            Self::ScatterVector | Self::GatherVector | Self::AllGatherVector | Self::AllToAllVector
        )
    }

    /// Returns whether the collective has a root, from which the data comes or to which it goes.
    #[inline]
    #[must_use]
    pub const fn is_rooted(self) -> bool {
        matches!(self.regular(), Self::Broadcast | Self::Scatter | Self::Gather | Self::Reduce)
    }

    /// Returns whether it combines data with an operator.
    #[inline]
    #[must_use]
    pub const fn combines(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::AllReduce | Self::ReduceScatter | Self::Scan | Self::ExclusiveScan
        )
    }

    /// Returns how many blocks a PE of a team of `pes` contributes. `is_root` says whether the PE
    /// is the root. For algorithms, and for programs whose parameter is the collective. PEs are
    /// counted as in [`Query::pes`].
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

    /// Returns how many blocks a PE of a team of `pes` receives. `is_root` says whether the PE is
    /// the root. The root of a broadcast already has its block. For the same programs as
    /// [`Collective::source_blocks`].
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

/// The error for a text that does not name a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCollective {
    given: String,
}

impl fmt::Display for UnknownCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given } = self;
        let names = Collective::EVERY.map(Collective::name);
        write!(f, "unknown collective `{given}`: ")?;
        if let Some(name) = suggest(given, &names) {
            write!(f, "did you mean {name}? Otherwise ")?;
        }
        write!(f, "use {}", names.join(", "))
    }
}

impl std::error::Error for UnknownCollective {}

impl FromStr for Collective {
    type Err = UnknownCollective;

    /// Reads a name. Dashes may also separate its words.
    fn from_str(text: &str) -> Result<Self, UnknownCollective> {
        let name = text.replace('-', "_");
        Self::EVERY
            .into_iter()
            .find(|collective| collective.name() == name)
            .ok_or_else(|| UnknownCollective { given: text.to_owned() })
    }
}

/// The facts on which a choice of algorithm may depend. All PEs of a team agree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The operation.
    pub collective: Collective,
    /// Its synchronization modes.
    pub sync: SyncModes,
    /// The size of the team, in the type of wisdom files, which does not depend on the machine.
    pub pes: u32,
    /// Bytes of a block; 0 for a barrier. Also in the type of wisdom files.
    pub bytes: u64,
    /// The class of the operator; `Commutative` if nothing is combined.
    pub operator: OperatorClass,
    /// Whether the buffers are in symmetric memory, which peers reach without a rendezvous.
    pub symmetric: bool,
}

impl fmt::Display for Query {
    /// Writes `loose reduce of 8 KiB on 2 PEs, symmetric`, without properties that do not apply.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, sync, pes, bytes, operator, symmetric } = *self;
        if collective == Collective::Barrier {
            return write!(f, "barrier of {pes} PEs");
        }
        let is_ordered = collective.combines() && operator == OperatorClass::Ordered;
        let ordered = if is_ordered { " ordered" } else { "" };
        let memory = if symmetric { ", symmetric" } else { "" };
        write!(f, "{sync}{ordered} {collective} of {} on {pes} PEs{memory}", size(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_query_has_only_what_applies() {
        let query = |collective| Query {
            collective,
            sync: SyncModes::LOOSE,
            pes: 4,
            bytes: 8192,
            operator: OperatorClass::Ordered,
            symmetric: true,
        };
        let text = |collective| query(collective).to_string();
        assert_eq!(text(Collective::Barrier), "barrier of 4 PEs");
        assert_eq!(text(Collective::Reduce), "loose ordered reduce of 8 KiB on 4 PEs, symmetric");
        assert_eq!(text(Collective::Broadcast), "loose broadcast of 8 KiB on 4 PEs, symmetric");
        let private = Query { symmetric: false, ..query(Collective::Broadcast) };
        assert_eq!(private.to_string(), "loose broadcast of 8 KiB on 4 PEs");
    }

    #[test]
    fn collective_is_read_with_dashes_or_gets_a_hint() {
        assert_eq!("all-to-all".parse(), Ok(Collective::AllToAll));
        let error = "allreduce".parse::<Collective>().unwrap_err().to_string();
        assert!(error.contains("did you mean all_reduce? Otherwise use barrier, "), "{error}");
        let error = "shuffle".parse::<Collective>().unwrap_err().to_string();
        assert!(error.contains(": use barrier, "), "{error}");
    }
}
