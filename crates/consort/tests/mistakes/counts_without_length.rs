//! A scatter of different blocks whose receivers do not know the lengths of their blocks.
//~ error[E0277]: the buffers do not determine the length of the block that this PE receives
//~ at: scatter
//~ label: needs the length of this PE's block
//~ note: state it before the counts: `.with_len(len).with_counts(...)`

use consort::{Displacements, Rank, Result, Team};

pub fn deal(team: &Team, cards: &[u8], hands: &Displacements) -> Result<()> {
    #[cfg(not(right))]
    team.values(cards).with_counts(hands).scatter(Rank(0))?;
    #[cfg(right)]
    team.values(cards).with_len(5).with_counts(hands).scatter(Rank(0))?;
    Ok(())
}
