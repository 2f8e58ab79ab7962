//! Dense kernels in Rust: the products of the crate `matrixmultiply`, and recursive algorithms that
//! use them.
//!
//! A factorization or a solve of order n consists of two such operations of order n/2 and a product
//! (Gustavson 1997, "Recursion leads to automatic variable blocking for dense linear-algebra
//! algorithms").
#![expect(unsafe_code, reason = "calls a product function that takes pointers")]

use super::{Dense, NotPositiveDefinite, View, ViewMut};

/// The recursions use loops up to this order.
const SMALL: usize = 16;
/// Up to this order, half a square costs more than a full product.
const SMALL_SQUARE: usize = 64;

pub(super) struct Native;

impl Dense for Native {
    fn name(&self) -> &'static str {
        "matrixmultiply"
    }

    fn add_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>) {
        assert_eq!(a.columns(), b.rows(), "the inner extents of a product");
        let columns = b.columns();
        product(1.0, c, a, (b, columns, [1, b.stride()]));
    }

    fn subtract_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>) {
        assert_eq!(a.columns(), b.columns(), "the inner extents of a product");
        let columns = b.rows();
        product(-1.0, c, a, (b, columns, [b.stride(), 1]));
    }

    fn subtract_square(&self, mut c: ViewMut<'_>, a: View<'_>) {
        let (order, inner) = (a.rows(), a.columns());
        assert_eq!((c.rows(), c.columns()), (order, order), "the extents of a square");
        if order <= SMALL_SQUARE {
            return self.subtract_product(c, a, a);
        }
        let half = order / 2;
        let (upper, lower) = (a.part(0..half, 0..inner), a.part(half..order, 0..inner));
        self.subtract_square(c.part(0..half, 0..half), upper);
        self.subtract_product(c.part(half..order, 0..half), lower, upper);
        self.subtract_square(c.part(half..order, half..order), lower);
    }

    fn solve(&self, l: View<'_>, mut b: ViewMut<'_>) {
        let (order, rows) = (l.rows(), b.rows());
        assert_eq!((l.columns(), b.columns()), (order, order), "the extents of a solve");
        if order <= SMALL {
            return solve_small(l, b);
        }
        let half = order / 2;
        let (first, second) = (0..half, half..order);
        self.solve(l.part(first.clone(), first.clone()), b.part(0..rows, first.clone()));
        let (solved, mut rest) = b.split_columns(half);
        let below = l.part(second.clone(), first);
        self.subtract_product(rest.part(0..rows, 0..order - half), solved.view(), below);
        self.solve(l.part(second.clone(), second), rest);
    }

    fn factor(&self, mut a: ViewMut<'_>) -> Result<(), NotPositiveDefinite> {
        let order = a.rows();
        assert_eq!(a.columns(), order, "a square matrix");
        if order <= SMALL {
            return factor_small(a);
        }
        let half = order / 2;
        self.factor(a.part(0..half, 0..half))?;
        let corner = a.part(0..half, 0..half);
        let columns: Vec<f64> = (0..half).flat_map(|j| corner.view().column(j).to_vec()).collect();
        let corner = View::new(&columns, (half, half), half);
        self.solve(corner, a.part(half..order, 0..half));
        let (left, mut right) = a.split_columns(half);
        let below = left.view().part(half..order, 0..half);
        let mut rest = right.part(half..order, 0..order - half);
        self.subtract_square(rest.part(0..order - half, 0..order - half), below);
        let further =
            |error: NotPositiveDefinite| NotPositiveDefinite { order: half + error.order };
        self.factor(rest).map_err(further)
    }
}

/// C += alpha A B, where the rows and the columns of B are `strides` apart.
fn product(
    alpha: f64,
    mut c: ViewMut<'_>,
    a: View<'_>,
    (b, columns, strides): (View<'_>, usize, [usize; 2]),
) {
    let (rows, inner) = (a.rows(), a.columns());
    assert_eq!((c.rows(), c.columns()), (rows, columns), "the extents of a product");
    if rows == 0 || columns == 0 || inner == 0 {
        return;
    }
    let [down, right] = strides.map(usize::cast_signed);
    let (a_stride, c_stride) = (a.stride().cast_signed(), c.stride().cast_signed());
    let (a, b, c) = (a.data().as_ptr(), b.data().as_ptr(), c.data().as_mut_ptr());
    // SAFETY: each view has all elements that its extents and strides address. C is mutably
    // borrowed, and its columns do not overlap.
    unsafe {
        matrixmultiply::dgemm(
            rows, inner, columns, alpha, a, 1, a_stride, b, down, right, 1.0, c, 1, c_stride,
        );
    }
}

fn solve_small(l: View<'_>, mut b: ViewMut<'_>) {
    let rows = b.rows();
    for column in 0..l.rows() {
        let (solved, mut rest) = b.part(0..rows, 0..l.rows()).split_columns(column);
        let mut own = rest.part(0..rows, 0..1);
        let own = own.data();
        for before in 0..column {
            let factor = l.column(before)[column];
            for (x, y) in own.iter_mut().zip(solved.view().column(before)) {
                *x -= factor * y;
            }
        }
        let pivot = l.column(column)[column];
        own.iter_mut().for_each(|x| *x /= pivot);
    }
}

fn factor_small(mut a: ViewMut<'_>) -> Result<(), NotPositiveDefinite> {
    let order = a.rows();
    for column in 0..order {
        let (done, mut rest) = a.part(0..order, 0..order).split_columns(column);
        let mut own = rest.part(column..order, 0..1);
        let own = own.data();
        for before in 0..column {
            let before = &done.view().column(before)[column..];
            let factor = before[0];
            for (x, y) in own.iter_mut().zip(before) {
                *x -= factor * y;
            }
        }
        if own[0].is_nan() || own[0] <= 0.0 {
            return Err(NotPositiveDefinite { order: column + 1 });
        }
        let pivot = own[0].sqrt();
        own.iter_mut().for_each(|x| *x /= pivot);
    }
    Ok(())
}
