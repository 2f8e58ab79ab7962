//! Parts of data for PEs of different speed.

use std::{error, fmt, iter, mem::take, ops::Range, time::Duration};

use consort_fabric::Rank;

/// How to divide work among PEs of different speed: each gets a part in proportion to its weight.
/// For cores of different kinds, and for a core that the PE shares with another program.
///
/// Weights are stated by the program ([`Weights::new`]), or follow from the times of the last parts
/// ([`Weights::after`]), as here. All times have the same start, because a PE whose core is in use
/// also begins late.
///
/// ```
/// use std::time::Instant;
///
/// use consort::{Job, Weights};
///
/// let pool = Job::threads(2).pool()?;
/// let mut weights = Weights::equal(pool.size());
/// let mut data = vec![1.0; 10_000];
/// for _ in 0..10 {
///     let start = Instant::now();
///     let times = pool.run_with(weights.pieces_mut(&mut data), |_, piece| {
///         piece.iter_mut().for_each(|x| *x *= 1.5);
///         Ok(start.elapsed())
///     })?;
///     weights = weights.after(times)?;
/// }
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The weight of each PE. The sum is 1.
    shares: Vec<f64>,
}

/// The error for weights by which no work can be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightsError {
    /// There are no weights.
    Empty,
    /// A weight is zero, negative, infinite or not a number.
    Value {
        /// The PE.
        rank: Rank,
        /// Its weight.
        weight: String,
    },
    /// There are more or fewer times than weights.
    Times {
        /// The number of times given.
        given: usize,
        /// The number of PEs.
        pes: usize,
    },
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no weights: give one for each PE"),
            Self::Value { rank, weight } => write!(
                f,
                "the weight of PE {rank} is {weight}: give a finite number above 0, such as 1 for \
                 a whole core and 0.5 for half of one"
            ),
            Self::Times { given, pes } => {
                write!(f, "{given} times are given for {pes} PEs: give one for each PE")
            }
        }
    }
}

impl error::Error for WeightsError {}

impl Weights {
    /// Returns equal weights for this many PEs.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn equal(pes: usize) -> Self {
        Self::new(iter::repeat_n(1.0, pes)).expect("there is a PE, and 1 is a weight")
    }

    /// Returns weights for the PEs, in the order of their ranks. Only their ratios matter.
    ///
    /// ```
    /// # use consort::{Rank, Weights};
    /// let weights = Weights::new([1.0, 0.5])?; // PE 1 has half of a core
    /// assert_eq!(weights.range(90, Rank(1)), 60..90);
    /// # Ok::<(), consort::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no weights, or one is not a finite number above 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Result<Self, WeightsError> {
        let mut shares: Vec<f64> = weights.into_iter().collect();
        for (rank, weight) in (0..).map(Rank).zip(&shares) {
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(WeightsError::Value { rank, weight: weight.to_string() });
            }
        }
        // The largest weight is 1 first, so that the sum is finite.
        let Some(largest) = shares.iter().copied().reduce(f64::max) else {
            return Err(WeightsError::Empty);
        };
        shares.iter_mut().for_each(|share| *share /= largest);
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        Ok(Self { shares })
    }

    /// Returns the weights for the next parts, when the PEs have taken these `times` for their
    /// parts by `self`.
    ///
    /// A PE's speed is its share divided by its time. New shares lie between the old ones and the
    /// speeds, at their geometric mean, so that one disturbed time does little harm: an error
    /// shrinks to its square root with each call. Every PE keeps a share of at least 1/64 of an
    /// equal part, because without work its speed would remain unknown.
    ///
    /// If a step is shorter than the system's time slices, which are some milliseconds, a program
    /// on the same core disturbs some steps and not others. Then add up the times of ten steps or
    /// more before each call.
    ///
    /// # Errors
    /// If there are more or fewer times than PEs.
    pub fn after(&self, times: impl IntoIterator<Item = Duration>) -> Result<Self, WeightsError> {
        const SHORTEST: Duration = Duration::from_nanos(1);
        let times: Vec<Duration> = times.into_iter().collect();
        let (given, pes) = (times.len(), self.shares.len());
        if given != pes {
            return Err(WeightsError::Times { given, pes });
        }
        let least = Self::equal(pes).shares[0] / 64.0;
        let old: Vec<f64> = self.shares.iter().map(|share| share.max(least)).collect();
        let speed = |(share, time): (&f64, Duration)| share / time.max(SHORTEST).as_secs_f64();
        let speeds = Self::new(old.iter().zip(times).map(speed))?;
        let between = |(share, speed): (&f64, &f64)| (share * speed).sqrt();
        let next = Self::new(old.iter().zip(&speeds.shares).map(between))?;
        Self::new(next.shares.iter().map(|share| share.max(least)))
    }

    /// Returns the share of each PE in the work, by rank. Their sum is 1.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Returns the indices of a PE's part of `len` elements. The parts of all PEs are in order, and
    /// each element is in one of them.
    ///
    /// # Panics
    /// When the PE has no weight.
    #[must_use]
    pub fn range(&self, len: usize, rank: Rank) -> Range<usize> {
        let (index, pes) = (rank.index(), self.shares.len());
        assert!(index < pes, "PE {rank} has no weight: there are {pes} weights");
        let begin = |pe: usize| {
            let before: f64 = self.shares[..pe].iter().sum();
            if pe == pes { len } else { elements(before, len) }
        };
        begin(index)..begin(index + 1)
    }

    /// Divides `data` into one piece for each PE, as [`pieces`](crate::pieces), by weight.
    pub fn pieces<'d, T>(&self, data: &'d [T]) -> impl Iterator<Item = &'d [T]> + use<'_, 'd, T> {
        self.ranks().map(move |rank| &data[self.range(data.len(), rank)])
    }

    /// As [`Weights::pieces`], for data that the PEs change.
    pub fn pieces_mut<'d, T>(
        &self,
        data: &'d mut [T],
    ) -> impl Iterator<Item = &'d mut [T]> + use<'_, 'd, T> {
        let (len, mut rest) = (data.len(), data);
        self.ranks().map(move |rank| {
            let (piece, others) = take(&mut rest).split_at_mut(self.range(len, rank).len());
            rest = others;
            piece
        })
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..).map(Rank).take(self.shares.len())
    }
}

