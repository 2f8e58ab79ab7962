//! Bits of floats.
//~ error[E0277]: does not combine values of `f64`
//~ at: BitAnd
//~ label: not an operator on `f64`
//~ note: `BitAnd`, `BitOr` and `BitXor` combine integers and `bool`
//~ note: pass an associative closure, `|a: f64, b: f64| ...`

use consort::{
    Result, Team,
    ops::{BitAnd, Max},
};

pub fn combine(team: &Team, mine: &[f64], all: &mut [f64]) -> Result<()> {
    #[cfg(not(right))]
    team.slices(mine, all).all_reduce(BitAnd)?;
    #[cfg(right)]
    team.slices(mine, all).all_reduce(Max)?;
    Ok(())
}
