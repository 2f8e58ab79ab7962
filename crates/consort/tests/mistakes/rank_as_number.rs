//! A number in place of a rank.
//~ error[E0308]: mismatched types
//~ at: 0
//~ label: expected `Rank`, found integer

use consort::{Rank, Result, Team};

pub fn from_first(team: &Team, x: f64) -> Result<f64> {
    #[cfg(not(right))]
    return team.broadcast(x, 0);
    #[cfg(right)]
    return team.broadcast(x, Rank(0));
}
