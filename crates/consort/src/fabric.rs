//! The facts about PEs on which algorithms depend: their kind, and which of them share memory. Also
//! the limit on their number.

use std::{fmt, path::PathBuf, str::FromStr};

use consort_fabric::Nodes;

/// The largest number of PEs of a job.
pub const MOST_PES: usize = 1024;

/// Whether PEs are threads, processes or MPI ranks, and which of them share memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fabric {
    /// Threads of one process.
    #[default]
    Threads,
    /// Processes of one machine.
    Processes,
    /// PEs of the processes that an MPI starts, which share no memory.
    Mpi(ProcessShape),
    /// As `Mpi`, but processes of one machine share memory: threads, processes and machines in one
    /// team.
    Mixed(MachineShape),
}

/// The placement of PEs on an MPI's processes. The PEs of one process are its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessShape {
    /// The number of PEs of each process, at least one.
    pub pes_each: usize,
    /// Whether ranks are dealt to the processes in turn, instead of in consecutive blocks.
    pub in_turn: bool,
}

impl ProcessShape {
    /// Each process is one PE.
    pub const SINGLE: Self = Self { pes_each: 1, in_turn: false };

    /// Returns the number of processes of `pes` PEs.
    #[must_use]
    pub fn processes(self, pes: usize) -> usize {
        pes.div_ceil(self.pes_each.max(1))
    }

    /// Returns the processes of the PEs of a world of `pes`.
    pub(crate) fn nodes(self, pes: u32) -> Nodes {
        if self.in_turn && self.pes_each > 1 {
            Nodes::InTurn(engine_count(self.processes(pes as usize).max(1)))
        } else {
            Nodes::Blocks(engine_count(self.pes_each.max(1)))
        }
    }
}

/// The placement of PEs on the machines on which an MPI starts processes. If ranks are dealt to the
/// processes in turn, they are dealt to the machines in turn, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineShape {
    /// The number of processes of each machine. `None` before they are started, if the MPI's
    /// launcher decides; then only threads are known to share memory.
    pub processes: Option<usize>,
    /// The placement of PEs on the processes.
    pub process: ProcessShape,
}

impl MachineShape {
    /// Returns the machines of the PEs of a world of `pes`.
    fn nodes(self, pes: u32) -> Nodes {
        let ProcessShape { pes_each, in_turn } = self.process;
        let pes_each = self.processes.unwrap_or(1).saturating_mul(pes_each);
        ProcessShape { pes_each, in_turn }.nodes(pes)
    }
}

/// Returns a number of PEs or processes as the engine counts them. Larger numbers become the
/// largest, because no job has more PEs than [`MOST_PES`].
pub(crate) fn engine_count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// The processes of an MPI that share memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// The processes of one machine.
    #[default]
    Machine,
    /// No processes: the MPI carries all messages between processes. For measurements and tests.
    Process,
}

impl Fabric {
    /// Returns the name, on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
            Self::Mpi(_) => "mpi",
            Self::Mixed(_) => "mixed",
        }
    }

    /// Returns the placement of PEs on an MPI's processes, if an MPI starts them.
    #[must_use]
    pub const fn shape(self) -> Option<ProcessShape> {
        match self {
            Self::Threads | Self::Processes => None,
            Self::Mpi(process) | Self::Mixed(MachineShape { process, .. }) => Some(process),
        }
    }

    /// Returns the fabric of a world of `pes` PEs, as [`Pe::fabric`](crate::Pe::fabric) reports it.
    /// If all PEs are on one machine, they are processes, or threads of one process. If each
    /// machine has one process, processes share no memory.
    #[must_use]
    pub fn in_world_of(self, pes: usize) -> Self {
        let Self::Mixed(MachineShape { processes: Some(on_machine), process }) = self else {
            return self;
        };
        match process.processes(pes) {
            0 | 1 => Self::Threads,
            all if all <= on_machine => Self::Processes,
            _ if on_machine == 1 => Self::Mpi(process),
            _ => self,
        }
    }

    /// Returns the nodes of a world of `pes` PEs; `None` if all PEs share memory.
    pub(crate) fn nodes(self, pes: u32) -> Option<Nodes> {
        match self {
            Self::Threads | Self::Processes => None,
            Self::Mpi(shape) => Some(shape.nodes(pes)),
            Self::Mixed(shape) => Some(shape.nodes(pes)),
        }
    }

    /// Returns the suffix of the machine's name in the wisdom of PEs other than threads.
    pub(crate) fn suffix(self) -> String {
        match self {
            Self::Threads => String::new(),
            _ => format!("; {self}"),
        }
    }

    /// Returns the path of the wisdom for such PEs, where `path` is that for threads. It has the
    /// fabric's name before the extension, as in `wisdom.processes.toml` and `wisdom.mpi-2.toml`.
    #[must_use]
    pub fn path_of_wisdom(self, path: PathBuf) -> PathBuf {
        if self == Self::Threads {
            return path;
        }
        let extension = path.extension();
        let extension =
            extension.map_or_else(String::new, |text| format!(".{}", text.to_string_lossy()));
        path.with_extension(format!("{}{extension}", self.to_string().replace(':', "-")))
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = self.name().to_owned();
        let ProcessShape { pes_each, in_turn } = self.shape().unwrap_or(ProcessShape::SINGLE);
        if let Self::Mixed(MachineShape { processes: Some(processes), .. }) = self {
            name += &format!(":{processes}x{pes_each}");
        } else if pes_each > 1 {
            name += &format!(":{pes_each}");
        }
        // The order of ranks is written with their number.
        let order = if in_turn && name.contains(':') { ":in-turn" } else { "" };
        f.pad(&(name + order))
    }
}

