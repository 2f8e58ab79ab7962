//! Symmetric memory: the same allocation on every PE, which all can put to and get from.

use std::{fmt, marker::PhantomData, sync::Arc};

use consort_fabric::{Atomic, Fabric, Kernel, Op, Operator, Pod, Rank, Signal, Span, Until};
use consort_native::{BLOCK_ALIGN, Block, Buffer, Call, Job, Operands};

use crate::{
    Error, Result, Team,
    team::{Hold, State},
};

/// What symmetric memory may hold: plain data that needs no more alignment than a cache line.
pub trait Element: Pod {
    /// Checked where memory is allocated.
    const FITS: () = assert!(align_of::<Self>() <= BLOCK_ALIGN, "over-aligned elements");
}

impl<T: Pod> Element for T {}

mod sealed {
    /// What nobody else can implement, since nobody else can name it.
    pub trait Sealed {}

    impl Sealed for u64 {}
    impl Sealed for i64 {}
}

/// An integer that one-sided atomic operations work on: 64 bits.
///
/// These are `u64` and `i64`, and no other type can become one: an operation works on 8 bytes from
/// where the element begins, so a shorter one would let it change what lies after it.
///
/// ```compile_fail,E0277
/// # use consort::Word;
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Nothing;
///
/// impl Word for Nothing {
///     fn to_bits(self) -> u64 {
///         0
///     }
///
///     fn from_bits(_: u64) -> Self {
///         Self
///     }
/// }
/// ```
pub trait Word: Pod + sealed::Sealed {
    /// Its bits.
    fn to_bits(self) -> u64;
    /// From its bits.
    fn from_bits(bits: u64) -> Self;
}

impl Word for u64 {
    fn to_bits(self) -> u64 {
        self
    }

    fn from_bits(bits: u64) -> Self {
        bits
    }
}

impl Word for i64 {
    fn to_bits(self) -> u64 {
        self.cast_unsigned()
    }

    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }
}

/// The same number of elements on every PE of a team, from [`Team::symmetric`]. All are 0 at first.
///
/// Ranks are those in that team. Collectives of other teams of the same PEs, or of some of them,
/// may use it too. Once its team is freed, its own operations return [`Error::Freed`].
///
/// Everyone may read and write everyone's part at any time, so there are no references into it:
/// elements are copied in and out, each byte atomically, and a copy that races with another yields
/// some mixture of old and new bytes. Use signals, [`Symmetric::wait_until`] or a collective to
/// know when data is there. Dropping it is local; the memory is reused once all PEs have dropped
/// theirs.
pub struct Symmetric<'p, T: Element> {
    state: Hold<'p>,
    block: Arc<Block>,
    len: usize,
    elements: PhantomData<T>,
}

impl<'p, T: Element> Symmetric<'p, T> {
    /// Allocates memory in a call that goes by this name.
    pub(crate) fn allocate(team: Team<'p>, len: usize, name: &str) -> Result<Self> {
        const { T::FITS }
        let bytes = len.saturating_mul(size_of::<T>());
        let block = team.allocate(name, |endpoint| Block::allocate(endpoint, bytes))?;
        Ok(Self { state: team.state, block: Arc::new(block), len, elements: PhantomData })
    }

