//! Collectives on places: offsets from the heap, in memory that peers can access. For languages in
//! which any address in that memory may be an operand.

use std::panic::Location;

use consort_fabric::{Collective, Operator, Pod, Rank};
use consort_native::Buffer;

use crate::{
    Displacements, Result, Team,
    collectives::{
        combine::{Nothing, With},
        verb::{Held, Verb, bytes_of, layouts},
    },
    error::CallError,
    nonblocking::{Request, shape::OwnedLayout},
    runtime::dispatch::Combining,
};

/// Makes a call on blocks of `len` elements, at these offsets of the source and of the target from
/// each heap. Without an operator, nothing is combined. A broadcast copies the root's source to the
/// target of the other PEs.
///
/// # Errors
/// [`CallError::InPlace`] when source and target overlap, and see [`Team`].
///
/// # Panics
/// When a place reaches beyond a PE's memory.
#[inline]
#[track_caller]
pub fn collective_at<T: Pod, O: Operator<T>>(
    team: &Team,
    (collective, root): (Collective, Option<Rank>),
    operator: Option<&O>,
    offsets: (usize, usize),
    len: usize,
) -> Result<()> {
    let verb = Verb { root, ..Verb::new(collective) };
    let places = places(team, &verb, offsets, bytes_of::<T>(len))?;
    let buffers = places.map(|place| buffer(team, place)).into();
    let combination = operator.map(Combining::new::<T, O>);
    let symmetric = are_symmetric(collective, offsets);
    team.in_heap::<T>(verb, len, symmetric, combination, buffers, Location::caller())
}

/// Starts the call of [`collective_at`].
///
/// # Errors
/// As [`collective_at`].
#[track_caller]
pub fn start_collective_at<T: Pod, O: Operator<T> + Send + 'static>(
    team: &Team,
    (collective, root): (Collective, Option<Rank>),
    operator: Option<O>,
    offsets: (usize, usize),
    len: usize,
) -> Result<Request<()>> {
    let verb = Verb { root, ..Verb::new(collective) };
    let symmetric = are_symmetric(collective, offsets);
    let [source, target] = places(team, &verb, offsets, bytes_of::<T>(len))?;
    let (places, site) = ((source, target), Location::caller());
    match operator {
        Some(operator) => {
            let combine = With(operator);
            team.start_in::<_, T, _>(&verb, len, symmetric, places, combine, None, site)
        }
        None => team.start_in::<_, T, _>(&verb, len, symmetric, places, Nothing, None, site),
    }
}

/// All-gathers blocks of different lengths: `len` elements of this PE, and those of all PEs in
/// `blocks`.
///
/// # Errors
/// As [`collective_at`], and [`CallError::Displacements`].
#[track_caller]
pub fn all_gather_blocks_at<T: Pod>(
    team: &Team,
    (source, len): (usize, usize),
    (target, blocks): (usize, &Displacements),
) -> Result<()> {
    let places = block_places::<T>((source, len), (target, blocks))?;
    let held = ((len, Held::One(len)), (blocks.extent(), Held::Each(blocks)));
    let layouts = layouts::<T>(team, held.0, held.1)?;
    let buffers = places.map(|place| buffer(team, place)).into();
    let (verb, site) = (Verb::new(Collective::AllGatherVector), Location::caller());
    team.run::<T, T>(verb, 0, true, None, buffers, Some(layouts), site)
}

/// Starts the call of [`all_gather_blocks_at`].
///
/// # Errors
/// As [`all_gather_blocks_at`].
#[track_caller]
pub fn start_all_gather_blocks_at<T: Pod>(
    team: &Team,
    (source, len): (usize, usize),
    (target, blocks): (usize, &Displacements),
) -> Result<Request<()>> {
    let [source, target] = block_places::<T>((source, len), (target, blocks))?;
    let (given, received) = (Held::One(len), Held::Each(blocks));
    layouts::<T>(team, (len, given), (blocks.extent(), received))?;
    let layouts = Some([given, received].map(OwnedLayout::of::<T>));
    let (verb, site) = (Verb::new(Collective::AllGatherVector), Location::caller());
    team.start_in::<_, T, _>(&verb, 0, true, (source, target), Nothing, layouts, site)
}

/// A place in each heap: an offset, and a length in bytes.
type Place = (usize, usize);

/// Returns the root's places at these offsets in a call on blocks of `block_bytes`. Those of a
/// broadcast are on different PEs, so they may overlap.
#[inline(always)]
fn places(
    team: &Team,
    verb: &Verb<'_>,
    (source, target): (usize, usize),
    block_bytes: usize,
) -> Result<[Place; 2]> {
    let (collective, pes) = (verb.collective, team.pes());
    if collective == Collective::Broadcast {
        return Ok([source, target].map(|offset| (offset, block_bytes)));
    }
    let (contributed, received) =
        (collective.source_blocks(pes, true), collective.target_blocks(pes, true));
    let source = (source, block_bytes.saturating_mul(contributed as usize));
    let target = (target, block_bytes.saturating_mul(received as usize));
    apart(source, target)
}

/// Returns the places of an all-gather of blocks.
fn block_places<T>(
    (source, len): (usize, usize),
    (target, blocks): (usize, &Displacements),
) -> Result<[Place; 2]> {
    apart((source, bytes_of::<T>(len)), (target, bytes_of::<T>(blocks.extent())))
}

/// Returns two places that have no byte in common.
#[inline(always)]
fn apart(source: Place, target: Place) -> Result<[Place; 2]> {
    let ends_by = |(first, bytes): Place, at| first.saturating_add(bytes) <= at;
    if ends_by(source, target.0) || ends_by(target, source.0) {
        Ok([source, target])
    } else {
        Err(CallError::InPlace.into())
    }
}

#[inline(always)]
fn buffer(team: &Team, (offset, bytes): Place) -> Buffer<'_> {
    let endpoint = &team.state.endpoint;
    Buffer::symmetric(endpoint.job(), endpoint.rank_in_world(), offset, bytes)
}

/// Returns whether peers access the buffers at these offsets without a rendezvous. In a broadcast,
/// they do only if both offsets are the same. Otherwise, the memory is exposed, but not copied.
fn are_symmetric(collective: Collective, (source, target): (usize, usize)) -> bool {
    collective != Collective::Broadcast || source == target
}
