//! The benchmark's random numbers.
//!
//! Source: Bailey et al. (1991), "The NAS parallel benchmarks", section 2.3: x becomes 5^13 x
//! modulo 2^46, and the number is x 2^-46. Any number of the sequence can be computed directly.

const MULTIPLIER: u64 = 1_220_703_125;
const SEED: u64 = 314_159_265;
const BITS: u32 = 46;

/// Returns a product modulo 2^46.
fn product(one: u64, other: u64) -> u64 {
    one.wrapping_mul(other) & ((1 << BITS) - 1)
}

/// Returns the numbers between 0 and 1, starting with number `first`. The first of all is number 0.
pub(crate) fn numbers(first: u64) -> impl Iterator<Item = f64> {
    let (mut power, mut square, mut rest) = (1, MULTIPLIER, first);
    while rest > 0 {
        if rest % 2 == 1 {
            power = product(power, square);
        }
        (square, rest) = (product(square, square), rest / 2);
    }
    let mut state = product(SEED, power);
    std::iter::repeat_with(move || {
        state = product(state, MULTIPLIER);
        state as f64 / (1_u64 << BITS) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn sequence_can_start_anywhere() {
        let all: Vec<_> = numbers(0).take(100).collect();
        assert!(all.iter().all(|number| (0.0..1.0).contains(number)));
        for first in [1, 2, 63, 64, 99] {
            assert_eq!(numbers(first as u64).next(), Some(all[first]));
        }
    }
}
