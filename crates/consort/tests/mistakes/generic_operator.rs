//! A generic function that lacks the bound on its operator.
//~ error[E0277]: does not combine values of `T`
//~ at: Sum
//~ label: not an operator on `T`

use consort::{
    Pod, Result, Team,
    ops::{Operator, Sum},
};

#[cfg(not(right))]
pub fn sums<T: Pod>(team: &Team, all: &mut [T], residuals: &mut [f32]) -> Result<()> {
    team.in_place(residuals).all_reduce(Sum)?;
    team.in_place(all).all_reduce(Sum)
}

#[cfg(right)]
pub fn sums<T: Pod>(team: &Team, all: &mut [T], residuals: &mut [f32]) -> Result<()>
where
    Sum: Operator<T>,
{
    team.in_place(residuals).all_reduce(Sum)?;
    team.in_place(all).all_reduce(Sum)
}
