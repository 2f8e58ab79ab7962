//! A team's nonblocking collectives on places in the memory that peers can access.

use std::{marker::PhantomData, panic::Location};

use consort_fabric::{Collective, Operator, Pod, Rank};

use super::{
    Kind, Request,
    buffers::{Combine, InHeap, Nothing, OwnedLayout, Place, With},
};
use crate::{
    Displacements, Result, Team,
    collectives::{are_apart, are_symmetric, bytes_of},
    error::CallError,
};

/// # Places
impl<'p> Team<'p> {
    /// Starts the call of [`Team::collective_at`].
    ///
    /// # Errors
    /// As [`Team::collective_at`].
    #[doc(hidden)]
    #[track_caller]
    pub fn start_collective_at<T: Pod, O: Operator<T> + Send + 'static>(
        &self,
        (collective, root): (Collective, Option<Rank>),
        operator: Option<O>,
        (source, target): (usize, usize),
        len: usize,
    ) -> Result<Request<'p, ()>> {
        let symmetric = are_symmetric(collective, (source, target));
        let kind = Kind { collective, root, len, symmetric };
        let even = self.even::<T>(kind);
        let [source, target] = self.places(collective, (source, target), bytes_of::<T>(len))?;
        let places = (source, target);
        match operator {
            Some(operator) => self.start_in::<_, T, _>(kind, places, With(operator), even),
            None => self.start_in::<_, T, _>(kind, places, Nothing, even),
        }
    }

    /// Starts the call of [`Team::all_gather_blocks_at`].
    ///
    /// # Errors
    /// As [`Team::all_gather_blocks_at`].
    #[doc(hidden)]
    #[track_caller]
    pub fn start_all_gather_blocks_at<T: Pod>(
        &self,
        (source, len): (usize, usize),
        (target, blocks): (usize, Displacements),
    ) -> Result<Request<'p, ()>> {
        let collective = Collective::AllGatherVector;
        blocks.check_target(self.pes(), blocks.extent())?;
        let (contributed, received) = (bytes_of::<T>(len), bytes_of::<T>(blocks.extent()));
        let places = ((source, contributed), (target, received));
        if !are_apart(places.0, places.1) {
            return Err(CallError::InPlace.into());
        }
        let layouts = [OwnedLayout::one::<T>(len), OwnedLayout::each::<T>(blocks)];
        let kind = Kind { collective, root: None, len: 0, symmetric: true };
        self.start_in::<_, T, _>(kind, places, Nothing, Some(layouts))
    }

    /// Starts a call in symmetric memory.
    #[track_caller]
    pub(super) fn start_in<P: Place + 'static, T: Pod, C: Combine<T> + 'static>(
        &self,
        kind: Kind,
        (source, target): (P, P),
        combine: C,
        layouts: Option<[OwnedLayout; 2]>,
    ) -> Result<Request<'p, ()>> {
        let ready = self.nonblocking_plan::<T>(kind, &combine)?;
        let buffers = InHeap {
            collective: kind.collective,
            is_root: kind.root == Some(self.rank()),
            rank_in_world: self.state.endpoint.rank_in_world(),
            source,
            target,
            combine,
            elements: PhantomData::<fn() -> T>,
        };
        // SAFETY: the operation owns everything that it uses.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            self.launch(ready, buffers, layouts, |_| (), None, Location::caller())
        }
    }
}
