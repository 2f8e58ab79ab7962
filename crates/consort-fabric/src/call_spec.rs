//! The specification of a call: everything that must match on all PEs of its team.

use std::fmt;

use crate::{Collective, OperatorClass, Query, Rank, SyncMode, SyncModes};

/// The specification of a call: everything that must match on all PEs of a team. Its text is the
/// call's name.
///
/// It excludes a PE's rank and the addresses of its buffers. It includes the tuner's query: see
/// [`CallSpec::query`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallSpec {
    /// The operation.
    pub collective: Collective,
    /// Its synchronization modes.
    pub sync: SyncModes,
    /// The team's size.
    pub pes: u32,
    /// The root; 0 for an operation without a root.
    pub root: Rank,
    /// Bytes of a block; 0 for a vector variant, where only the PEs that have a block know its
    /// length.
    pub bytes: usize,
    /// If this is the first piece of a longer call, the bytes of that call's block; otherwise 0. So
    /// PEs whose calls have different lengths differ in the first piece.
    pub whole_bytes: usize,
    /// The element type's name, from the compiler.
    pub datatype: &'static str,
    /// Bytes of an element. An operation that combines elements never splits one.
    pub element_bytes: usize,
    /// The operator's name; empty for an operation that does not combine.
    pub operator: &'static str,
    /// The operator's class.
    pub class: OperatorClass,
    /// Whether the buffers are in symmetric memory, which peers reach without a rendezvous.
    pub symmetric: bool,
    /// Whether the caller may make other calls while this one is pending.
    pub nonblocking: bool,
    /// Whether results replace contributions: a PE with a result has its contribution in the
    /// target, and no source.
    pub in_place: bool,
}

impl CallSpec {
    /// Returns a blocking barrier of a team of `pes`.
    #[must_use]
    pub const fn barrier(pes: u32) -> Self {
        Self {
            collective: Collective::Barrier,
            sync: SyncModes::STRICT,
            pes,
            root: Rank(0),
            bytes: 0,
            whole_bytes: 0,
            datatype: "",
            element_bytes: 1,
            operator: "",
            class: OperatorClass::Commutative,
            symmetric: false,
            nonblocking: false,
            in_place: false,
        }
    }

    /// Returns whether no PE leaves before all have entered.
    #[must_use]
    pub fn synchronizes(&self) -> bool {
        self.collective == Collective::Barrier
            || self.asks_for_all()
            || (self.is_private() && self.depends_on_all())
    }

    /// Returns whether this is the first piece of a longer call.
    #[must_use]
    pub const fn is_first_piece(&self) -> bool {
        self.whole_bytes > 0
    }

    fn asks_for_all(&self) -> bool {
        self.sync.entry == SyncMode::All || self.sync.exit == SyncMode::All
    }

    /// Returns whether the modes require a barrier before or after the algorithm.
    #[must_use]
    pub fn has_barrier(&self) -> bool {
        let comes_with_data = self.is_private() && self.depends_on_all();
        self.collective != Collective::Barrier && self.asks_for_all() && !comes_with_data
    }

    /// Returns whether the buffers are private to their callers until they leave, so that no other
    /// PE sees when data moves.
    #[must_use]
    pub const fn is_private(&self) -> bool {
        !self.symmetric && !self.nonblocking
    }

    /// Returns whether every PE's result depends on the contributions of all PEs.
    #[must_use]
    pub const fn depends_on_all(&self) -> bool {
        use Collective::{AllGather, AllReduce, AllToAll, ReduceScatter};
        matches!(self.collective, AllGather | AllReduce | AllToAll | ReduceScatter)
            && self.bytes > 0
    }

    /// Returns the tuner's query for such a call.
    #[must_use]
    pub const fn query(&self) -> Query {
        Query {
            collective: self.collective,
            sync: self.sync,
            pes: self.pes,
            bytes: self.bytes as u64,
            operator: self.class,
            symmetric: self.symmetric,
        }
    }
}

/// Converts a query to a blocking call that it describes, on elements of eight bytes and with root
/// 0.
impl From<&Query> for CallSpec {
    fn from(query: &Query) -> Self {
        Self {
            collective: query.collective,
            sync: query.sync,
            bytes: usize::try_from(query.bytes).unwrap_or(usize::MAX),
            datatype: "u64",
            element_bytes: 8,
            operator: if query.collective.combines() { "sum" } else { "" },
            class: query.operator,
            symmetric: query.symmetric,
            ..Self::barrier(query.pes)
        }
    }
}

impl fmt::Display for CallSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nonblocking {
            f.write_str("start ")?;
        }
        write!(f, "{}", self.collective)?;
        if self.collective == Collective::Barrier {
            return f.write_str("()");
        }
        let datatype = readable_type(self.datatype);
        if self.collective.is_vector() {
            write!(f, "(blocks of {datatype}")?;
        } else {
            let bytes = if self.is_first_piece() { self.whole_bytes } else { self.bytes };
            write!(f, "({bytes} bytes of {datatype}")?;
        }
        if self.collective.combines() {
            write!(f, ", {}", self.operator)?;
        }
        if self.collective.is_rooted() {
            write!(f, ", root {}", self.root)?;
        }
        write!(f, ", {})", self.sync)?;
        if self.is_first_piece() {
            write!(f, " in pieces of {} bytes", self.bytes)?;
        }
        if self.in_place {
            f.write_str(" in place")?;
        }
        if self.symmetric { f.write_str(" in symmetric memory") } else { Ok(()) }
    }
}

/// Paths of modules that programs do not write, and the paths that they write instead.
const PATHS: [(&str, &str); 3] = [
    ("core::option::Option", "Option"),
    ("half::bfloat::bf16", "half::bf16"),
    ("half::binary16::f16", "half::f16"),
];

/// Returns the name of an element type as programs write it, from the compiler's name. The compiler
/// names a type by the module that defines it, which may be private to its crate.
#[must_use]
pub fn readable_type(name: &str) -> String {
    PATHS.iter().fold(name.to_owned(), |name, (path, written)| name.replace(path, written))
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::*;

    #[test]
    fn first_piece_is_named_by_the_whole_call() {
        let piece = CallSpec {
            collective: Collective::AllReduce,
            bytes: 1 << 20,
            datatype: "f32",
            operator: "sum",
            ..CallSpec::barrier(2)
        };
        let first = CallSpec { whole_bytes: 3 << 20, ..piece };
        assert_eq!(first.query(), piece.query());
        let sync = piece.sync;
        assert_eq!(piece.to_string(), format!("all_reduce(1048576 bytes of f32, sum, {sync})"));
        assert_eq!(
            first.to_string(),
            format!("all_reduce(3145728 bytes of f32, sum, {sync}) in pieces of 1048576 bytes")
        );
    }

    #[test]
    fn types_are_named_as_programs_write_them() {
        let name = readable_type(type_name::<(Option<Option<bool>>, [u8; 3])>());
        assert_eq!(name, "(Option<Option<bool>>, [u8; 3])");
        #[cfg(feature = "half")]
        assert_eq!(
            readable_type(type_name::<(half::f16, [half::bf16; 2])>()),
            "(half::f16, [half::bf16; 2])"
        );
        #[cfg(feature = "num-complex")]
        assert_eq!(
            readable_type(type_name::<num_complex::Complex<f32>>()),
            "num_complex::Complex<f32>"
        );
    }
}
