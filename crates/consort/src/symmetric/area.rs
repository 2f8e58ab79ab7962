//! The elements of an allocation, by index and by rank in the team. This module checks indices and
//! ranks; `OneSided` performs the operations.

use std::marker::PhantomData;

use consort_fabric::{Atomic, Kernel, Operator, Rank, Signal};
use consort_native::{OneSided, Width};

use super::{
    element::Element,
    word::{Word, width_of},
};
use crate::{Error, Result, error::CallError};

/// An allocation, from the view of a PE or another thread.
pub(super) struct Area<'a, T> {
    pub(super) one_sided: OneSided<'a>,
    /// The ranks in the world of the team's PEs.
    pub(super) ranks: &'a [Rank],
    /// The offset of the allocation in each heap.
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) elements: PhantomData<T>,
}

impl<T: Element> Area<'_, T> {
    /// Returns the rank in the world of a rank in the team.
    fn pe(&self, rank: Rank) -> Result<Rank> {
        self.ranks
            .get(rank.index())
            .copied()
            .ok_or_else(|| CallError::RankOutOfRange { rank, pes: self.ranks.len() }.into())
    }

    /// Returns the offset of `count` elements starting at `first`.
    fn at(&self, first: usize, count: usize) -> Result<usize> {
        self.at_end(first, first.checked_add(count))
    }

    /// Returns the offset of the elements from `first` to `end`.
    fn at_end(&self, first: usize, end: Option<usize>) -> Result<usize> {
        match end {
            Some(end) if end <= self.len => Ok(self.offset + first * size_of::<T>()),
            _ => {
                let end = end.unwrap_or(usize::MAX);
                Err(CallError::OutOfBounds { first, end, len: self.len }.into())
            }
        }
    }

    /// Returns the offset of the elements of a strided copy, one for every `data_stride`th of
    /// `len`. Each is `stride` elements after the previous one.
    fn strided(
        &self,
        first: usize,
        stride: usize,
        len: usize,
        data_stride: usize,
    ) -> Result<usize> {
        assert!(stride > 0 && data_stride > 0, "a stride is at least 1");
        match len.div_ceil(data_stride) {
            0 => self.at(first, 0),
            count => {
                let last =
                    (count - 1).checked_mul(stride).and_then(|apart| first.checked_add(apart));
                self.at_end(first, last.and_then(|last| last.checked_add(1)))
            }
        }
    }

    /// Checks that far PEs have replied to all requests, as they do unless the job fails.
    pub(super) fn ensure_answered(&self) -> Result<()> {
        self.one_sided.failed_far().map_or(Ok(()), |job| Err(Error::of_job(job)))
    }

    pub(super) fn put(&self, to: Rank, first: usize, data: &[T]) -> Result<()> {
        let (to, at) = (self.pe(to)?, self.at(first, data.len())?);
        self.one_sided.put(to, at, data);
        Ok(())
    }

    pub(super) fn get(&self, from: Rank, first: usize, data: &mut [T]) -> Result<()> {
        let (from, at) = (self.pe(from)?, self.at(first, data.len())?);
        self.one_sided.get(from, at, data);
        self.ensure_answered()
    }

    pub(super) fn address(&self, pe: Rank, index: usize) -> Result<*mut T> {
        let (pe, at) = (self.pe(pe)?, self.at(index, 1)?);
        let address = self.one_sided.address(pe, at, size_of::<T>());
        let needs = "an address needs PEs that share memory";
        address.map(<*mut u8>::cast).ok_or_else(|| CallError::NeedsSharedMemory(needs).into())
    }

    pub(super) fn get_combine<O: Operator<T>>(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        operator: &O,
    ) -> Result<()> {
        let (from, at) = (self.pe(from)?, self.at(first, data.len())?);
        self.one_sided.get_combine(from, at, data, &Kernel::new::<T, O>(operator));
        self.ensure_answered()
    }

    pub(super) fn put_strided(
        &self,
        to: Rank,
        (first, stride): (usize, usize),
        (data, data_stride): (&[T], usize),
    ) -> Result<()> {
        let (to, at) = (self.pe(to)?, self.strided(first, stride, data.len(), data_stride)?);
        if size_of::<T>() > 0 {
            self.one_sided.put_strided(to, (at, stride), (data, data_stride));
        }
        Ok(())
    }

    pub(super) fn get_strided(
        &self,
        from: Rank,
        (first, stride): (usize, usize),
        (data, data_stride): (&mut [T], usize),
    ) -> Result<()> {
        let (from, at) = (self.pe(from)?, self.strided(first, stride, data.len(), data_stride)?);
        if size_of::<T>() > 0 {
            self.one_sided.get_strided(from, (at, stride), (data, data_stride));
        }
        self.ensure_answered()
    }

    pub(super) fn put_signal<W: Word>(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        (flags, index): (&Area<'_, W>, usize),
        how: Signal,
    ) -> Result<()> {
        let (to, at) = (self.pe(to)?, self.at(first, data.len())?);
        self.one_sided.put_signal(to, at, data, flags.word_on(to, self.ranks, index)?, how);
        Ok(())
    }

    /// Gets, and then changes a word of the PE from which it gets.
    pub(super) fn get_signal<W: Word>(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        (flags, index): (&Area<'_, W>, usize),
        how: Signal,
    ) -> Result<()> {
        let pe = self.pe(from)?;
        let (word, width) = flags.word_on(pe, self.ranks, index)?;
        self.get(from, first, data)?;
        self.one_sided.signal(pe, word, width, how);
        Ok(())
    }
}

impl<W: Word> Area<'_, W> {
    /// Returns the offset and the width of a word.
    pub(super) fn word(&self, index: usize) -> Result<(usize, Width)> {
        Ok((self.at(index, 1)?, width_of::<W>()))
    }

    /// Returns the offset and the width of a word on a PE of the world, which is one of the team
    /// with these `ranks`.
    fn word_on(&self, pe: Rank, ranks: &[Rank], index: usize) -> Result<(usize, Width)> {
        if !std::ptr::eq(self.ranks, ranks) && !self.ranks.contains(&pe) {
            return Err(CallError::WordElsewhere { rank: pe }.into());
        }
        self.word(index)
    }

    pub(super) fn atomic(&self, at: Rank, index: usize, operation: Atomic) -> Result<W> {
        let (pe, (word, width)) = (self.pe(at)?, self.word(index)?);
        let bits = self.one_sided.atomic(pe, word, width, operation);
        self.ensure_answered()?;
        Ok(W::from_bits(bits))
    }

    pub(super) fn signal(&self, to: Rank, index: usize, how: Signal) -> Result<()> {
        let (to, (word, width)) = (self.pe(to)?, self.word(index)?);
        self.one_sided.signal(to, word, width, how);
        Ok(())
    }
}