/// Returns `share` of `len` elements.
#[expect(clippy::cast_precision_loss, reason = "the last bits of a huge length do not matter")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn elements(share: f64, len: usize) -> usize {
    ((share * len as f64).round() as usize).min(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(nanos: &[u64]) -> Vec<Duration> {
        nanos.iter().copied().map(Duration::from_nanos).collect()
    }

    #[test]
    fn each_element_is_in_one_part() {
        let all = [vec![1.0], vec![1.0, 2.0, 4.0], vec![1e-300, 1e300, 1.0], vec![0.1; 10]];
        for weights in all.map(|weights| Weights::new(weights).unwrap()) {
            for len in [0, 1, 7, 1000, usize::MAX] {
                let parts: Vec<_> = weights.ranks().map(|rank| weights.range(len, rank)).collect();
                assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, len));
                assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
                assert!(parts.iter().all(|part| part.start <= part.end));
            }
        }
        let weights = Weights::new([3.0, 1.0]).unwrap();
        let mut data = [1, 2, 3, 4];
        assert_eq!(weights.pieces(&data).collect::<Vec<_>>(), [&[1, 2, 3][..], &[4]]);
        assert_eq!(weights.pieces_mut(&mut data).map(|piece| piece.len()).sum::<usize>(), 4);
        assert_eq!(Weights::equal(4).range(8, Rank(3)), 6..8);
    }

    #[test]
    fn times_of_a_slow_pe_settle_its_share() {
        let mut weights = Weights::equal(2);
        for _ in 0..20 {
            // PE 1 takes three times as long for the same work.
            let [first, second] = [weights.shares()[0], weights.shares()[1]];
            let taken =
                [first * 1e6, second * 3e6].map(|nanos| Duration::from_secs_f64(nanos / 1e9));
            weights = weights.after(taken).unwrap();
        }
        assert!((weights.shares()[0] - 0.75).abs() < 1e-3, "{weights:?}");
    }

    #[test]
    fn pe_that_stood_still_keeps_some_work() {
        let mut weights = Weights::equal(4);
        for _ in 0..100 {
            weights = weights.after(times(&[1, 1, 1, u64::MAX])).unwrap();
        }
        assert!(weights.shares().iter().all(|&share| share > 1.0 / 300.0), "{weights:?}");
        assert!(weights.after(times(&[0, 0, 0, 0])).is_ok());
    }

    #[test]
    fn wrong_weights_are_errors_that_say_what_is_right() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Weights::new([1.0, weight]).unwrap_err().to_string();
            let wrong = format!("the weight of PE 1 is {weight}: give a finite number above 0, ");
            assert!(error.starts_with(&wrong), "{error}");
        }
        let error = Weights::new([]).unwrap_err().to_string();
        assert_eq!(error, "there are no weights: give one for each PE");
        let error = Weights::equal(2).after(times(&[1])).unwrap_err().to_string();
        assert_eq!(error, "1 times are given for 2 PEs: give one for each PE");
    }
}
