//! A team's nonblocking collectives on places in the memory that peers can access.

use std::{marker::PhantomData, panic::Location};

use consort_fabric::{Collective, Operator, Pod, Rank};
use consort_native::Site;

use super::{
    Request,
    buffers::{InHeap, OwnedLayout, Place},
};
use crate::{
    Displacements, Result, Team,
    collectives::{
        are_apart, are_symmetric,
        combine::{Combine, Nothing, With},
        verb::{Held, Verb, bytes_of, layouts},
        widening::Widening,
    },
    error::CallError,
};

/// # Places
impl Team {
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
    ) -> Result<Request<()>> {
        let verb = Verb { root, ..Verb::new(collective) };
        let symmetric = are_symmetric(collective, (source, target));
        let even = verb.even::<T>(self, len).map(|both| both.map(OwnedLayout::Even));
        let [source, target] = self.places(&verb, (source, target), bytes_of::<T>(len))?;
        let (places, site) = ((source, target), Location::caller());
        match operator {
            Some(operator) => {
                let combine = With(operator);
                self.start_in::<_, T, _>(&verb, len, symmetric, places, combine, even, site)
            }
            None => self.start_in::<_, T, _>(&verb, len, symmetric, places, Nothing, even, site),
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
    ) -> Result<Request<()>> {
        let extent = blocks.extent();
        let places = ((source, bytes_of::<T>(len)), (target, bytes_of::<T>(extent)));
        if !are_apart(places.0, places.1) {
            return Err(CallError::InPlace.into());
        }
        let (given, received) = (Held::One(len), Held::Each(&blocks));
        layouts::<T>(self, (len, given), (extent, received))?;
        let layouts = Some([given, received].map(OwnedLayout::of::<T>));
        let (verb, site) = (Verb::new(Collective::AllGatherVector), Location::caller());
        self.start_in::<_, T, _>(&verb, 0, true, places, Nothing, layouts, site)
    }

    /// Starts a call on blocks of `len` elements in symmetric memory.
    #[expect(clippy::too_many_arguments, reason = "all that a call has")]
    pub(super) fn start_in<P: Place + 'static, T: Pod, C: Combine<T> + Send + 'static>(
        &self,
        verb: &Verb<'_>,
        len: usize,
        symmetric: bool,
        (source, target): (P, P),
        combine: C,
        layouts: Option<[OwnedLayout; 2]>,
        site: Site,
    ) -> Result<Request<()>> {
        let widening = Widening::of(self, verb, combine.combination());
        let ready = self.nonblocking_plan::<T>(verb, len, symmetric, &combine)?;
        let buffers = InHeap {
            collective: verb.collective,
            is_root: verb.is_root(self),
            rank_in_world: self.state.endpoint.rank_in_world(),
            source,
            target,
            combine,
            widening,
            elements: PhantomData::<fn() -> T>,
        };
        // SAFETY: the operation owns everything that it uses.
        #[expect(unsafe_code, reason = "launches an operation")]
        unsafe {
            self.launch(ready, buffers, layouts, |_| (), None, site)
        }
    }
}
