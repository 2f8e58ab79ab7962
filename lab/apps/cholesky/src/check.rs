//! Checks a factor against entries of the matrix that are computed again.
//!
//! Computes the residual A x - L (Lᵀ x) for random x, and for small orders also A - L Lᵀ. The
//! residual is relative to the norms, the order and the precision, as in LAPACK's tests. It should
//! be about 1 or less; LAPACK's tests accept up to 30.

use consort::{
    Result, Team,
    ops::{Max, Sum},
};
use consort_apps_kernels::{
    check::{larger, largest},
    entries::{definite, hash},
    matrix::Matrix,
};

/// The largest residual that passes.
const LIMIT: f64 = 30.0;

/// The number of random vectors to try.
const VECTORS: u64 = 3;

/// The largest order for which A - L Lᵀ is computed.
const SMALL: usize = 300;

/// The error of a wrong factor.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the factor is wrong: its residual is {residual:e}")]
pub struct Wrong {
    /// The residual.
    pub residual: f64,
}

/// Returns the entries of L, which are on and below the diagonal.
fn lower(l: &Matrix) -> impl Iterator<Item = (usize, usize, f64)> {
    l.entries().filter(|(row, column, _)| row >= column)
}

/// Computes the residual of a factor. Returns a text that says what was checked, or the error.
/// Collective.
///
/// # Errors
/// See [`Team`].
pub fn check(world: &Team, l: &Matrix) -> Result<Result<String, Wrong>> {
    let order = l.rows.len;
    let scale = order as f64 * f64::EPSILON;
    let norm = |row| (0..order).map(|column| definite(order, row, column).abs()).sum();
    let norm = world.all_reduce(world.local_range(order).map(norm).fold(0.0, f64::max), Max)?;
    let mut residual = 0.0_f64;
    for vector in 0..VECTORS {
        let x = |row| f64::from((hash((vector << 40) + row as u64) >> 56) as u8) / 255.0;
        let x: Vec<f64> = (0..order).map(x).collect();
        let mut transposed = vec![0.0; order];
        lower(l).for_each(|(row, column, entry)| transposed[column] += entry * x[row]);
        world.in_place(&mut transposed).all_reduce(Sum)?;
        let mut product = vec![0.0; order];
        lower(l).for_each(|(row, column, entry)| product[row] += entry * transposed[column]);
        world.in_place(&mut product).all_reduce(Sum)?;
        let expected = |row| -> f64 {
            (0..order).map(|column| definite(order, row, column) * x[column]).sum()
        };
        let off = world.local_range(order).map(|row| (expected(row) - product[row]).abs());
        residual = larger(residual, largest(off) / (norm * scale));
    }
    let is_small = order <= SMALL;
    if is_small {
        let mut whole = vec![0.0; order * order];
        lower(l).for_each(|(row, column, entry)| whole[row * order + column] = entry);
        world.in_place(&mut whole).all_reduce(Sum)?;
        let row = |row: usize| &whole[row * order..][..order];
        let off = |i| -> f64 {
            let product =
                |j| -> f64 { row(i).iter().zip(row(j)).map(|(one, other)| one * other).sum() };
            (0..order).map(|j| (definite(order, i, j) - product(j)).abs()).sum()
        };
        residual = larger(residual, largest(world.local_range(order).map(off)) / (norm * scale));
    }
    let residual = world.all_reduce(residual, larger)?;
    let what = if is_small { "A - L L^T" } else { "A x - L (L^T x) for random x" };
    if residual < LIMIT {
        Ok(Ok(format!("relative residual of {what}: {residual:.4}, limit {LIMIT}")))
    } else {
        Ok(Err(Wrong { residual }))
    }
}
