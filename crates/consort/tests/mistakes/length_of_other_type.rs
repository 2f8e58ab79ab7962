//! A `u32` as the length of a plan.
//~ error[E0308]: mismatched types
//~ at: len
//~ label: expected `usize`, found `u32`

use consort::{Result, Team, ops::Sum};

pub fn plan(team: &Team, len: u32) -> Result<()> {
    #[cfg(not(right))]
    team.plan::<f64>(len).all_reduce(Sum)?;
    #[cfg(right)]
    team.plan::<f64>(len as usize).all_reduce(Sum)?;
    Ok(())
}
