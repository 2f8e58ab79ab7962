//! The ways in which a blocking call takes its data: slices, one slice in place, symmetric memory.

use std::{ops::Range, panic::Location};

use consort_fabric::{CallSpec, Collective, Layout, Pod, Rank, SyncModes};
use consort_native::{Buffer, Operands, Site};

use super::{
    verb::{Held, Verb, blank, block_len, brought, layouts},
    widening::Widening,
};
#[cfg(doc)]
use crate::Error;
use crate::{Result, Symmetric, Team, runtime::dispatch::Combination, symmetric::element::Element};

/// Below this many bytes, a combination in place copies: short messages are copied anyway.
const SHORT_BYTES: usize = 32 << 10;
/// Below this many bytes, processes copy too: a copy in the nearest cache takes hardly longer than
/// to find out that there need be none.
const FEW_BYTES: usize = 4 << 10;
/// The most bytes of elements that a combination copies at a time, or that processes combine in a
/// call. Short floats that are widened count as `f32`.
const PIECE_BYTES: usize = 1 << 20;

/// Returns the number of elements in a piece, at least one.
fn piece_len(element_bytes: usize) -> usize {
    PIECE_BYTES.checked_div(element_bytes).unwrap_or(usize::MAX).max(1)
}

/// Returns the number of bytes that are sent for an element of short floats: its copies are `f32`.
fn wide_bytes<T: Pod>() -> usize {
    Widening::numbers::<T>(1) * size_of::<f32>()
}

/// Returns the pieces of a call on `len` elements, each of `piece` elements, with their verbs: that
/// of the first piece states the length of the whole call. `element_bytes` are sent for an element.
/// Empty data is one empty piece, so that the call is made.
fn pieces(
    verb: Verb<'_>,
    len: usize,
    element_bytes: usize,
    piece: usize,
) -> impl Iterator<Item = (Verb<'_>, Range<usize>)> {
    (0..len.max(1)).step_by(piece).map(move |first| {
        let end = len.min(first.saturating_add(piece));
        let is_first = first == 0 && end < len && verb.whole_bytes == 0;
        let whole_bytes = if is_first { len * element_bytes } else { verb.whole_bytes };
        (Verb { whole_bytes, ..verb }, first..end)
    })
}

/// Returns where a piece has its results. A PE without a result may have a target of any length.
fn in_target(piece: &Range<usize>, target_len: usize) -> Range<usize> {
    piece.start.min(target_len)..piece.end.min(target_len)
}

impl Team {
    /// Returns whether the PEs are processes. They copy private buffers before peers read them. If
    /// the copies are short, they stay in the caches.
    fn copies_for_peers(&self) -> bool {
        self.state.endpoint.job().own().is_some()
    }

