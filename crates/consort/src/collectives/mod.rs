//! The collectives of a team, one in each file: on values, slices and symmetric memory.

mod all_gather;
mod all_reduce;
mod all_to_all;
mod barrier;
mod broadcast;
mod gather;
mod places;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;

pub(crate) use places::{are_apart, are_symmetric, bytes_of};

use std::panic::Location;

use consort_fabric::{CallSpec, Collective, Kernel, Layout, Operator, Pod, Rank, SyncModes};
use consort_native::{Buffer, Operands};

use crate::{
    Displacements, Error, Result, Symmetric, Team,
    error::{CallError, DisplacementsError},
    runtime::dispatch::Combination,
    symmetric::element::Element,
    value::{Unpacking, Value},
};

fn combination<T: Pod, O: Operator<T>>(operator: &O) -> Combination<'_> {
    Some((Kernel::new::<T, O>(operator), O::NAME))
}

/// As [`combination`], for an operator on values.
#[inline]
fn on_values<O: Operator<T>, T: Value<Kind>, Kind>(
    operator: &Unpacking<O, T, Kind>,
) -> Combination<'_> {
    Some((T::kernel(operator), O::NAME))
}

/// Returns a vector of zeros, for a result.
pub(crate) fn blank<T: Pod>(len: usize) -> Vec<T> {
    vec![T::zeroed(); len]
}

/// Below this many bytes, a combination in place copies: short messages are copied anyway.
const SHORT_BYTES: usize = 32 << 10;
/// The most bytes that a combination in place copies at a time.
const PIECE_BYTES: usize = 1 << 20;

