//! No `?` after a call.
//~ warning[unused_must_use]: unused `Result` that must be used
//~ at: team.in_place(sums).all_reduce(Sum)

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, sums: &mut [u32]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(sums).all_reduce(Sum);
    #[cfg(right)]
    team.in_place(sums).all_reduce(Sum)?;
    Ok(())
}
