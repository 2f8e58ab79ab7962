//! Compares checksums with the published ones.

use consort_apps_kernels::check::largest;

use crate::Class;

/// The largest relative error that passes, as in the benchmark.
const LIMIT: f64 = 1e-12;

/// The error of wrong checksums.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the checksums are wrong: their relative error is {error:e}")]
pub struct Wrong {
    /// The largest relative error.
    pub error: f64,
}

/// Compares the checksum of each iteration with the published one. Returns a text that says what
/// was checked, or the error.
///
/// # Errors
/// [`Wrong`].
///
/// # Panics
/// When the number of checksums is not the number of iterations.
pub fn check(class: &Class, checksums: &[[f64; 2]]) -> Result<String, Wrong> {
    assert_eq!(checksums.len(), class.checksums.len(), "a checksum of each iteration");
    let pairs = checksums.iter().flatten().zip(class.checksums.iter().flatten());
    let error = largest(pairs.map(|(found, published)| ((found - published) / published).abs()));
    if error < LIMIT {
        Ok(format!("{} published checksums, relative error {error:.1e}", checksums.len()))
    } else {
        Err(Wrong { error })
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, check};

    #[test]
    fn checksums_must_match_the_published_ones() {
        let [class, ..] = Class::ALL;
        let mut checksums = class.checksums.to_vec();
        assert!(check(&class, &checksums).is_ok());
        checksums[5][1] *= 1.0 + 1e-11;
        assert!(check(&class, &checksums).is_err_and(|wrong| wrong.error > 9e-12));
        checksums[0][0] = f64::NAN;
        assert!(check(&class, &checksums).is_err_and(|wrong| wrong.error.is_nan()));
    }
}