/// # Collectives as a parameter
impl Team<'_> {
    /// Makes any collective but a barrier on slices: for programs whose parameter is the
    /// collective, such as benchmarks. The operator is ignored if nothing is combined, and the root
    /// if the collective has none.
    ///
    /// A broadcast reads `source` on the root and writes `target` elsewhere. Vector variants move
    /// blocks of equal length here.
    ///
    /// # Errors
    /// Those of the method that is named after the collective.
    #[track_caller]
    pub fn collective_slice<T: Pod, O: Operator<T>>(
        &self,
        collective: Collective,
        source: &[T],
        target: &mut [T],
        operator: O,
        root: Rank,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let root = collective.is_rooted().then_some(root);
        let combination = combination::<T, O>(&operator).filter(|_| collective.combines());
        self.on_slices::<T, T>(collective, root, combination, source, target)
    }

    /// As [`Team::collective_slice`], in symmetric memory. A broadcast uses only `source`.
    ///
    /// # Errors
    /// Those of the method that is named after the collective.
    #[track_caller]
    pub fn collective_symmetric<T: Element, O: Operator<T>>(
        &self,
        collective: Collective,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
        root: Rank,
    ) -> Result<()> {
        if collective == Collective::Broadcast {
            return self.broadcast_symmetric(source, root);
        }
        let root = collective.is_rooted().then_some(root);
        let combination = combination::<T, O>(&operator).filter(|_| collective.combines());
        self.on_symmetric(collective, root, combination, source, target)
    }

    /// Makes a call on slices. A slice that this PE neither contributes nor receives is ignored.
    /// `N` is the type of the program's elements, and `T` the type that is sent for them.
    #[inline]
    #[track_caller]
    fn on_slices<N, T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        combination: Combination<'_>,
        source: &[T],
        target: &mut [T],
    ) -> Result<()> {
        let is_root = root == Some(self.rank());
        let blocks = |is_root| self.blocks(collective, is_root);
        let (contributed, received) = blocks(is_root);
        let len = block_len(collective, blocks(is_root), self.size(), source.len(), target.len())?;
        let layouts = Layout::of_blocks(collective, self.pes(), is_root, len * size_of::<T>());
        let operands = Operands {
            kernel: combination.map(|(kernel, _)| kernel),
            source: if contributed > 0 { Buffer::source(source) } else { Buffer::ABSENT },
            target: if received > 0 { Buffer::target(target) } else { Buffer::ABSENT },
            layouts: layouts.as_ref(),
        };
        let operator = combination.map_or("", |(_, name)| name);
        self.state.call::<N, T>(
            (collective, self.sync()),
            root,
            planned_len(collective, len),
            false,
            (&operands, Location::caller()),
            operator,
        )
    }

    /// Combines `data` in place: without a copy if it is long and its algorithm allows that.
    #[track_caller]
    fn in_place<T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        combination: Combination<'_>,
        data: &mut [T],
    ) -> Result<()> {
        self.refuse_borrowed()?;
        if size_of_val(data) < SHORT_BYTES {
            return self.in_pieces(collective, root, combination, data);
        }
        let call =
            self.state.spec::<T, T>((collective, self.sync()), root, data.len(), combination);
        let call = CallSpec { in_place: true, ..call };
        let kernel = combination.map(|(kernel, _)| kernel);
        let Some(ready) = self.state.plan_in_place(&call, kernel.as_ref())? else {
            return self.in_pieces(collective, root, combination, data);
        };
        let has_result = root.is_none_or(|root| root == self.rank());
        let (source, target) = match has_result {
            true => (Buffer::ABSENT, Buffer::target(data)),
            false => (Buffer::source(data), Buffer::ABSENT),
        };
        let operands = Operands { kernel, source, target, layouts: None };
        self.state.run_new(&*ready, &operands, Location::caller())
    }

    /// Combines `data` in place, by a call for each piece of it. Peers may still read a PE's
    /// contribution while its first results are written, so they read a copy of the piece.
    #[track_caller]
    fn in_pieces<T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        combination: Combination<'_>,
        data: &mut [T],
    ) -> Result<()> {
        let len = PIECE_BYTES.checked_div(size_of::<T>()).unwrap_or(usize::MAX).max(1);
        let mut copy = Vec::new();
        // Empty data is one empty piece: the call is made.
        for first in (0..data.len().max(1)).step_by(len) {
            let end = data.len().min(first.saturating_add(len));
            let piece = &mut data[first..end];
            if root.is_some_and(|root| root != self.rank()) {
                self.on_slices::<T, T>(collective, root, combination, piece, &mut [])?;
                continue; // this PE receives nothing
            }
            copy.clear();
            copy.extend_from_slice(piece);
            self.on_slices::<T, T>(collective, root, combination, &copy, piece)?;
        }
        Ok(())
    }

    /// All-gathers `value`, in the order of the ranks, in a call of this name. Exit mode Mine: a PE
    /// returns when it has all values.
    ///
    /// # Errors
    /// See [`Team`].
    #[doc(hidden)]
    #[track_caller]
    pub fn all_gather_named<T: Pod>(&self, name: &str, value: T) -> Result<Vec<T>> {
        let mut all = blank(self.size());
        let kind = (Collective::AllGather, SyncModes::MINE);
        let call = self.state.spec::<T, T>(kind, None, 1, None);
        let ready = self.state.prepare_named(&call, name)?;
        let (source, target) = (std::slice::from_ref(&value), &mut all[..]);
        let (source, target) = (Buffer::source(source), Buffer::target(target));
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.run_new(&*ready, &operands, Location::caller()).map(|()| all)
    }

    /// Returns this PE's layout of a buffer that only the root has.
    fn held_by_root<'p>(&self, root: Rank, blocks: &'p Displacements) -> Held<'p> {
        if self.rank() == root { Held::Each(blocks) } else { Held::One(0) }
    }

    /// Makes a call of a vector variant on slices, as [`Team::on_slices`].
    #[track_caller]
    fn on_blocks<N, T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        (source, contributed): (&[T], Held<'_>),
        (target, received): (&mut [T], Held<'_>),
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let layouts =
            layouts::<T>(self.pes(), (source.len(), contributed), (target.len(), received))?;
        let (source, target) = (Buffer::source(source), Buffer::target(target));
        let operands = Operands { kernel: None, source, target, layouts: Some(&layouts) };
        self.state.call::<N, T>(
            (collective, self.sync()),
            root,
            0,
            false,
            (&operands, Location::caller()),
            "",
        )
    }

    /// As [`Team::on_blocks`], in symmetric memory.
    #[track_caller]
    fn on_symmetric_blocks<T: Element>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        (source, contributed): (&Symmetric<T>, Held<'_>),
        (target, received): (&Symmetric<T>, Held<'_>),
    ) -> Result<()> {
        if source.is(target) {
            return Err(CallError::InPlace.into());
        }
        let layouts =
            layouts::<T>(self.pes(), (source.len(), contributed), (target.len(), received))?;
        let (source, target) = (source.buffer(&self.state), target.buffer(&self.state));
        let operands = Operands { kernel: None, source, target, layouts: Some(&layouts) };
        self.state.call::<T, T>(
            (collective, self.sync()),
            root,
            0,
            true,
            (&operands, Location::caller()),
            "",
        )
    }

    /// Makes a call in symmetric memory. Memory that this PE neither reads nor writes is ignored.
    #[inline]
    #[track_caller]
    fn on_symmetric<T: Element>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        combination: Combination<'_>,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
    ) -> Result<()> {
        if source.is(target) {
            return Err(CallError::InPlace.into());
        }
        // Lengths are the same on all PEs, so all check them like the root.
        let blocks = self.blocks(collective, true);
        let len = block_len(collective, blocks, self.size(), source.len(), target.len())?;
        let is_root = root == Some(self.rank());
        let (source, target) = (source.buffer(&self.state), target.buffer(&self.state));
        let [source, target] = brought(collective, is_root, source, target);
        let layouts = Layout::of_blocks(collective, self.pes(), is_root, len * size_of::<T>());
        let operands = Operands {
            kernel: combination.map(|(kernel, _)| kernel),
            source,
            target,
            layouts: layouts.as_ref(),
        };
        let operator = combination.map_or("", |(_, name)| name);
        self.state.call::<T, T>(
            (collective, self.sync()),
            root,
            planned_len(collective, len),
            true,
            (&operands, Location::caller()),
            operator,
        )
    }

    /// Returns the numbers of blocks that a PE contributes and receives.
    #[inline]
    pub(crate) fn blocks(&self, collective: Collective, is_root: bool) -> (u32, u32) {
        let pes = self.pes();
        (collective.source_blocks(pes, is_root), collective.target_blocks(pes, is_root))
    }
}