    /// Makes a call on slices. A slice that this PE neither contributes nor receives is ignored.
    /// `N` is the type of the program's elements, and `T` the type that is sent for them.
    #[inline(always)]
    pub(super) fn on_slices<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        source: &[T],
        target: &mut [T],
        site: Site,
    ) -> Result<()> {
        let blocks = verb.blocks(self);
        let lens = (source.len(), target.len());
        let len = block_len(verb.collective, blocks, self.size(), lens)?;
        if let Some(widening) = Widening::of(self, &verb, combination) {
            return self.on_widened::<N, T>(verb, &widening, source, target, site);
        }
        let source = if blocks.0 > 0 { Buffer::source(source) } else { Buffer::ABSENT };
        let target = if blocks.1 > 0 { Buffer::target(target) } else { Buffer::ABSENT };
        self.run::<N, T>(verb, len, false, combination, (source, target), None, site)
    }

    /// Combines slices as [`Team::on_slices`] does. Processes make a call for each piece.
    #[inline(always)]
    pub(super) fn combine_slices<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        source: &[T],
        target: &mut [T],
        site: Site,
    ) -> Result<()> {
        if combination.is_some() && source.len() > piece_len(size_of::<T>()) {
            return self.combine_long::<N, T>(verb, combination, source, target, site);
        }
        self.on_slices::<N, T>(verb, combination, source, target, site)
    }

    /// Combines slices of more than a piece.
    #[cold]
    fn combine_long<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        source: &[T],
        target: &mut [T],
        site: Site,
    ) -> Result<()> {
        let lens = (source.len(), target.len());
        block_len(verb.collective, verb.blocks(self), self.size(), lens)?;
        // Elements that are widened are divided into pieces of `f32` later.
        let has_pieces = verb.collective != Collective::ReduceScatter
            && self.copies_for_peers()
            && Widening::of(self, &verb, combination).is_none();
        let bytes = size_of::<T>();
        let len = if has_pieces { piece_len(bytes) } else { source.len() };
        for (verb, piece) in pieces(verb, source.len(), bytes, len) {
            let (source, received) = (&source[piece.clone()], in_target(&piece, target.len()));
            self.on_slices::<N, T>(verb, combination, source, &mut target[received], site)?;
        }
        Ok(())
    }

    /// Makes a call as [`Team::on_slices`], whose partial results are wider than the elements: by a
    /// call for each piece, so that the wide copies stay small.
    #[cold]
    fn on_widened<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        widening: &Widening,
        source: &[T],
        target: &mut [T],
        site: Site,
    ) -> Result<()> {
        let is_whole = verb.collective == Collective::ReduceScatter;
        let bytes = wide_bytes::<T>();
        let len = if is_whole { source.len().max(1) } else { piece_len(bytes) };
        for (verb, piece) in pieces(verb, source.len(), bytes, len) {
            let received = if is_whole { 0..target.len() } else { in_target(&piece, target.len()) };
            let (source, target) = (widening.widen(&source[piece]), &mut target[received]);
            let mut long = Widening::blank::<T>(target.len());
            self.on_slices::<N, f32>(verb, widening.combination(), &source, &mut long, site)?;
            widening.narrow(&long, target);
        }
        Ok(())
    }

    /// Broadcasts `data` in place.
    #[inline(always)]
    pub(super) fn broadcast_data<N, T: Pod>(
        &self,
        root: Rank,
        data: &mut [T],
        site: Site,
    ) -> Result<()> {
        let verb = Verb::rooted(Collective::Broadcast, root);
        let len = data.len();
        let buffers = if verb.is_root(self) {
            (Buffer::source(data), Buffer::ABSENT)
        } else {
            (Buffer::ABSENT, Buffer::target(data))
        };
        self.run::<N, T>(verb, len, false, None, buffers, None, site)
    }

    /// Combines `data` in place: without a copy if it is long and its algorithm allows that. `N`
    /// and `T` are as in [`Team::on_slices`].
    pub(super) fn combine_in_place<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        data: &mut [T],
        site: Site,
    ) -> Result<()> {
        if let Some(widening) = Widening::of(self, &verb, combination) {
            let bytes = wide_bytes::<T>();
            for (verb, piece) in pieces(verb, data.len(), bytes, piece_len(bytes)) {
                let piece = &mut data[piece];
                let mut long = widening.widen(piece);
                self.combine_in_place::<N, f32>(verb, widening.combination(), &mut long, site)?;
                widening.narrow(&long, piece);
            }
            return Ok(());
        }
        // Two PEs that read copies of each other's contributions need no algorithm in place: see
        // `combine_over`.
        let is_copied = || self.size() == 2 && self.copies_for_peers();
        if size_of_val(data) < SHORT_BYTES || is_copied() {
            return self.combine_in_pieces::<N, T>(verb, combination, data, site);
        }
        let len = if self.copies_for_peers() { piece_len(size_of::<T>()) } else { usize::MAX };
        for (verb, piece) in pieces(verb, data.len(), size_of::<T>(), len) {
            self.combine_piece_in_place::<N, T>(verb, combination, &mut data[piece], site)?;
        }
        Ok(())
    }

    /// Combines `data` in place by one call, if its algorithm allows that.
    fn combine_piece_in_place<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        data: &mut [T],
        site: Site,
    ) -> Result<()> {
        let call = verb.spec::<N, T>(self, data.len(), combination);
        let call = CallSpec { in_place: true, ..call };
        let kernel = combination.map(|it| it.kernel);
        let Some(ready) = self.state.plan_in_place(&call, kernel.as_ref())? else {
            return self.combine_in_pieces::<N, T>(verb, combination, data, site);
        };
        let (source, target) = match verb.root.is_none() || verb.is_root(self) {
            true => (Buffer::ABSENT, Buffer::target(data)),
            false => (Buffer::source(data), Buffer::ABSENT),
        };
        let operands = Operands { kernel, source, target, layouts: None };
        self.state.run_new(&*ready, &operands, site)
    }

    /// Combines `data` in place, by a call for each piece of it. Peers may still read a PE's
    /// contribution while its first results are written, so the algorithm gets a copy of the piece,
    /// unless it makes one itself.
    fn combine_in_pieces<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        data: &mut [T],
        site: Site,
    ) -> Result<()> {
        let mut copy = Vec::new();
        for (verb, piece) in pieces(verb, data.len(), size_of::<T>(), piece_len(size_of::<T>())) {
            let piece = &mut data[piece];
            if verb.root.is_some() && !verb.is_root(self) {
                self.on_slices::<N, T>(verb, combination, piece, &mut [], site)?;
                continue; // this PE receives nothing
            }
            if self.combine_over::<N, T>(verb, combination, piece, site)? {
                continue;
            }
            copy.clear();
            copy.extend_from_slice(piece);
            self.on_slices::<N, T>(verb, combination, &copy, piece, site)?;
        }
        Ok(())
    }

    /// Combines `data` in place by one call, which reads and writes it, if the PEs are processes and
    /// the algorithm exposes it: peers then read a copy. The first call of a kind, which makes the
    /// plan, is not made here. Returns whether the call has been made.
    fn combine_over<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        data: &mut [T],
        site: Site,
    ) -> Result<bool> {
        let (len, target) = (data.len(), Buffer::target(data));
        if target.byte_len() < FEW_BYTES {
            return Ok(false);
        }
        let Some(source) = target.as_source(self.state.endpoint.job()) else { return Ok(false) };
        let kernel = combination.map(|it| it.kernel);
        let operands = Operands { kernel, source, target, layouts: None };
        self.state.call_in_place(&verb.spec::<N, T>(self, len, combination), &operands, site)
    }

    /// Makes a call of a vector variant on slices, as [`Team::on_slices`].
    pub(super) fn on_blocks<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        [contributed, received]: [Held<'_>; 2],
        source: &[T],
        target: &mut [T],
        site: Site,
    ) -> Result<()> {
        let layouts = layouts::<T>(self, (source.len(), contributed), (target.len(), received))?;
        let buffers = (Buffer::source(source), Buffer::target(target));
        self.run::<N, T>(verb, 0, false, None, buffers, Some(layouts), site)
    }

    /// Makes a call in symmetric memory. Memory that this PE neither reads nor writes is ignored.
    #[inline(always)]
    pub(super) fn on_symmetric<T: Element>(
        &self,
        verb: Verb<'_>,
        combination: Combination<'_>,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        site: Site,
    ) -> Result<()> {
        source.check_with(target, verb.collective, &self.state)?;
        let (len, source_len, target_len) =
            verb.symmetric_lens(self, source.len(), target.len())?;
        let buffers =
            (source.buffer(&self.state, source_len), target.buffer(&self.state, target_len));
        self.in_heap::<T>(verb, len, true, combination, buffers, site)
    }

    /// Makes a call on blocks of `len` elements in memory that peers can access. `symmetric` is
    /// whether they access it without a rendezvous.
    #[inline(always)]
    pub(crate) fn in_heap<T: Pod>(
        &self,
        verb: Verb<'_>,
        len: usize,
        symmetric: bool,
        combination: Combination<'_>,
        (source, mut target): (Buffer<'_>, Buffer<'_>),
        site: Site,
    ) -> Result<()> {
        if let Some(widening) = Widening::of(self, &verb, combination) {
            let (source, mut results) = (widening.widen_in(&source), Widening::blank_in(&target));
            self.on_slices::<T, f32>(verb, widening.combination(), &source, &mut results, site)?;
            widening.narrow_in(&results, &mut target);
            return Ok(());
        }
        let is_broadcast = verb.collective == Collective::Broadcast;
        let buffers = brought(is_broadcast, verb.is_root(self), source, target).into();
        self.run::<T, T>(verb, len, symmetric, combination, buffers, None, site)
    }

    /// As [`Team::on_blocks`], in symmetric memory.
    pub(super) fn on_symmetric_blocks<T: Element>(
        &self,
        verb: Verb<'_>,
        [contributed, received]: [Held<'_>; 2],
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        site: Site,
    ) -> Result<()> {
        source.check_with(target, verb.collective, &self.state)?;
        let layouts = layouts::<T>(self, (source.len(), contributed), (target.len(), received))?;
        let source = source.buffer(&self.state, source.len());
        let target = target.buffer(&self.state, target.len());
        self.run::<T, T>(verb, 0, true, None, (source, target), Some(layouts), site)
    }

    /// Makes a call in these buffers, whose lengths have been checked: on blocks of `len` elements,
    /// or on those of `layouts`.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "all that a call has")]
    pub(crate) fn run<N, T: Pod>(
        &self,
        verb: Verb<'_>,
        len: usize,
        symmetric: bool,
        combination: Combination<'_>,
        (source, target): (Buffer<'_>, Buffer<'_>),
        layouts: Option<[Layout<'_>; 2]>,
        site: Site,
    ) -> Result<()> {
        let kernel = combination.map(|it| it.kernel);
        let layouts = layouts.or_else(|| verb.even::<T>(self, len));
        let operands = Operands { kernel, source, target, layouts: layouts.as_ref() };
        let call = verb.spec::<N, T>(self, len, combination);
        self.state.call(CallSpec { symmetric, ..call }, &operands, site)
    }

    /// All-gathers `value`, in the order of the ranks, in a call of this name. Exit mode Mine: a PE
    /// returns when it has all values.
    ///
    /// # Errors
    /// See [`Team`].
    #[track_caller]
    pub(crate) fn all_gather_named<T: Pod>(&self, name: &str, value: T) -> Result<Vec<T>> {
        let mut all = blank(self.size());
        let call = self.state.spec::<T, T>(Collective::AllGather, SyncModes::MINE, 1, None);
        let ready = self.state.prepare_named(&call, name)?;
        let (source, target) = (std::slice::from_ref(&value), &mut all[..]);
        let (source, target) = (Buffer::source(source), Buffer::target(target));
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.run_new(&*ready, &operands, Location::caller()).map(|()| all)
    }
}
