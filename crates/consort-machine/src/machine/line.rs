//! Words and cache lines, common to all machines.

use std::ops::Deref;

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

/// A 64-bit word, shared by all threads. Only a [`Machine`](super::Machine) reads and writes it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// Creates a word with this value.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    /// Returns the underlying atomic, for machines.
    #[inline(always)]
    pub const fn atomic(&self) -> &AtomicU64 {
        &self.0
    }
}

/// Two words on one line that a machine may exchange atomically.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct Pair([Word; 2]);

impl Deref for Pair {
    type Target = [Word; 2];

    #[inline(always)]
    fn deref(&self) -> &[Word; 2] {
        &self.0
    }
}

/// A cache line of eight words.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Line([Word; 8]);

impl Line {
    /// Creates a line of zeros.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self([const { Word::new(0) }; 8])
    }

    /// Returns the address, to be stored in a word of another line. It is a nonzero multiple of 64.
    #[inline(always)]
    #[must_use]
    pub fn address(&'static self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64
    }

    /// Returns the line at an address.
    ///
    /// # Safety
    /// [`Line::address`] returned this address.
    #[inline(always)]
    #[must_use]
    #[expect(unsafe_code, reason = "links queues of nodes by addresses in words")]
    #[expect(clippy::cast_possible_truncation, reason = "it was an address")]
    pub unsafe fn at(address: u64) -> &'static Self {
        let line = std::ptr::with_exposed_provenance::<Self>(address as usize);
        // SAFETY: `address` was called on a line that lives as long as the program, and it exposed
        // the provenance. All access to a line is atomic, so sharing it is sound.
        unsafe { &*line }
    }
}

#[cfg(not(loom))]
impl Line {
    /// Returns the line as four pairs of words.
    #[inline(always)]
    #[must_use]
    #[expect(unsafe_code, reason = "makes a view of the same words")]
    pub const fn pairs(&self) -> &[Pair; 4] {
        // SAFETY: both are eight consecutive words, and a line has a larger alignment than a pair.
        unsafe { &*std::ptr::from_ref(self).cast::<[Pair; 4]>() }
    }
}

#[cfg(loom)]
impl Line {
    /// # Panics
    /// Always: no loom machine exchanges pairs.
    pub fn pairs(&self) -> &[Pair; 4] {
        unreachable!("loom's atomics are not pairs")
    }
}

impl Deref for Line {
    type Target = [Word; 8];

    #[inline(always)]
    fn deref(&self) -> &[Word; 8] {
        &self.0
    }
}