/// The error for a text that names no [`Fabric`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFabric(String);

impl fmt::Display for UnknownFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "unknown fabric `{text}`: use threads, processes, mpi or mixed; mpi:2 has \
             2 PEs per process, and mpi:2:in-turn deals ranks to the processes in \
             turn; mixed:4x2 has 4 such processes on each machine"
        )
    }
}

impl std::error::Error for UnknownFabric {}

impl FromStr for Fabric {
    type Err = UnknownFabric;

    fn from_str(text: &str) -> Result<Self, UnknownFabric> {
        let unknown = || UnknownFabric(text.to_owned());
        let number = |text: &str| {
            text.parse::<usize>().ok().filter(|&number| number > 0).ok_or_else(unknown)
        };
        let words: Vec<&str> = text.split(':').collect();
        let (name, count, in_turn) = match words[..] {
            ["threads"] => return Ok(Self::Threads),
            ["processes"] => return Ok(Self::Processes),
            [name] => (name, "1", false),
            [name, count] => (name, count, false),
            [name, count, "in-turn"] => (name, count, true),
            _ => return Err(unknown()),
        };
        let (processes, each) = match count.split_once('x') {
            Some((processes, each)) if name == "mixed" => (Some(number(processes)?), each),
            _ => (None, count),
        };
        let pes_each = number(each)?;
        // If each process is one PE, only the machines have an order.
        let in_turn = in_turn && (pes_each > 1 || processes.is_some());
        let process = ProcessShape { pes_each, in_turn };
        match name {
            "mpi" => Ok(Self::Mpi(process)),
            "mixed" => Ok(Self::Mixed(MachineShape { processes, process })),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixture_of_one_kind_is_that_kind() {
        for (fabric, pes, found) in [
            ("mixed:2x2", 2, "threads"),
            ("mixed:2x2", 4, "processes"),
            ("mixed:2x1", 2, "processes"),
            ("mixed:2x1", 4, "mixed:2x1"),
            ("mixed:1x2", 2, "threads"),
            ("mixed:1x2", 4, "mpi:2"),
            ("mixed:1x2:in-turn", 4, "mpi:2:in-turn"),
            ("mixed", 4, "mixed"),
            ("mpi", 2, "mpi"),
            ("threads", 2, "threads"),
        ] {
            let fabric: Fabric = fabric.parse().unwrap();
            assert_eq!(fabric.in_world_of(pes).to_string(), found, "{fabric}, {pes} PEs");
        }
    }

    #[test]
    fn fabrics_have_names() {
        let shape = |pes_each, in_turn| ProcessShape { pes_each, in_turn };
        let mixed = |processes, process| Fabric::Mixed(MachineShape { processes, process });
        for (fabric, name) in [
            (Fabric::Threads, "threads"),
            (Fabric::Processes, "processes"),
            (Fabric::Mpi(ProcessShape::SINGLE), "mpi"),
            (Fabric::Mpi(shape(2, false)), "mpi:2"),
            (Fabric::Mpi(shape(4, true)), "mpi:4:in-turn"),
            (mixed(None, ProcessShape::SINGLE), "mixed"),
            (mixed(None, shape(2, true)), "mixed:2:in-turn"),
            (mixed(Some(2), ProcessShape::SINGLE), "mixed:2x1"),
            (mixed(Some(2), shape(1, true)), "mixed:2x1:in-turn"),
            (mixed(Some(4), shape(2, true)), "mixed:4x2:in-turn"),
        ] {
            assert_eq!((fabric.to_string().as_str(), name.parse()), (name, Ok(fabric)));
        }
        assert_eq!("mpi:1:in-turn".parse(), Ok(Fabric::Mpi(ProcessShape::SINGLE)));
        for name in [
            "",
            "mpi:",
            "mpi:0",
            "mpi:two",
            "mpi:2x1",
            "mpi:2:blocks",
            "mpi:2:in-turn:",
            "mixed:x2",
            "mixed:0x2",
            "mixed:2x",
            "thread",
            "threads:2",
        ] {
            assert!(name.parse::<Fabric>().is_err(), "{name}");
        }
        let path = |fabric: Fabric| fabric.path_of_wisdom("a/wisdom.toml".into());
        let file = path(mixed(Some(2), shape(2, true)));
        assert_eq!(file, PathBuf::from("a/wisdom.mixed-2x2-in-turn.toml"));
        assert_eq!(path(Fabric::Threads), PathBuf::from("a/wisdom.toml"));
    }
}
