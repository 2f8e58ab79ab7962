//! Dense kernels of the system's OpenBLAS, which run on the calling thread only.
#![expect(unsafe_code, reason = "calls a C library")]

use std::{
    ffi::{c_char, c_int},
    sync::Once,
};

use super::{Dense, NotPositiveDefinite, View, ViewMut};

const COLUMN_MAJOR: c_int = 102;
const NOT_TRANSPOSED: c_int = 111;
const TRANSPOSED: c_int = 112;
const LOWER: c_int = 122;
const NON_UNIT: c_int = 131;
const RIGHT: c_int = 142;

#[rustfmt::skip]
#[link(name = "openblas")]
unsafe extern "C" {
    safe fn openblas_set_num_threads(threads: c_int);
    fn cblas_dgemm(
        order: c_int, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: f64, a: *const f64, lda: c_int, b: *const f64, ldb: c_int,
        beta: f64, c: *mut f64, ldc: c_int,
    );
    fn cblas_dsyrk(
        order: c_int, triangle: c_int, transpose: c_int, n: c_int, k: c_int,
        alpha: f64, a: *const f64, lda: c_int, beta: f64, c: *mut f64, ldc: c_int,
    );
    fn cblas_dtrsm(
        order: c_int, side: c_int, triangle: c_int, transpose: c_int, diagonal: c_int,
        m: c_int, n: c_int, alpha: f64, a: *const f64, lda: c_int, b: *mut f64, ldb: c_int,
    );
    fn dpotrf_(
        triangle: *const c_char, n: *const c_int, a: *mut f64, lda: *const c_int, info: *mut c_int,
        triangle_len: usize,
    );
}

struct Cblas;

/// Returns the kernels. OpenBLAS starts no threads: the PEs are the only threads.
pub(super) fn kernels() -> &'static dyn Dense {
    static ALONE: Once = Once::new();
    ALONE.call_once(|| openblas_set_num_threads(1));
    &Cblas
}

fn int(extent: usize) -> c_int {
    c_int::try_from(extent).expect("extents of a local matrix fit C's int")
}

/// C += alpha A op(B).
fn product(alpha: f64, mut c: ViewMut<'_>, a: View<'_>, (b, op): (View<'_>, c_int)) {
    let b_extents =
        if op == TRANSPOSED { (b.columns(), b.rows()) } else { (b.rows(), b.columns()) };
    let (rows, inner, columns) = (a.rows(), a.columns(), b_extents.1);
    let extents = (c.rows(), b_extents.0, c.columns());
    assert_eq!(extents, (rows, inner, columns), "the extents of a product");
    if rows == 0 || columns == 0 || inner == 0 {
        return;
    }
    let [m, n, k] = [rows, columns, inner].map(int);
    let [lda, ldb, ldc] = [a.stride(), b.stride(), c.stride()].map(int);
    let (a, b, c) = (a.data().as_ptr(), b.data().as_ptr(), c.data().as_mut_ptr());
    // SAFETY: each view has all elements that its extents and stride address, and C is mutably
    // borrowed.
    unsafe {
        cblas_dgemm(COLUMN_MAJOR, NOT_TRANSPOSED, op, m, n, k, alpha, a, lda, b, ldb, 1.0, c, ldc);
    }
}

impl Dense for Cblas {
    fn name(&self) -> &'static str {
        "OpenBLAS"
    }

    fn add_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>) {
        product(1.0, c, a, (b, NOT_TRANSPOSED));
    }

    fn subtract_product(&self, c: ViewMut<'_>, a: View<'_>, b: View<'_>) {
        product(-1.0, c, a, (b, TRANSPOSED));
    }

    fn subtract_square(&self, mut c: ViewMut<'_>, a: View<'_>) {
        let (order, inner) = (a.rows(), a.columns());
        assert_eq!((c.rows(), c.columns()), (order, order), "the extents of a square");
        if order == 0 || inner == 0 {
            return;
        }
        let [n, k, lda, ldc] = [order, inner, a.stride(), c.stride()].map(int);
        let (a, c) = (a.data().as_ptr(), c.data().as_mut_ptr());
        let (order, triangle, op) = (COLUMN_MAJOR, LOWER, NOT_TRANSPOSED);
        // SAFETY: as above.
        unsafe { cblas_dsyrk(order, triangle, op, n, k, -1.0, a, lda, 1.0, c, ldc) };
    }

    fn solve(&self, l: View<'_>, mut b: ViewMut<'_>) {
        let order = l.rows();
        assert_eq!((l.columns(), b.columns()), (order, order), "the extents of a solve");
        if order == 0 || b.rows() == 0 {
            return;
        }
        let [m, n, lda, ldb] = [b.rows(), order, l.stride(), b.stride()].map(int);
        let (l, b) = (l.data().as_ptr(), b.data().as_mut_ptr());
        // SAFETY: as above; B is mutably borrowed.
        unsafe {
            cblas_dtrsm(
                COLUMN_MAJOR,
                RIGHT,
                LOWER,
                TRANSPOSED,
                NON_UNIT,
                m,
                n,
                1.0,
                l,
                lda,
                b,
                ldb,
            );
        }
    }

    fn factor(&self, mut a: ViewMut<'_>) -> Result<(), NotPositiveDefinite> {
        assert_eq!(a.columns(), a.rows(), "a square matrix");
        if a.rows() == 0 {
            return Ok(());
        }
        let ([n, lda], mut info) = ([a.rows(), a.stride()].map(int), 0);
        let (a, triangle) = (a.data().as_mut_ptr(), c"L".as_ptr());
        // SAFETY: the view has all elements of A and is mutably borrowed. The arguments passed by
        // reference live until the function returns.
        unsafe { dpotrf_(triangle, &raw const n, a, &raw const lda, &raw mut info, 1) };
        match usize::try_from(info).expect("arguments that LAPACK accepts") {
            0 => Ok(()),
            order => Err(NotPositiveDefinite { order }),
        }
    }
}
