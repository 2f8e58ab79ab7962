//! The names of calls and the places where they were made, for errors.

use consort_fabric::Rank;

use super::job::Job;
use crate::{inbox::geometry::SEQUENCE_BITS, team::memory::GroupMemory};

impl Job {
    /// The text for a call without a name.
    pub(crate) const UNKNOWN_CALL: &str = "an unknown call";

    /// Returns the name of the call whose name number is in `word`.
    pub(crate) fn name_of(&self, word: u64) -> String {
        self.name(word >> SEQUENCE_BITS).unwrap_or_else(|| Self::UNKNOWN_CALL.to_owned())
    }

    /// Returns where a member of a group made the call with `word`, as ` at FILE:LINE`. Empty if
    /// the place is not known.
    pub(crate) fn place_of(
        &self,
        group: u64,
        memory: &GroupMemory,
        rank: Rank,
        word: u64,
    ) -> String {
        let index = memory.recent_index(rank, word).filter(|_| self.config().names_places);
        let site = index.and_then(|index| self.sites.site(group, rank, index));
        // A later call may have replaced the site in the meantime. Its log entry has then replaced
        // that of this call, so `recent_index` no longer finds this call.
        let site = site.filter(|_| index.is_some() && index == memory.recent_index(rank, word));
        site.map_or_else(String::new, |site| format!(" at {}:{}", site.file(), site.line()))
    }
}
