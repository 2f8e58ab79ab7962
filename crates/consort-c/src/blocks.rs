//! Collectives on blocks of different lengths.

use std::ffi::{c_int, c_void};

use consort::{Displacements, Pod, Team};

use crate::{
    arguments::{Buffer, rank, slices},
    elements::for_type,
    status::{Fault, status_of},
    team::{TeamHandle, team_of},
};

/// One side of a call: a buffer, and its blocks.
#[derive(Clone, Copy)]
struct Side {
    at: *mut c_void,
    blocks: Blocks,
}

/// The blocks in a buffer, as the program states them.
#[derive(Clone, Copy)]
enum Blocks {
    /// The PE's own block, of this many elements.
    One(usize),
    /// A block for each PE: the names and addresses of their counts and offsets.
    Each([(&'static str, *const usize); 2]),
}

impl Blocks {
    fn each(counts: *const usize, offsets: *const usize) -> Self {
        Self::Each([("counts", counts), ("offsets", offsets)])
    }

    /// Returns the blocks, and the elements of a buffer that holds them; no blocks if there is only
    /// the PE's own one, or this PE `uses` none.
    ///
    /// # Safety
    /// Counts and offsets are null or have an entry for each of the `pes` PEs.
    unsafe fn read(self, pes: usize, uses: bool) -> Result<(Displacements, usize), Fault> {
        let entries = |(name, at): (&'static str, *const usize)| {
            // SAFETY: guaranteed by the caller.
            unsafe { Buffer::read(name, at.cast(), pes).slice::<usize>() }
        };
        match self {
            Self::One(len) => Ok((Displacements::default(), len)),
            Self::Each(_) if !uses => Ok((Displacements::default(), 0)),
            Self::Each([counts, (_, offsets)]) if offsets.is_null() => {
                let blocks = Displacements::new(entries(counts)?).map_err(consort::Error::from)?;
                let extent = blocks.extent();
                Ok((blocks, extent))
            }
            Self::Each([counts, offsets]) => {
                let blocks = Displacements::at(entries(counts)?, entries(offsets)?);
                let blocks = blocks.map_err(consort::Error::from)?;
                let extent = blocks.extent();
                Ok((blocks, extent))
            }
        }
    }
}

/// A collective on blocks of different lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather,
    Scatter,
    AllGather,
    AllToAll,
}

/// [`make_on`] for a type.
type MakesOn = unsafe fn(Kind, &Team, [Side; 2], c_int) -> Result<(), Fault>;

/// Makes a call.
///
/// # Safety
/// The team is null or valid, and counts and offsets are null or have an entry for each PE. The
/// buffers hold the blocks. While the call runs, no other thread writes the source or accesses the
/// target.
unsafe fn make(
    function: &str,
    kind: Kind,
    team: *const TeamHandle,
    [source, target]: [Side; 2],
    datatype: c_int,
    root: c_int,
) -> c_int {
    status_of(function, || {
        // SAFETY: guaranteed by the caller.
        let team = unsafe { team_of(team) }?;
        let make = for_type!(datatype, T => Ok(make_on::<T> as MakesOn))?;
        // SAFETY: guaranteed by the caller.
        unsafe { make(kind, team, [source, target], root) }
    })
}

/// # Safety
/// As [`make`].
unsafe fn make_on<T: Pod>(
    kind: Kind,
    team: &Team,
    [source, target]: [Side; 2],
    root: c_int,
) -> Result<(), Fault> {
    let pes = team.size();
    let root = rank("root", root, pes)?;
    let uses_all = team.rank() == root || matches!(kind, Kind::AllGather | Kind::AllToAll);
    // SAFETY: guaranteed by the caller.
    let (given, source_len) = unsafe { source.blocks.read(pes, uses_all) }?;
    // SAFETY: guaranteed by the caller.
    let (received, target_len) = unsafe { target.blocks.read(pes, uses_all) }?;
    let from = Buffer { name: "source", at: source.at, len: source_len };
    let to = Buffer { name: "target", at: target.at, len: target_len };
    // SAFETY: guaranteed by the caller.
    let (from, to) = unsafe { slices::<T>(from, to) }?;
    let data = team.slices(from, to);
    Ok(match kind {
        Kind::Gather => data.with_counts(&received).gather(root),
        Kind::Scatter => data.with_counts(&given).scatter(root),
        Kind::AllGather => data.with_counts(&received).all_gather(),
        Kind::AllToAll => data.with_counts((&given, &received)).all_to_all(),
    }?)
}

/// Gathers blocks of different lengths on the root.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_gather_blocks(
    team: *const TeamHandle,
    source: *const c_void,
    count: usize,
    target: *mut c_void,
    counts: *const usize,
    offsets: *const usize,
    datatype: c_int,
    root: c_int,
) -> c_int {
    let source = Side { at: source.cast_mut(), blocks: Blocks::One(count) };
    let target = Side { at: target, blocks: Blocks::each(counts, offsets) };
    let function = "consort_gather_blocks";
    // SAFETY: guaranteed by the caller.
    unsafe { make(function, Kind::Gather, team, [source, target], datatype, root) }
}

/// Scatters the root's blocks of different lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_scatter_blocks(
    team: *const TeamHandle,
    source: *const c_void,
    counts: *const usize,
    offsets: *const usize,
    target: *mut c_void,
    count: usize,
    datatype: c_int,
    root: c_int,
) -> c_int {
    let source = Side { at: source.cast_mut(), blocks: Blocks::each(counts, offsets) };
    let target = Side { at: target, blocks: Blocks::One(count) };
    let function = "consort_scatter_blocks";
    // SAFETY: guaranteed by the caller.
    unsafe { make(function, Kind::Scatter, team, [source, target], datatype, root) }
}

/// Gathers blocks of different lengths on all PEs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_all_gather_blocks(
    team: *const TeamHandle,
    source: *const c_void,
    count: usize,
    target: *mut c_void,
    counts: *const usize,
    offsets: *const usize,
    datatype: c_int,
) -> c_int {
    let source = Side { at: source.cast_mut(), blocks: Blocks::One(count) };
    let target = Side { at: target, blocks: Blocks::each(counts, offsets) };
    let function = "consort_all_gather_blocks";
    // SAFETY: guaranteed by the caller.
    unsafe { make(function, Kind::AllGather, team, [source, target], datatype, 0) }
}

/// Exchanges blocks of different lengths of all PEs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_all_to_all_blocks(
    team: *const TeamHandle,
    source: *const c_void,
    source_counts: *const usize,
    source_offsets: *const usize,
    target: *mut c_void,
    target_counts: *const usize,
    target_offsets: *const usize,
    datatype: c_int,
) -> c_int {
    let given = [("source_counts", source_counts), ("source_offsets", source_offsets)];
    let received = [("target_counts", target_counts), ("target_offsets", target_offsets)];
    let source = Side { at: source.cast_mut(), blocks: Blocks::Each(given) };
    let target = Side { at: target, blocks: Blocks::Each(received) };
    let function = "consort_all_to_all_blocks";
    // SAFETY: guaranteed by the caller.
    unsafe { make(function, Kind::AllToAll, team, [source, target], datatype, 0) }
}
