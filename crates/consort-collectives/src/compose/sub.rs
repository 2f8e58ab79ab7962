//! A part of a call for some PEs of the team.

use consort_fabric::{Place, Rank, Ranks, Span};

use super::part::View;

/// Some PEs of the team, whose ranks count from 0 among them, with buffers that may be elsewhere
/// than the caller's.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Sub {
    pub(crate) ranks: Ranks,
    /// The calling PE's rank among them.
    pub(crate) own: u32,
    pub(crate) buffers: Buffers,
}

/// Where the buffers of a part are: each at an offset of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) source: (Place, usize),
    pub(crate) target: (Place, usize),
}

impl View for Sub {
    const ARE_LEADERS: bool = true;

    fn rank(&self, _: Rank) -> Rank {
        Rank(self.own)
    }

    fn size(&self, _: u32) -> u32 {
        self.ranks.count
    }

    fn peer(&self, rank: Rank) -> Rank {
        Rank(self.ranks.rank(rank.0))
    }

    fn own(&self, span: Span) -> Span {
        let (place, at) = match span.place {
            Place::Source => self.buffers.source,
            Place::Target => self.buffers.target,
            place => (place, 0),
        };
        Span { place, at: at + span.at, bytes: span.bytes }
    }

    fn of(&self, _: Rank, span: Span) -> Span {
        self.own(span)
    }
}
