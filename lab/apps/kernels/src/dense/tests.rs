//! Compares the kernels of this build with their definitions.

use super::{NotPositiveDefinite, View, ViewMut, dense};

/// A matrix with unused space below each column.
struct Padded {
    data: Vec<f64>,
    extents: (usize, usize),
}

impl Padded {
    fn new(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut data = vec![f64::NAN; (rows + 3) * columns];
        for column in 0..columns {
            for row in 0..rows {
                data[column * (rows + 3) + row] = entry(row, column);
            }
        }
        Self { data, extents: (rows, columns) }
    }

    fn view(&self) -> View<'_> {
        View::new(&self.data, self.extents, self.extents.0 + 3)
    }

    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::new(&mut self.data, self.extents, self.extents.0 + 3)
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.view().column(column)[row]
    }
}

fn some(row: usize, column: usize) -> f64 {
    ((row * 7 + column * 13) % 11) as f64 - 5.0
}

fn other(row: usize, column: usize) -> f64 {
    some(column + 3, row)
}

#[test]
fn products_are_sums_of_products() {
    for (m, n, k) in [(1, 1, 1), (5, 3, 7), (40, 33, 50), (0, 3, 2), (3, 2, 0)] {
        let (a, b) = (Padded::new(m, k, some), Padded::new(k, n, other));
        let transposed = Padded::new(n, k, |row, column| other(column, row));
        let (mut sum, mut difference) = (Padded::new(m, n, some), Padded::new(m, n, some));
        dense().add_product(sum.view_mut(), a.view(), b.view());
        dense().subtract_product(difference.view_mut(), a.view(), transposed.view());
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let product: f64 = (0..k).map(|l| some(i, l) * other(l, j)).sum();
            assert_eq!(sum.at(i, j), some(i, j) + product);
            assert_eq!(difference.at(i, j), some(i, j) - product);
        }
    }
}

#[test]
fn a_square_is_a_product_in_the_lower_triangle() {
    for (order, inner) in [(1, 1), (5, 7), (64, 3), (65, 20), (150, 40), (0, 3), (3, 0)] {
        let (a, mut c) = (Padded::new(order, inner, some), Padded::new(order, order, other));
        dense().subtract_square(c.view_mut(), a.view());
        for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let product: f64 = (0..inner).map(|l| some(i, l) * some(j, l)).sum();
            assert_eq!(c.at(i, j), other(i, j) - product, "{order} {inner}: {i} {j}");
        }
    }
}

fn lower(row: usize, column: usize) -> f64 {
    match row.cmp(&column) {
        std::cmp::Ordering::Less => f64::NAN, // not read
        std::cmp::Ordering::Equal => 4.0 + (row % 3) as f64,
        std::cmp::Ordering::Greater => some(row, column) / 64.0,
    }
}

#[test]
fn a_solve_undoes_a_product() {
    for (rows, order) in [(1, 1), (9, 5), (30, 45), (0, 4), (4, 0)] {
        let l = Padded::new(order, order, lower);
        let mut b =
            Padded::new(rows, order, |i, j| (0..=j).map(|k| some(i, k) * lower(j, k)).sum());
        dense().solve(l.view(), b.view_mut());
        for (i, j) in (0..rows).flat_map(|i| (0..order).map(move |j| (i, j))) {
            assert!((b.at(i, j) - some(i, j)).abs() < 1e-12, "{rows} {order}: {i} {j}");
        }
    }
}

#[test]
fn a_factor_times_its_transpose_is_the_matrix() {
    for order in [0, 1, 7, 16, 17, 61] {
        let mut a = Padded::new(order, order, |i, j| {
            (0..=i.min(j)).map(|k| lower(i, k) * lower(j, k)).sum()
        });
        dense().factor(a.view_mut()).expect("a positive definite matrix");
        for (i, j) in (0..order).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            assert!((a.at(i, j) - lower(i, j)).abs() < 1e-12, "{order}: {i} {j}");
        }
    }
}

#[test]
fn a_matrix_without_a_factor_is_refused() {
    let entry = |bad| {
        move |i, j| {
            if i != j {
                0.0
            } else if i == bad {
                -1.0
            } else {
                1.0
            }
        }
    };
    for (order, bad) in [(3, 0), (40, 20), (40, 39)] {
        let mut a = Padded::new(order, order, entry(bad));
        let refused = dense().factor(a.view_mut());
        assert_eq!(refused, Err(NotPositiveDefinite { order: bad + 1 }));
    }
}
