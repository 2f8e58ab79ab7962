//! A slice of `bool`, which is not plain data.
//~ error[E0277]: `bool` is not plain data, which slices and symmetric memory consist of
//~ at: flags
//~ label: not plain data
//~ note: in slices use `u8` for `bool` and `u32` for `char`
//~ error[E0599]
//~ at: all_reduce

use consort::{Result, Team, ops::BitAnd};

pub fn all(team: &Team, flags: &mut [bool]) -> Result<()> {
    #[cfg(not(right))]
    team.in_place(flags).all_reduce(BitAnd)?;
    #[cfg(right)]
    team.values(flags).all_reduce(BitAnd)?;
    Ok(())
}
