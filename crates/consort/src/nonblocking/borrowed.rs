//! A scope's calls, which borrow their data and return it.

use consort_fabric::{Collective, Operator, Pod, Rank};

use super::{
    Overlap, Request,
    buffers::{Nothing, With},
    source::Source,
};
use crate::Result;
#[cfg(doc)]
use crate::{Error, Team, error::CallError};

/// # Collectives, on borrowed slices
///
/// Each request returns source and target, or the data of a broadcast. A buffer that a PE neither
/// contributes nor receives is not touched.
impl<'scope> Overlap<'scope, '_> {
    /// Starts a broadcast of the root's `data` into every PE's. See [`Team::start_broadcast`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::BorrowedSlice`] with exit mode None, and see
    /// [`Team`].
    #[track_caller]
    pub fn start_broadcast<T: Pod + Send>(
        &'scope self,
        data: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, &'scope mut [T]>> {
        let call = (Collective::Broadcast, Some(root));
        if self.team().rank() == root {
            self.start(call, (data, &mut []), Nothing, |data, _| data)
        } else {
            self.start(call, (&mut [], data), Nothing, |_, data| data)
        }
    }

    /// Starts a scatter of the root's `source`: PE `i` gets block `i` in its `target`. See
    /// [`Team::scatter_slice`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    #[track_caller]
    pub fn start_scatter<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::Scatter, Some(root)), (source, target), Nothing, both)
    }

    /// Starts a gather of every PE's `source` into the root's `target`. See [`Team::gather_slice`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    #[track_caller]
    pub fn start_gather<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        root: Rank,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::Gather, Some(root)), (source, target), Nothing, both)
    }

    /// Starts a gather of every PE's `source` into every PE's `target`. See
    /// [`Team::all_gather_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_all_gather<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::AllGather, None), (source, target), Nothing, both)
    }

    /// Starts an all-to-all: block `i` of PE `j`'s `source` becomes block `j` of PE `i`'s `target`.
    /// See [`Team::all_to_all_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_all_to_all<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::AllToAll, None), (source, target), Nothing, both)
    }

    /// Starts a reduction to the root's `target`. See [`Team::reduce_slice`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    #[track_caller]
    pub fn start_reduce<T: Pod + Send, S: Source<T> + 'scope, O: Operator<T> + Send + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        operator: O,
        root: Rank,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::Reduce, Some(root)), (source, target), With(operator), both)
    }

    /// Starts a reduction to every PE's `target`. See [`Team::all_reduce_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_all_reduce<
        T: Pod + Send,
        S: Source<T> + 'scope,
        O: Operator<T> + Send + 'scope,
    >(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        operator: O,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::AllReduce, None), (source, target), With(operator), both)
    }

    /// Starts a reduce-scatter: PE `i` gets block `i` of the result in its `target`. See
    /// [`Team::reduce_scatter_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_reduce_scatter<
        T: Pod + Send,
        S: Source<T> + 'scope,
        O: Operator<T> + Send + 'scope,
    >(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        operator: O,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::ReduceScatter, None), (source, target), With(operator), both)
    }

    /// Starts a scan. See [`Team::scan_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_scan<T: Pod + Send, S: Source<T> + 'scope, O: Operator<T> + Send + 'scope>(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        operator: O,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::Scan, None), (source, target), With(operator), both)
    }

    /// Starts an exclusive scan. PE 0's `target` is not touched. See
    /// [`Team::exclusive_scan_slice`].
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn start_exclusive_scan<
        T: Pod + Send,
        S: Source<T> + 'scope,
        O: Operator<T> + Send + 'scope,
    >(
        &'scope self,
        source: S,
        target: &'scope mut [T],
        operator: O,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        self.start((Collective::ExclusiveScan, None), (source, target), With(operator), both)
    }

    /// Starts any collective but a barrier, for programs whose parameter is the collective. The
    /// operator is ignored if nothing is combined, and the root if the collective has none. See
    /// [`Team::collective_slice`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    #[track_caller]
    pub fn start_collective<
        T: Pod + Send,
        S: Source<T> + 'scope,
        O: Operator<T> + Send + 'scope,
    >(
        &'scope self,
        collective: Collective,
        source: S,
        target: &'scope mut [T],
        operator: O,
        root: Rank,
    ) -> Result<Request<'scope, (S, &'scope mut [T])>> {
        let call = (collective, collective.is_rooted().then_some(root));
        if collective.combines() {
            self.start(call, (source, target), With(operator), both)
        } else {
            self.start(call, (source, target), Nothing, both)
        }
    }
}

/// Returns both buffers, as the request of most calls does.
fn both<S, T>(source: S, target: T) -> (S, T) {
    (source, target)
}
