//! Equal parts of data, one for each PE.

use std::{mem::take, ops::Range};

use consort_fabric::Rank;

use crate::Team;

/// Returns part `index` of `len` elements in `parts` parts: the first `len % parts` have one more.
fn part(len: usize, parts: usize, index: usize) -> Range<usize> {
    let (each, more) = (len / parts, len % parts);
    let begin = |index: usize| index * each + index.min(more);
    begin(index)..begin(index + 1)
}

/// Divides `data` into `parts` pieces, in order, whose lengths differ by at most one; some are
/// empty if there are fewer elements. For the inputs of
/// [`JobBuilder::run_with`](crate::JobBuilder::run_with) and
/// [`Pool::run_with`](crate::Pool::run_with). [`Team::local_range`] returns the indices of a piece.
///
/// ```
/// let lens: Vec<usize> = consort::pieces(&[0; 10], 4).map(<[i32]>::len).collect();
/// assert_eq!(lens, [3, 3, 2, 2]);
/// ```
pub fn pieces<T>(data: &[T], parts: usize) -> impl Iterator<Item = &[T]> {
    (0..parts).map(move |index| &data[part(data.len(), parts, index)])
}

/// As [`pieces`], for data that the PEs change.
///
/// ```
/// use consort::{Job, pieces_mut};
///
/// let mut data = vec![1; 10];
/// Job::threads(4).run_with(pieces_mut(&mut data, 4), |pe, piece| {
///     piece.fill(pe.world().rank().0);
///     Ok(())
/// })?;
/// assert_eq!(data, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
/// # Ok::<(), consort::Error>(())
/// ```
pub fn pieces_mut<T>(data: &mut [T], parts: usize) -> impl Iterator<Item = &mut [T]> {
    let (len, mut rest) = (data.len(), data);
    (0..parts).map(move |index| {
        let (piece, others) = take(&mut rest).split_at_mut(part(len, parts, index).len());
        rest = others;
        piece
    })
}

/// # Ranks and local ranges
impl Team {
    /// Returns all ranks, in order. Local.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.pes()).map(Rank)
    }

    /// Returns the indices of this PE's part of `len` elements, which are divided as by [`pieces`].
    /// Local.
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let squares = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     world.all_reduce(world.local_range(100).map(|x| x * x).sum::<usize>(), Sum)
    /// })?;
    /// assert_eq!(squares, [328_350; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn local_range(&self, len: usize) -> Range<usize> {
        part(len, self.size(), self.rank().index())
    }
}

#[test]
fn parts_are_in_order_and_about_equally_long() {
    for len in [0, 1, 5, 6, 7, usize::MAX] {
        for parts in 1..8 {
            let all: Vec<_> = (0..parts).map(|index| part(len, parts, index)).collect();
            assert_eq!((all[0].start, all[parts - 1].end), (0, len));
            assert!(all.windows(2).all(|two| two[0].end == two[1].start));
            let lens = all.iter().map(Range::len);
            assert!(lens.clone().max() <= lens.min().map(|least| least.saturating_add(1)));
        }
    }
    let mut data = [1, 2, 3, 4, 5];
    assert_eq!(pieces(&data, 3).collect::<Vec<_>>(), [&[1, 2][..], &[3, 4], &[5]]);
    assert_eq!(pieces_mut(&mut data, 7).map(|piece| piece.len()).sum::<usize>(), 5);
    assert_eq!(pieces(&data, 0).count(), 0);
}
