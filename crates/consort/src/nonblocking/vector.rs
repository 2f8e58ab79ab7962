//! A team's nonblocking vector variants, on data that they own.

use std::panic::Location;

use consort_fabric::{Collective, Pod, Rank};

use super::{
    Kind, Request,
    buffers::{Nothing, Owned, OwnedLayout},
};
use crate::{Displacements, Result, Team, collectives::blank};
#[cfg(doc)]
use crate::{Error, error::CallError};

/// # Nonblocking vector variants
impl<'p> Team<'p> {
    /// Starts a vector scatter: PE `i` gets block `i` of the root's `source`, `len` elements. Other
    /// PEs' `source` and `blocks` are ignored. See [`Team::scatter_vector_slice`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root, and see [`Team`].
    #[track_caller]
    pub fn start_scatter_vector<T: Pod + Send>(
        &self,
        source: Vec<T>,
        blocks: Displacements,
        len: usize,
        root: Rank,
    ) -> Result<Request<'p, Vec<T>>> {
        let given = if self.rank() == root {
            blocks.check_source(self.pes(), source.len())?;
            OwnedLayout::each::<T>(blocks)
        } else {
            OwnedLayout::one::<T>(0)
        };
        let target = (blank(len), OwnedLayout::one::<T>(len));
        self.start_vector(Collective::ScatterVector, Some(root), (source, given), target, |all| all)
    }

    /// Starts a vector gather: the root gets PE `i`'s `source` as block `i`, and the others `None`.
    /// Other PEs' `blocks` are ignored. See [`Team::gather_vector_slice`] and
    /// [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root, and see [`Team`].
    #[track_caller]
    pub fn start_gather_vector<T: Pod + Send>(
        &self,
        source: Vec<T>,
        blocks: Displacements,
        root: Rank,
    ) -> Result<Request<'p, Option<Vec<T>>>> {
        let is_root = self.rank() == root;
        let target = if is_root {
            blocks.check_target(self.pes(), blocks.extent())?;
            (blank(blocks.extent()), OwnedLayout::each::<T>(blocks))
        } else {
            (Vec::new(), OwnedLayout::one::<T>(0))
        };
        let given = OwnedLayout::one::<T>(source.len());
        let finish = move |all| is_root.then_some(all);
        self.start_vector(Collective::GatherVector, Some(root), (source, given), target, finish)
    }

    /// Starts a vector all-gather: every PE gets PE `i`'s `source` as block `i`. See
    /// [`Team::all_gather_vector_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Displacements`], and see [`Team`].
    #[track_caller]
    pub fn start_all_gather_vector<T: Pod + Send>(
        &self,
        source: Vec<T>,
        blocks: Displacements,
    ) -> Result<Request<'p, Vec<T>>> {
        blocks.check_target(self.pes(), blocks.extent())?;
        let given = OwnedLayout::one::<T>(source.len());
        let target = (blank(blocks.extent()), OwnedLayout::each::<T>(blocks));
        self.start_vector(Collective::AllGatherVector, None, (source, given), target, |all| all)
    }

    /// Starts a vector all-to-all: PE `i` gets block `i` of PE `j`'s `source` as block `j`. See
    /// [`Team::all_to_all_vector_slice`] and [`Team::start_barrier`].
    ///
    /// # Errors
    /// [`CallError::Displacements`], and see [`Team`].
    #[track_caller]
    pub fn start_all_to_all_vector<T: Pod + Send>(
        &self,
        source: Vec<T>,
        given: Displacements,
        received: Displacements,
    ) -> Result<Request<'p, Vec<T>>> {
        given.check_source(self.pes(), source.len())?;
        received.check_target(self.pes(), received.extent())?;
        let source = (source, OwnedLayout::each::<T>(given));
        let target = (blank(received.extent()), OwnedLayout::each::<T>(received));
        self.start_vector(Collective::AllToAllVector, None, source, target, |all| all)
    }

    /// Starts a call of a vector variant on data that it owns. The caller has checked the
    /// displacements.
    #[track_caller]
    fn start_vector<T: Pod + Send, B: Send + 'static>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        (source, given): (Vec<T>, OwnedLayout),
        (target, received): (Vec<T>, OwnedLayout),
        finish: impl FnOnce(Vec<T>) -> B + Send + 'static,
    ) -> Result<Request<'p, B>> {
        let ready = self.nonblocking_plan::<T>(Kind::of(collective, root, 0), &Nothing)?;
        let buffers = Owned { source, target, combine: Nothing };
        let layouts = Some([given, received]);
        let finish = |_, target| finish(target);
        self.start_with(ready, buffers, layouts, finish, Location::caller())
    }
}
