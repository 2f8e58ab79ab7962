//! A scatter whose receivers do not know the length of a block.
//~ error[E0277]: only the root knows the length of this PE's block
//~ at: scatter
//~ label: needs the length of this PE's block
//~ note: state it: `.with_len(len).scatter(root)`

use consort::{Rank, Result, Team};

pub fn deal(team: &Team, cards: Vec<u8>) -> Result<()> {
    #[cfg(not(right))]
    team.start(cards).scatter(Rank(0))?.wait()?;
    #[cfg(right)]
    team.start(cards).with_len(5).scatter(Rank(0))?.wait()?;
    Ok(())
}
