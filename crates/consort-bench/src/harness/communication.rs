//! The communication that a run times, a collective or a point-to-point pattern, and the machine
//! limits that apply to it.

use std::fmt;

use consort::tune::Collective;

use super::point_to_point::Pattern;
use crate::limits::Limit;

/// The communication that a run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Communication {
    /// Calls of a collective.
    Collective(Collective),
    /// Operations between two PEs.
    PointToPoint(Pattern),
}

impl Communication {
    /// Returns the name, on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collective(what) => what.name(),
            Self::PointToPoint(pattern) => pattern.name(),
        }
    }

    /// Returns whether it is a barrier, which moves no data.
    pub fn is_barrier(self) -> bool {
        self == Self::Collective(Collective::Barrier)
    }

    /// Returns the bandwidth limits that apply to it.
    pub fn limits(self) -> &'static [Limit] {
        match self {
            Self::Collective(Collective::Barrier) | Self::PointToPoint(_) => &[],
            Self::Collective(what) if what.combines() => {
                &[Limit::Copy, Limit::Pull, Limit::Combine, Limit::PullCombine]
            }
            Self::Collective(_) => &[Limit::Copy, Limit::Pull],
        }
    }

    /// Returns the limits that its bandwidth is compared with. Data that is not rewritten may come
    /// from a core's own cache.
    pub(super) fn share_limits(self, rewrites: bool) -> &'static [Limit] {
        match self {
            Self::Collective(Collective::Barrier) | Self::PointToPoint(_) => &[],
            Self::Collective(what) if what.combines() => &[Limit::Combine, Limit::PullCombine],
            Self::Collective(_) if rewrites => &[Limit::Pull],
            Self::Collective(_) => &[Limit::Copy],
        }
    }

    /// Returns the number of bytes that a core has to move sequentially, with blocks of `bytes`
    /// bytes. Copies to several receivers are concurrent. Combining takes one operation fewer than
    /// there are contributions.
    pub fn bytes_moved(self, pes: u32, bytes: usize) -> f64 {
        let others = pes.saturating_sub(1);
        let times = match self {
            Self::Collective(what) => match what.regular() {
                Collective::Barrier => 0,
                Collective::Broadcast | Collective::Scatter | Collective::Gather => 1,
                // Every PE has to receive or combine one block from each other PE. In an all-reduce
                // or a scan, the partial results can be divided among all PEs.
                Collective::AllGather
                | Collective::AllToAll
                | Collective::Reduce
                | Collective::AllReduce
                | Collective::ReduceScatter => others,
                Collective::Scan | Collective::ExclusiveScan => 1.min(others),
                vector => unreachable!("{vector} is not regular"),
            },
            Self::PointToPoint(pattern) => pattern.messages().unwrap_or(2),
        };
        f64::from(times) * bytes as f64
    }
}

impl fmt::Display for Communication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_moved_depend_on_call_and_pes() {
        let moved = |what: Communication, pes| what.bytes_moved(pes, 64);
        assert_eq!(moved(Communication::Collective(Collective::Broadcast), 3), 64.0);
        assert_eq!(moved(Communication::Collective(Collective::Reduce), 1), 0.0);
        assert_eq!(moved(Communication::PointToPoint(Pattern::PutRate), 2), 4096.0);
    }
}
