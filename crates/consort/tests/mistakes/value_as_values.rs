//! One value where a call takes several.
//~ error[E0308]: mismatched types
//~ at: mine
//~ label: expected `&[_]`, found `f64`

use consort::{Result, Team, ops::Sum};

pub fn sum(team: &Team, mine: f64) -> Result<()> {
    #[cfg(not(right))]
    team.values(mine).all_reduce(Sum)?;
    #[cfg(right)]
    team.all_reduce(mine, Sum)?;
    Ok(())
}
