//! Checks a product against entries that are computed again.
//!
//! Freivalds (1979), "Fast probabilistic algorithms": if C x = A (B x) for a random x, then C = A
//! B. This is wrong only with a probability of one over the number of values of an entry of x. All
//! entries are integers, and all sums are less than 2^53, so both sides are exact and must be
//! equal. Small products are also compared entry by entry with the sums of the definition.

use consort::{Result, Team, ops::Sum};
use consort_apps_kernels::{
    entries::{entry, hash},
    matrix::Matrix,
};

use crate::Problem;

/// The number of bits in an entry of x.
const BITS: u32 = 12;

/// The number of random vectors to try.
const VECTORS: u64 = 3;

/// The longest extent of products that are compared entry by entry.
const SMALL: usize = 300;

/// The error of a wrong product.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the product is wrong: {differences} comparisons fail")]
pub struct Wrong {
    /// Rows of C x and entries of C that differ, over all PEs.
    pub differences: usize,
}

/// Returns this PE's part of A times a vector: some rows, computed from the definition of the
/// entries.
fn rows_times(
    world: &Team,
    (matrix, rows, columns): (u64, usize, usize),
    x: &[f64],
) -> Result<Vec<f64>> {
    let row = |row| (0..columns).map(|column| entry(matrix, row, column) * x[column]).sum();
    let own: Vec<f64> = world.local_range(rows).map(row).collect();
    Ok(world.values(&own).uneven().all_gather()?.0)
}

/// Compares `c` with A B. Returns a text that says what was checked, or the error. Collective.
///
/// # Errors
/// See [`Team`].
pub fn check(world: &Team, problem: &Problem, c: &Matrix) -> Result<Result<String, Wrong>> {
    let Problem { rows, inner, columns, .. } = *problem;
    let mut differences = 0;
    for vector in 0..VECTORS {
        let x = |column| (hash((vector << 40) + column as u64) >> (64 - BITS)) as f64;
        let x: Vec<f64> = (0..columns).map(x).collect();
        let bx = rows_times(world, (2, inner, columns), &x)?;
        let abx = rows_times(world, (1, rows, inner), &bx)?;
        let mut cx = vec![0.0; rows];
        c.entries().for_each(|(row, column, entry)| cx[row] += entry * x[column]);
        world.in_place(&mut cx).all_reduce(Sum)?;
        // All PEs have the same values here.
        differences += cx.iter().zip(&abx).filter(|(one, other)| one != other).count();
    }
    let is_small = rows.max(inner).max(columns) <= SMALL;
    if is_small {
        let sum = |row, column| -> f64 {
            (0..inner).map(|k| entry(1, row, k) * entry(2, k, column)).sum()
        };
        let is_wrong = |&(row, column, entry): &_| sum(row, column) != entry;
        differences += world.all_reduce(c.entries().filter(is_wrong).count(), Sum)?;
    }
    if differences > 0 {
        return Ok(Err(Wrong { differences }));
    }
    let each = if is_small { ", and each entry is the sum of its products" } else { "" };
    Ok(Ok(format!("C x = A (B x) exactly for {VECTORS} random x{each}")))
}
