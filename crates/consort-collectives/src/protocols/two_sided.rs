//! Two-sided messages over one-sided access: the send and receive of RCCE (Petrović 2015, section
//! 4.2).
//!
//! A message goes through the message buffer of its sender, in pieces that fit there:
//!
//! | sender | receiver |
//! | --- | --- |
//! | puts the piece into its own buffer | waits |
//! | sets the receiver's flag | |
//! | waits | gets the piece from the sender's buffer to its memory |
//! | | sets the sender's flag |
//!
//! Both are synchronous: a send ends when the receiver has the message. If all PEs send first, they
//! wait for each other forever, so an algorithm must make its PEs send and receive in turn.
//!
//! Cost of a piece: a copy into the buffer, a get from it, and two signals, one after the other.

use consort_fabric::{Channel, MachineModel, Messages, Op, Query, Rank, Rma, Span, Step};

use crate::Setting;

/// The flags of messages between all PEs of a call, and the size of their pieces.
///
/// Each PE has a flag for every peer that sends to it, and one for every peer that receives from
/// it. Messages between the same PEs are numbered by the steps of their pieces.
#[derive(Clone, Copy, Hash)]
pub struct TwoSided {
    piece: usize,
    /// The flags of PE 0 as a sender and as a receiver; those of the other PEs follow.
    sent: Channel,
    taken: Channel,
}

impl TwoSided {
    /// Returns set number `lane` of the flags of a call, and pieces that fill the message buffer.
    /// `None` if there is no buffer, or the inbox is too small.
    #[must_use]
    pub fn new(setting: &Setting, lane: u32) -> Option<Self> {
        let (pes, piece) = (setting.call.pes, setting.capabilities.buffer_bytes);
        let first = lane.checked_mul(2 * pes)?;
        let last = first.checked_add(2 * pes)?;
        (piece > 0 && last <= setting.lines()).then(|| Self {
            piece,
            sent: setting.channel(first),
            taken: setting.channel(first + pes),
        })
    }

    /// Returns the number of pieces of a message, at least one. `None` if they cannot be counted.
    #[must_use]
    pub fn pieces(&self, bytes: usize) -> Option<Step> {
        Step::try_from(bytes.div_ceil(self.piece).max(1)).ok()
    }

    /// Returns the pieces of a message, each with its step.
    fn cut(self, first: Step, message: Span) -> impl Iterator<Item = (Step, Span)> {
        let starts = (0..message.bytes.max(1)).step_by(self.piece);
        (first..).zip(starts).map(move |(step, start)| {
            let bytes = self.piece.min(message.bytes - start);
            (step, Span { at: message.at + start, bytes, ..message })
        })
    }

    /// Sends a message whose first piece has step `first`, and waits until it is received.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn send<F: Messages + Rma>(self, f: &F, to: Rank, first: Step, source: Span) -> Op {
        for (step, piece) in self.cut(first, source) {
            f.copy(Span::buffer(0, piece.bytes), piece).await?;
            f.signal(to, of(self.sent, f.rank()), step).await?;
            f.wait(of(self.taken, to), step).await?;
        }
        Ok(())
    }

    /// Receives a message of the length of `target` whose first piece has step `first`.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline(always)]
    pub async fn receive<F: Messages + Rma>(
        self,
        f: &F,
        from: Rank,
        first: Step,
        target: Span,
    ) -> Op {
        for (step, piece) in self.cut(first, target) {
            f.wait(of(self.sent, from), step).await?;
            let sent = f.reach(from, Span::buffer(0, piece.bytes));
            f.get(&sent, 0, piece).await?;
            f.signal(from, of(self.taken, f.rank()), step).await?;
        }
        Ok(())
    }

    /// Returns the model's estimate for a message, in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, bytes: f64, model: &MachineModel) -> f64 {
        bytes / model.copy_gbps + model.pulled_ns(bytes, 1.0) + model.hops_ns(2.0, query.pes)
    }
}

/// Returns a PE's flag among those of all PEs.
fn of(first: Channel, rank: Rank) -> Channel {
    let channel = Channel::new(first.index() + rank.0);
    if first.is_second() { channel.second() } else { channel }
}

#[cfg(test)]
mod tests {
    use consort_fabric::Collective;

    use super::*;
    use crate::setting::tests::with_lines;

    fn two_sided(lines: u32, buffer_bytes: usize, lane: u32) -> Option<TwoSided> {
        let mut setting = with_lines(Collective::Broadcast, lines);
        setting.capabilities.buffer_bytes = buffer_bytes;
        TwoSided::new(&setting, lane)
    }

    #[test]
    fn messages_are_cut_into_pieces_that_fill_the_buffer() {
        let two_sided = two_sided(8, 100, 0).expect("it fits");
        let cut = |bytes| {
            let pieces = two_sided.cut(5, Span::target(30, bytes));
            let pieces: Vec<_> = pieces.map(|(step, it)| (step, it.at, it.bytes)).collect();
            assert_eq!(Some(pieces.len()), two_sided.pieces(bytes).map(|count| count as usize));
            pieces
        };
        assert_eq!(cut(0), [(5, 30, 0)]);
        assert_eq!(cut(100), [(5, 30, 100)]);
        assert_eq!(cut(201), [(5, 30, 100), (6, 130, 100), (7, 230, 1)]);
    }

    #[test]
    fn each_lane_has_two_flags_for_each_pe() {
        assert!(two_sided(7, 100, 0).is_none() && two_sided(15, 100, 1).is_none());
        assert!(two_sided(8, 0, 0).is_none(), "no buffer");
        let [first, second] = [0, 1].map(|lane| two_sided(16, 100, lane).expect("it fits"));
        let all = [first.sent, first.taken, second.sent, second.taken].map(Channel::index);
        assert!(all.is_sorted_by(|one, next| one + 4 == *next), "{all:?}");
    }
}
