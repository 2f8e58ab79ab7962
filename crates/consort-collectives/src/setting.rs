//! Settings: the input of a schedule.

use consort_fabric::{CallSpec, Capabilities, Channel, Collective, Place, Rank, Span, SyncMode};

/// The input of a schedule: a call, the PE's rank, and the fabric's resources for the algorithm.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Setting {
    /// The call.
    pub call: CallSpec,
    /// The PE that the schedule is for.
    pub rank: Rank,
    /// The fabric's capabilities.
    pub capabilities: Capabilities,
    /// The first channel of the inbox that the algorithm may use.
    pub first_channel: u32,
    /// Whether its signals use the second signal words of their channels, as an entry barrier's do.
    pub second_word: bool,
    /// The counter that the algorithm may use.
    pub counter: u32,
    /// Whether the algorithm serves the whole call, rather than a part of another algorithm's.
    pub is_whole: bool,
}

/// A pairwise exchange that is the whole call between a root and a leaf: one of them has data for
/// the other.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Exchange {
    pub(crate) peer: Rank,
    pub(crate) channel: Channel,
    pub(crate) is_root: bool,
}

impl Setting {
    /// Returns whether data of `bytes` bytes is sent in a pairwise exchange.
    #[must_use]
    pub(crate) fn is_pairwise(&self, bytes: usize) -> bool {
        (1..=self.capabilities.pairwise_bytes).contains(&bytes)
    }

    /// Returns the setting of PE 0 for a call, or for the call of a tuner's query.
    #[must_use]
    pub fn of(call: impl Into<CallSpec>, capabilities: Capabilities) -> Self {
        let call = call.into();
        let first_channel = Self::first_channel(call.collective, call.pes);
        let (rank, second_word, counter, is_whole) = (Rank(0), false, 1, true);
        Self { call, rank, capabilities, first_channel, second_word, counter, is_whole }
    }

    /// Returns the first channel for an operation's own messages. Channel 0 is for counters; the
    /// next channels, one per PE, are for entry and exit barriers.
    #[must_use]
    pub const fn first_channel(collective: Collective, pes: u32) -> u32 {
        if matches!(collective, Collective::Barrier) { 1 } else { 1 + pes }
    }

    /// Returns the same setting for another PE.
    #[must_use]
    pub const fn at(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }

    /// Returns whether offsets up to twice the data that a PE contributes or receives fit in a
    /// `usize`, because algorithms compute such offsets.
    #[must_use]
    pub fn is_addressable(&self) -> bool {
        let all = self.call.bytes.checked_mul(2 * self.call.pes as usize);
        all.is_some_and(|all| isize::try_from(all).is_ok())
    }

    /// Returns whether the caller may leave while its buffers are still in use.
    #[must_use]
    pub fn leaves_early(&self) -> bool {
        self.call.symmetric && self.call.sync.exit == SyncMode::None
    }

    /// Returns the pairwise exchange that serves the whole call, if one can: one of two PEs has a
    /// few words for the other, and both leave when both have entered.
    #[must_use]
    pub(crate) fn exchange(&self) -> Option<Exchange> {
        let CallSpec { pes, bytes, root, .. } = self.call;
        let is_short = pes == 2 && self.is_pairwise(bytes) && self.call.is_private();
        let serves = is_short && self.call.has_barrier() && self.capabilities.buffered;
        (serves && self.is_whole).then(|| Exchange {
            peer: Rank(1 - self.rank.0),
            channel: self.channel(0),
            is_root: self.rank == root,
        })
    }

    /// Returns the buffer with the PE's contribution: the target, if a result replaces it there.
    #[must_use]
    pub fn contribution(&self) -> Place {
        let CallSpec { collective, root, in_place, .. } = self.call;
        let has_result = !collective.is_rooted() || self.rank == root;
        if in_place && has_result { Place::Target } else { Place::Source }
    }

    /// Returns channel `index` of those that the algorithm may use.
    #[must_use]
    pub const fn channel(&self, index: u32) -> Channel {
        let channel = Channel::new(self.first_channel + index);
        if self.second_word { channel.second() } else { channel }
    }

    /// Returns the number of lines that the algorithm may use.
    #[must_use]
    pub const fn lines(&self) -> u32 {
        self.capabilities.inbox_channels.saturating_sub(self.first_channel)
    }

    /// Returns block `index` of the PE's contribution.
    #[must_use]
    pub const fn source_block(&self, index: u32) -> Span {
        Span::source(index as usize * self.call.bytes, self.call.bytes)
    }

    /// Returns block `index` of the PE's result.
    #[must_use]
    pub const fn target_block(&self, index: u32) -> Span {
        Span::target(index as usize * self.call.bytes, self.call.bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use consort_fabric::{OperatorClass, Query, SyncModes};

    use super::*;

    /// Returns a setting of PE 0 of four in symmetric memory, with `lines` lines for the algorithm.
    /// PEs signal that they have entered, and do not wait at the end.
    pub(crate) fn with_lines(collective: Collective, lines: u32) -> Setting {
        let query = Query {
            collective,
            sync: SyncModes { entry: SyncMode::Mine, exit: SyncMode::None },
            pes: 4,
            bytes: 64,
            operator: OperatorClass::Commutative,
            symmetric: true,
        };
        let capabilities = Capabilities::with_memory(
            Setting::first_channel(collective, query.pes) + lines,
            8192,
            0,
        );
        Setting::of(&query, capabilities)
    }
}
