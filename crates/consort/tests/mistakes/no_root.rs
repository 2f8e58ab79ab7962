//! No root.
//~ error[E0061]
//~ at: broadcast

use consort::{Rank, Result, Team};

pub fn share(team: &Team, table: &mut [u32]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(table).broadcast()?;
    #[cfg(right)]
    team.in_place(table).broadcast(Rank(0))?;
    Ok(())
}