    /// Elements on each PE. Local.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none. Local.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are the same memory.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.block.offset() == other.block.offset() && self.block.bytes() > 0
    }

    /// This PE's part, for a collective of the job that it was allocated in.
    #[inline]
    pub(crate) fn buffer<'b>(&'b self, state: &'b State) -> Buffer<'b> {
        self.ensure_job(state.endpoint.job());
        let rank = state.endpoint.rank_in_world();
        Buffer::symmetric(state.endpoint.job(), rank, self.block.offset(), self.block.bytes())
    }

    /// The span of `count` elements from `first` on.
    fn span(&self, first: usize, count: usize) -> Result<Span> {
        match first.checked_add(count) {
            Some(end) if end <= self.len => {
                let size = size_of::<T>();
                Ok(Span::heap(self.block.offset() + first * size, count * size))
            }
            end => {
                let end = end.unwrap_or(usize::MAX);
                Err(Error::OutOfBounds { first, end, len: self.len })
            }
        }
    }

    /// Panics when `other` is memory of another job.
    pub(crate) fn ensure_same_job<U: Element>(&self, other: &Symmetric<'_, U>) {
        self.ensure_job(other.job());
    }

    /// The memory.
    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    #[inline]
    pub(crate) fn ensure_job(&self, job: &Job) {
        assert!(std::ptr::eq(self.job(), job), "symmetric memory of another job");
    }

    /// Fails once the job has failed.
    pub(crate) fn ensure_sound(&self) -> Result<()> {
        self.state.ensure_sound()
    }

    /// The job that it was allocated in.
    pub(crate) fn job(&self) -> &Job {
        self.state.endpoint.job()
    }

    fn check(&self, rank: Rank) -> Result<()> {
        self.state.ensure_alive()?;
        let pes = self.state.endpoint.size();
        if rank.0 < pes { Ok(()) } else { Err(Error::RankOutOfRange { rank, pes }) }
    }

    fn run<'c, R>(
        &'c self,
        source: Buffer<'c>,
        target: Buffer<'c>,
        operation: impl AsyncFnOnce(&Call<'_>) -> Op<R>,
    ) -> Result<R> {
        self.run_with(None, source, target, operation)
    }

    fn run_with<'c, R>(
        &'c self,
        kernel: Option<Kernel<'c>>,
        source: Buffer<'c>,
        target: Buffer<'c>,
        operation: impl AsyncFnOnce(&Call<'_>) -> Op<R>,
    ) -> Result<R> {
        let _inside = self.state.enter()?;
        let endpoint = &self.state.endpoint;
        let operands = Operands { kernel, source, target, layouts: None };
        // SAFETY: `operation` alone drives the call, to its end, and `enter` refuses calls from
        // within a call.
        #[expect(unsafe_code, reason = "makes a view for one operation")]
        let call = unsafe { endpoint.one_sided(&operands) };
        let done = endpoint.block_on_view(&call, None, operation(&call));
        done.map_err(|_| Error::of_job(endpoint.job()))
    }

    /// Copies `data` to the part of `to`, from element `first` on. One-sided: returns when `data`
    /// may be changed; complete after [`Symmetric::quiet`].
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn put(&self, to: Rank, first: usize, data: &[T]) -> Result<()> {
        self.check(to)?;
        let span = self.span(first, data.len())?;
        self.run(Buffer::source(data), Buffer::ABSENT, async |call| {
            call.put(&call.reach(to, span), 0, Span::source(0, span.bytes)).await
        })
    }

    /// Copies from the part of `from`, from element `first` on, into `data`. One-sided.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn get(&self, from: Rank, first: usize, data: &mut [T]) -> Result<()> {
        self.check(from)?;
        let span = self.span(first, data.len())?;
        self.run(Buffer::ABSENT, Buffer::target(data), async |call| {
            call.get(&call.reach(from, span), 0, Span::target(0, span.bytes)).await
        })
    }

    /// Combines `data` with the part of `from`, from element `first` on: `data[i] = data[i] (op)
    /// part[i]`. One-sided.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// ```
    /// # use consort::{Max, Pes, Rank};
    /// Pes::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let highest = world.symmetric::<u64>(1)?;
    ///     highest.store(0, u64::from(world.rank().0) + 5)?;
    ///     world.barrier()?;
    ///     let mut seen = [2];
    ///     highest.get_combine(Rank(1), 0, &mut seen, Max)?;
    ///     assert_eq!(seen, [6]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn get_combine<O: Operator<T>>(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.check(from)?;
        let span = self.span(first, data.len())?;
        let kernel = Some(Kernel::new::<T, O>(&operator));
        let target = Buffer::target(data);
        self.run_with(kernel, Buffer::ABSENT, target, async |call| {
            let own = Span::target(0, span.bytes);
            call.get_combine(&call.reach(from, span), 0, own, own).await
        })
    }

    /// One element of this PE's own part.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn load(&self, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.get(self.state.endpoint.rank(), index, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Changes one element of this PE's own part.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        self.put(self.state.endpoint.rank(), index, &[value])
    }

    /// Copies `data` to the part of `to`, from element `first` on, and then signals word `word` of
    /// `flags` there: whoever waits for the signal finds the data.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn put_signal<W: Word>(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        flags: &Symmetric<'_, W>,
        word: usize,
        how: Signal,
    ) -> Result<()> {
        self.ensure_same_job(flags);
        self.check(to)?;
        let span = self.span(first, data.len())?;
        let word = flags.span(word, 1)?.at;
        self.run(Buffer::source(data), Buffer::ABSENT, async |call| {
            let source = Span::source(0, span.bytes);
            call.put_signal(&call.reach(to, span), 0, source, word, how).await
        })
    }

    /// Orders this PE's earlier puts before its later ones and signals, for every PE. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn fence(&self) -> Result<()> {
        self.run(Buffer::ABSENT, Buffer::ABSENT, async |call| call.fence().await)
    }

    /// Returns when all this PE's puts are complete. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn quiet(&self) -> Result<()> {
        self.run(Buffer::ABSENT, Buffer::ABSENT, async |call| call.quiet().await)
    }
}

impl<T: Word> Symmetric<'_, T> {
    /// An atomic operation on one word of the part of `at`; sequentially consistent. Returns what
    /// was there. Operands are given by their bits, as [`Word::to_bits`] makes them.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn atomic(&self, at: Rank, index: usize, operation: Atomic) -> Result<T> {
        self.check(at)?;
        let word = self.span(index, 1)?.at;
        self.run(Buffer::ABSENT, Buffer::ABSENT, async |call| {
            call.atomic(at, word, operation).await
        })
        .map(T::from_bits)
    }

    /// Adds `value` to one word of the part of `at`, wrapping around; returns what was there.
    ///
    /// # Errors
    /// As [`Symmetric::atomic`].
    pub fn fetch_add(&self, at: Rank, index: usize, value: T) -> Result<T> {
        self.atomic(at, index, Atomic::FetchAdd(value.to_bits()))
    }

    /// Changes one word of the part of `to`, and wakes whoever waits for it there. What this PE put
    /// before its last [`Symmetric::fence`] is seen by whoever has seen the signal.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn signal(&self, to: Rank, index: usize, how: Signal) -> Result<()> {
        self.put_signal(to, 0, &[], self, index, how)
    }

    /// Waits until one word of this PE's own part is as wanted, and returns it.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn wait_until(&self, index: usize, until: Until) -> Result<T> {
        let word = self.span(index, 1)?.at;
        self.run(Buffer::ABSENT, Buffer::ABSENT, async |call| call.wait_until(word, until).await)
            .map(T::from_bits)
    }
}

impl<T: Element> fmt::Debug for Symmetric<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symmetric").field("len", &self.len).finish_non_exhaustive()
    }
}
