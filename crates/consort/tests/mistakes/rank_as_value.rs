//! A rank in a call on values.
//~ error[E0277]: `Rank` cannot be passed by value
//~ at: team.right()
//~ note: a `Rank` goes as its number, `rank.0`

use consort::{Result, Team};

pub fn neighbours(team: &Team) -> Result<()> {
    #[cfg(not(right))]
    team.all_gather(team.right())?;
    #[cfg(right)]
    team.all_gather(team.right().0)?;
    Ok(())
}
