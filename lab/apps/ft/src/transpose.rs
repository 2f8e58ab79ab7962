//! Transposes parts of an array, in tiles that stay in the nearest cache.

use consort_apps_kernels::Complex64;

/// Rows and columns of a tile: 4 KiB of each array.
const TILE: usize = 16;

/// Writes some columns of `from`, whose rows have `width` elements, as the rows of `to`.
pub(crate) fn transpose(
    (from, width): (&[Complex64], usize),
    columns: std::ops::Range<usize>,
    to: &mut [Complex64],
) {
    let rows = from.len() / width;
    debug_assert_eq!(to.len(), rows * columns.len(), "columns of {rows} elements");
    for first_row in (0..rows).step_by(TILE) {
        let last_row = rows.min(first_row + TILE);
        for first in (0..columns.len()).step_by(TILE) {
            for column in first..columns.len().min(first + TILE) {
                let to = &mut to[column * rows..][first_row..last_row];
                for (row, to) in (first_row..).zip(to) {
                    *to = from[row * width + columns.start + column];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Complex64, transpose};

    #[test]
    fn columns_become_rows() {
        let (rows, width) = (37, 21);
        let value = |row: usize, column: usize| Complex64::new(row as f64, column as f64);
        let from: Vec<_> = (0..rows * width).map(|at| value(at / width, at % width)).collect();
        let mut to = vec![Complex64::ZERO; rows * 18];
        transpose((&from, width), 3..21, &mut to);
        for (at, element) in to.into_iter().enumerate() {
            assert_eq!(element, value(at % rows, at / rows + 3));
        }
    }
}