/// Returns the source and the target that a PE passes to a call in symmetric memory, blocking or
/// not. In a broadcast, the memory is the source of the root and the target of all other PEs. In
/// any other collective, a PE passes both buffers: an unused one gives the offset of the root's.
#[inline]
pub(crate) fn brought<'b>(
    collective: Collective,
    is_root: bool,
    source: Buffer<'b>,
    target: Buffer<'b>,
) -> [Buffer<'b>; 2] {
    match (collective, is_root) {
        (Collective::Broadcast, true) => [source, Buffer::ABSENT],
        (Collective::Broadcast, false) => [Buffer::ABSENT, target],
        _ => [source, target],
    }
}

/// The blocks of a PE in one buffer of a vector variant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'p> {
    /// One block of this many elements at the start of the buffer: the PE's own.
    One(usize),
    /// A block for each PE.
    Each(&'p Displacements),
}

/// Returns the layouts of the blocks that a PE contributes and receives, in a team of `pes` and in
/// buffers of these lengths.
pub(crate) fn layouts<'l, T: Pod>(
    pes: u32,
    (source_len, contributed): (usize, Held<'l>),
    (target_len, received): (usize, Held<'l>),
) -> Result<[Layout<'l>; 2]> {
    let of =
        |held,
         buffer_len,
         check: fn(&Displacements, u32, usize) -> Result<(), DisplacementsError>| {
            Ok(match held {
                Held::One(end) if end > buffer_len => {
                    return Err(Error::from(CallError::OutOfBounds {
                        first: 0,
                        end,
                        len: buffer_len,
                    }));
                }
                Held::One(len) => Layout::whole(bytes_of::<T>(len)),
                Held::Each(blocks) => {
                    check(blocks, pes, buffer_len)?;
                    blocks.layout(size_of::<T>())
                }
            })
        };
    Ok([
        of(contributed, source_len, Displacements::check_source)?,
        of(received, target_len, Displacements::check_target)?,
    ])
}

/// Returns the length for which a plan is created: that of a block; 0 for vector variants, whose
/// lengths differ.
#[inline]
pub(crate) const fn planned_len(collective: Collective, len: usize) -> usize {
    if collective.is_vector() { 0 } else { len }
}

/// Returns the length of a block, from the lengths of the buffers that this PE uses.
#[inline]
pub(crate) fn block_len(
    collective: Collective,
    (contributed, received): (u32, u32),
    pes: usize,
    source_len: usize,
    target_len: usize,
) -> Result<usize> {
    let [contributed, received] = [contributed, received].map(|blocks| blocks as usize);
    let len = match (contributed, received) {
        (0, 0) => 0,
        (0, 1) => target_len,
        (1, _) => source_len,
        (0, _) => target_len / received,
        (_, _) => source_len / contributed,
    };
    // The product overflows only for zero-sized elements.
    let fits = |blocks: usize, given| blocks == 0 || blocks.checked_mul(len) == Some(given);
    if fits(contributed, source_len) && fits(received, target_len) {
        return Ok(len);
    }
    Err(if contributed == 1 && received == 1 {
        Error::Call(CallError::Lengths { source_len, target_len })
    } else {
        Error::Call(CallError::Blocks {
            collective,
            pes,
            contributed,
            received,
            source_len,
            target_len,
        })
    })
}
