//! A vector by value instead of a slice.
//~ error[E0308]: mismatched types
//~ at: mine
//~ label: expected `&[f64]`, found `Vec<f64>`

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, mine: Vec<f64>, all: &mut [f64]) -> Result<()> {
    #[cfg(not(right))]
    team.slices(mine, all).all_reduce(Sum)?;
    #[cfg(right)]
    team.slices(&mine, all).all_reduce(Sum)?;
    Ok(())
}
