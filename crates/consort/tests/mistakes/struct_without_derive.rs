//! A struct that does not derive anything.
//~ error[E0277]: `Point` is not plain data, which slices and symmetric memory consist of
//~ at: points
//~ label: not plain data
//~ note: `#[derive(Clone, Copy, consort::Pod)]` with `#[repr(C)]`
//~ error[E0599]
//~ at: broadcast

use consort::{Rank, Result, Team};

#[cfg_attr(right, derive(Clone, Copy, consort::Pod))]
#[repr(C)]
pub struct Point {
    x: f64,
    y: f64,
}

pub fn share(team: &Team, points: &mut [Point]) -> Result<()> {
    team.in_place(points).broadcast(Rank(0))
}
