//! A part of a call for some PEs of the team.

use consort_fabric::{Place, Rank, Ranks, Span};

use super::part::View;

/// Some PEs of the team, whose ranks count from 0 among them. Their buffers may be elsewhere than
/// the caller's.
#[doc(hidden)]
#[derive(Clone, Copy, Hash)]
pub struct Sub {
    pub(crate) ranks: Ranks,
    /// The calling PE's rank among them.
    pub(crate) own: u32,
    pub(crate) buffers: Buffers,
}

/// The source and the target of a part.
#[derive(Clone, Copy, Hash)]
pub(crate) struct Buffers {
    pub(crate) source: Buffer,
    pub(crate) target: Buffer,
}

/// A buffer on each PE of a part. On PE `i` it begins at offset `first + i * apart` of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Buffer {
    pub(crate) place: Place,
    pub(crate) first: usize,
    pub(crate) apart: usize,
}

impl Buffer {
    /// Returns a buffer that begins on each PE where this one begins on PE `index`.
    pub(crate) const fn on(self, index: u32) -> Self {
        Self { first: self.first + index as usize * self.apart, apart: 0, ..self }
    }
}

impl Sub {
    /// Returns the view of all PEs of a call on the caller's buffers.
    #[cfg(feature = "compositions")]
    pub(crate) const fn whole(own: Rank, pes: u32) -> Self {
        let ranks = Ranks { first: 0, stride: 1, count: pes };
        let buffers = Buffers {
            source: Buffer::new(Place::Source, 0),
            target: Buffer::new(Place::Target, 0),
        };
        Self { ranks, own: own.0, buffers }
    }

    /// Returns the view of some of these PEs, given their ranks among them, whose buffers are
    /// places of this view.
    #[cfg(feature = "compositions")]
    pub(crate) fn part(&self, ranks: Ranks, own: u32, buffers: Buffers) -> Self {
        let Buffers { source, target } = buffers;
        let [source, target] = [source, target].map(|buffer| self.buffer(buffer, ranks));
        Self { ranks: self.ranks.some(ranks), own, buffers: Buffers { source, target } }
    }

    /// Returns the caller's buffer for a buffer of this view, on some of its PEs.
    #[cfg(feature = "compositions")]
    pub(crate) const fn buffer(&self, buffer: Buffer, ranks: Ranks) -> Buffer {
        let on = match buffer.place {
            Place::Source => self.buffers.source,
            Place::Target => self.buffers.target,
            _ => return buffer,
        };
        Buffer {
            place: on.place,
            first: on.on(ranks.first).first + buffer.first,
            apart: on.apart * ranks.stride as usize + buffer.apart,
        }
    }
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
        self.of(Rank(self.own), span)
    }

    fn of(&self, peer: Rank, span: Span) -> Span {
        let buffer = match span.place {
            Place::Source => self.buffers.source,
            Place::Target => self.buffers.target,
            _ => return span,
        };
        let Buffer { place, first, .. } = buffer.on(peer.0);
        Span { at: first + span.at, place, ..span }
    }
}
