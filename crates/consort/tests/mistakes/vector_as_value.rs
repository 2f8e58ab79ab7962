//! A vector where a call takes one value.
//~ error[E0277]: `Vec<f64>` cannot be passed by value
//~ at: mine
//~ label: neither plain data, nor `bool`, `char`, an option or a tuple of such
//~ note: a slice or a `Vec` goes as `team.values(&v)`, `team.slices(...)` or
//~ error[E0277]: does not combine values of `Vec<f64>`
//~ at: Sum
//~ label: not an operator on `Vec<f64>`

use consort::{Result, Team, ops::Sum};

pub fn sums(team: &Team, mut mine: Vec<f64>) -> Result<()> {
    #[cfg(not(right))]
    team.all_reduce(mine, Sum)?;
    #[cfg(right)]
    team.in_place(&mut mine).all_reduce(Sum)?;
    Ok(())
}
