//! The values of matrices: pseudorandom integers that depend on the position.
//!
//! An entry depends only on its row and column. Every PE can therefore fill its part, and a check
//! can compute the same entries again. Integers from -8 to 7 make products exact: a double
//! represents all sums, in any order of the additions.
//!
//! Source of the hash: Steele, Lea and Flood (2014), "Fast splittable pseudorandom number
//! generators", the finalizer of SplitMix64.

/// Returns a hash of a number. Each bit of it depends on all bits of the number.
#[must_use]
pub fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns an integer from -8 to 7 for this position of the matrix with number `matrix`.
#[must_use]
pub fn entry(matrix: u64, row: usize, column: usize) -> f64 {
    let place = (matrix << 60) ^ ((row as u64) << 30) ^ column as u64;
    (hash(place) >> 60) as f64 - 8.0
}

/// Returns an entry of a symmetric positive definite matrix of this order. Its diagonal dominates.
#[must_use]
pub fn definite(order: usize, row: usize, column: usize) -> f64 {
    let drawn = entry(0, row.max(column), row.min(column));
    if row == column { drawn + 8.0 * (order + 1) as f64 } else { drawn }
}

#[cfg(test)]
mod tests {
    use super::{definite, entry};

    #[test]
    fn entries_are_all_integers_from_minus_8_to_7() {
        let integers: [f64; 16] = std::array::from_fn(|index| index as f64 - 8.0);
        let mut counts = [0; 16];
        for (row, column) in (0..64).flat_map(|row| (0..64).map(move |column| (row, column))) {
            let drawn = entry(1, row, column);
            let index = integers.iter().position(|&integer| integer == drawn);
            counts[index.expect("an integer of the range")] += 1;
        }
        assert!(counts.iter().all(|count| (150..360).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_definite_matrix_is_symmetric_and_dominated_by_its_diagonal() {
        for row in 0..30 {
            let others = (0..30).filter(|&column| column != row);
            let sum: f64 = others.map(|column| definite(30, row, column).abs()).sum();
            assert!(sum < definite(30, row, row));
            assert_eq!(definite(30, row, 29), definite(30, 29, row));
        }
    }
}
