//! Programs made of parallel regions, and regions whose ranks write parts of an array that all may
//! read in the next step.
#![expect(unsafe_code, reason = "the threads of a region write different parts of one array")]

use std::{ops::Range, slice, time::Duration};

use anyhow::Result;

use crate::peers::fork_join::ForkJoin;

/// A program made of parallel regions.
pub(super) trait RegionProgram {
    /// Performs one iteration.
    ///
    /// # Errors
    /// If the library reports one.
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()>;

    /// Returns the results so far, which do not depend on the number of threads.
    fn results(&self) -> Vec<u64>;

    /// Returns to the state before the first iteration.
    fn restart(&mut self);

    /// Returns the time since the start that is not part of the iterations.
    fn idle(&self) -> Duration {
        Duration::ZERO
    }
}

/// An array that the ranks of a region share.
struct SharedArray<T> {
    first: *mut T,
    len: usize,
}

// SAFETY: its methods require that no element is written by one thread while another uses it.
unsafe impl<T: Send + Sync> Sync for SharedArray<T> {}

impl<T> SharedArray<T> {
    fn of(array: &mut [T]) -> Self {
        Self { first: array.as_mut_ptr(), len: array.len() }
    }

    /// # Safety
    /// The array outlives the reference, and nobody writes it meanwhile.
    unsafe fn whole(&self) -> &[T] {
        // SAFETY: `first` and `len` are those of a slice; the rest is the caller's.
        unsafe { slice::from_raw_parts(self.first, self.len) }
    }

    /// Returns the elements of a range.
    ///
    /// # Safety
    /// The array outlives the reference, and nobody else uses these elements meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller ensures that the ranges are disjoint")]
    unsafe fn range(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        let first = self.first.wrapping_add(range.start);
        // SAFETY: the range is in the array; the rest is the caller's.
        unsafe { slice::from_raw_parts_mut(first, range.len()) }
    }
}

/// Returns the part of a rank of `len` elements: nearly the same number for each rank.
pub(super) const fn share(rank: usize, threads: usize, len: usize) -> Range<usize> {
    rank * len / threads..(rank + 1) * len / threads
}

/// Runs a region in which each rank gets its part of `array`, and the index of the part's first
/// element.
///
/// # Errors
/// If the library reports one.
pub(super) fn each_part<T: Send + Sync>(
    threads: &mut dyn ForkJoin,
    array: &mut [T],
    fill: impl Fn(usize, &mut [T]) + Sync,
) -> Result<()> {
    let (count, shared) = (threads.threads(), SharedArray::of(array));
    threads.run(1, &|_, rank| {
        let part = share(rank, count, shared.len);
        // SAFETY: the array is borrowed until `run` has returned, when no call is running. A rank
        // is called once, and the parts of different ranks are disjoint.
        fill(part.start, unsafe { shared.range(part.clone()) });
    })
}

/// Runs a region of steps on two arrays of the same length. In each step all ranks read one of them
/// and write their parts of the other, which all read in the next step. In the first step they read
/// the first. `fill` gets the step, the array to read, the index of the part's first element and
/// the part.
///
/// # Errors
/// If the library reports one.
pub(super) fn each_step<T: Send + Sync>(
    threads: &mut dyn ForkJoin,
    steps: usize,
    arrays: [&mut [T]; 2],
    fill: impl Fn(usize, &[T], usize, &mut [T]) + Sync,
) -> Result<()> {
    let (count, shared) = (threads.threads(), arrays.map(SharedArray::of));
    threads.run(steps, &|step, rank| {
        let [from, to] = [&shared[step % 2], &shared[(step + 1) % 2]];
        let part = share(rank, count, to.len);
        // SAFETY: the arrays are borrowed until `run` has returned, when no call is running. In
        // this step, which no call of another step overlaps, nobody writes this array.
        let from = unsafe { from.whole() };
        // SAFETY: as above; a rank is called once a step, and the parts of ranks are disjoint.
        fill(step, from, part.start, unsafe { to.range(part.clone()) });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for (threads, len) in [(1, 0), (1, 7), (3, 7), (4, 128), (5, 3)] {
            let parts: Vec<Range<usize>> =
                (0..threads).map(|rank| share(rank, threads, len)).collect();
            assert_eq!(parts.first().map(|part| part.start), Some(0));
            assert_eq!(parts.last().map(|part| part.end), Some(len));
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start), "{parts:?}");
        }
    }
}
