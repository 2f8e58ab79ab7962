//! Fourier transforms of the rows of an array on one PE.

#[cfg(feature = "fftw")]
mod fftw;
#[cfg(not(feature = "fftw"))]
mod native;
mod transform;

pub use transform::{Direction, Rows};

/// Returns the name of the library of [`rows`].
#[must_use]
pub fn library() -> &'static str {
    if cfg!(feature = "fftw") { "FFTW" } else { "RustFFT" }
}

/// Returns the transform for rows of `len` elements.
#[must_use]
pub fn rows(len: usize, direction: Direction) -> Box<dyn Rows> {
    #[cfg(feature = "fftw")]
    return Box::new(fftw::Plan::new(len, direction));
    #[cfg(not(feature = "fftw"))]
    Box::new(native::Plan::new(len, direction))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use num_complex::Complex64;

    use super::{Direction, rows};

    #[test]
    fn a_transform_is_the_sum_of_its_definition() {
        for (len, direction) in [(1, Direction::Forward), (12, Direction::Inverse)] {
            let sign = if direction == Direction::Forward { -1.0 } else { 1.0 };
            let value = |i: usize| Complex64::new((i * i % 7) as f64, (i % 3) as f64);
            let mut data: Vec<_> = (0..3 * len).map(value).collect();
            rows(len, direction).transform(&mut data);
            for (at, transformed) in data.into_iter().enumerate() {
                let (row, k) = (at / len, at % len);
                let turn = |n: usize| Complex64::cis(sign * TAU * (k * n) as f64 / len as f64);
                let sum: Complex64 = (0..len).map(|n| value(row * len + n) * turn(n)).sum();
                assert!((transformed - sum).norm() < 1e-12, "{len} {direction:?}: {row} {k}");
            }
        }
    }
}
