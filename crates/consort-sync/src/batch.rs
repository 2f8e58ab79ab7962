//! Closures that are executed together. They are stored one after the other in an array of words:
//!
//! | words | contents |
//! | --- | --- |
//! | first | a function that knows the type of the closure |
//! | second | the number of words that follow |
//! | others | the closure |

#![expect(unsafe_code, reason = "stores closures of any type in one array")]

use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, thread,
};

use consort_machine::{ProcessToken, discard};

use crate::{
    closure::{Frame, SharedData, words},
    data::DelegatedData,
    delegation::Scheme,
    detached::NO_SERVER,
};

/// The size of the array in words: 2 KiB.
const WORDS: usize = 256;
/// Words that precede a closure.
const HEAD: usize = 2;
/// The largest closure in words; a larger one is boxed.
const MOST: usize = 16;

/// Moves a closure out of its words. Executes it with the data, or drops it if there is no data.
type Take<T> = unsafe fn(*const u64, Option<&mut T>);

/// # Safety
/// The words hold a closure of this type, which is not used afterwards.
unsafe fn take<T, F: FnOnce(&mut T)>(closure: *const u64, data: Option<&mut T>) {
    // SAFETY: guaranteed by the caller.
    let closure = unsafe { closure.cast::<F>().read() };
    if let Some(data) = data {
        closure(data);
    }
}

struct Closures<T> {
    /// Never grows, so closures stay where they are.
    words: Vec<MaybeUninit<u64>>,
    /// The index of the first closure that was not taken.
    begin: usize,
    of: PhantomData<Take<T>>,
}

impl<T> Closures<T> {
    const fn new() -> Self {
        Self { words: Vec::new(), begin: 0, of: PhantomData }
    }

    /// Returns whether there is room for a closure of `count` words.
    #[inline]
    fn has_room(&self, count: usize) -> bool {
        self.words.capacity() - self.words.len() >= HEAD + count
    }

    /// Adds a closure of at most [`MOST`] words.
    ///
    /// # Panics
    /// When there is no room.
    #[inline]
    fn push<F: FnOnce(&mut T) + Send>(&mut self, closure: F) {
        assert!(align_of::<F>() <= align_of::<u64>(), "a closure with a larger alignment is boxed");
        let count = size_of::<F>().div_ceil(size_of::<u64>());
        let room = &mut self.words.spare_capacity_mut()[..HEAD + count];
        let take: Take<T> = take::<T, F>;
        let take = (take as *const ()).expose_provenance() as u64;
        room[0].write(MaybeUninit::new(take));
        room[1].write(MaybeUninit::new(count as u64));
        // SAFETY: there is room for `count` words, which are aligned as the closure needs.
        unsafe { room[HEAD..].as_mut_ptr().cast::<F>().write(closure) };
        // SAFETY: the words of the head were written; those of the closure may be uninitialized.
        unsafe { self.words.set_len(self.words.len() + HEAD + count) };
    }

    /// Returns the word at this index, which belongs to a head.
    #[inline]
    fn head(&self, index: usize) -> usize {
        // SAFETY: the words of heads are initialized.
        let word = unsafe { self.words[index].assume_init() };
        usize::try_from(word).unwrap_or(0)
    }

    /// Takes all closures in order, and executes them with the data, or drops them if there is no
    /// data.
    ///
    /// # Panics
    /// When a closure panics. The closures after it can still be taken.
    #[inline]
    fn take_all(&mut self, mut data: Option<&mut T>) {
        while self.begin < self.words.len() {
            let (take, count) = (self.head(self.begin), self.head(self.begin + 1));
            let closure = self.words[self.begin + HEAD..].as_ptr().cast::<u64>();
            self.begin += HEAD + count;
            // SAFETY: the word holds the address of a function of this type.
            let take =
                unsafe { mem::transmute::<*const (), Take<T>>(ptr::with_exposed_provenance(take)) };
            // SAFETY: the closure follows the head, and was not taken before.
            unsafe { take(closure, data.as_deref_mut()) };
        }
    }

    /// Calls `with`, which takes closures, until none is left. Passes the payloads of panics to
    /// `discard`.
    fn take_each(&mut self, with: impl Fn(&mut Self), discard: impl Fn(Box<dyn Any + Send>)) {
        while self.begin < self.words.len() {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| with(self))) {
                discard(payload);
            }
        }
    }
}

impl<T> Drop for Closures<T> {
    fn drop(&mut self) {
        self.take_each(|it| it.take_all(None), discard);
    }
}

/// Executes the closures of a batch, or drops them if the data is poisoned.
///
/// # Safety
/// `closures` comes from [`Batch::deliver`] with this type; no other thread uses the data.
unsafe fn execute_batch<T>(shared: &SharedData<T>, closures: *mut (), above: *const Frame) {
    // SAFETY: guaranteed by the caller.
    let mut closures = unsafe { Box::from_raw(closures.cast::<Closures<T>>()) };
    let take = |closures: &mut Closures<T>| {
        let is_poisoned = shared.is_poisoned();
        let take = |data: &mut T| closures.take_all((!is_poisoned).then_some(data));
        // SAFETY: guaranteed by the caller.
        unsafe { shared.execute(above, take) };
    };
    // SAFETY: guaranteed by the caller.
    let discard = |payload| unsafe { shared.discard(above, payload) };
    closures.take_each(take, discard);
}

/// A batch of closures that are executed together, in order. It holds about a hundred small
/// closures, or fewer large ones. Adding one takes one or two nanoseconds and waits for no other
/// thread. Other threads see the closures only when the batch is delivered.
///
/// ```
/// use consort_sync::Delegate;
///
/// let counter = Delegate::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let mut batch = counter.batch();
///             (0..1000).for_each(|_| batch.push(|count| *count += 1));
///         });
///     }
/// });
/// assert_eq!(counter.into_inner(), 4000);
/// ```
#[must_use = "a batch delivers its closures when it is dropped"]
pub struct Batch<'d, T, S: Scheme> {
    data: &'d DelegatedData<T, S>,
    /// The process in which a server executes the closures; `None` if any thread may execute them.
    served_in: Option<ProcessToken>,
    closures: Closures<T>,
}

impl<'d, T, S: Scheme> Batch<'d, T, S> {
    pub(crate) const fn new(
        data: &'d DelegatedData<T, S>,
        served_in: Option<ProcessToken>,
    ) -> Self {
        Self { data, served_in, closures: Closures::new() }
    }

    /// Returns whether no thread would execute the closures, because this is a forked child without
    /// the server.
    fn is_lost(&self) -> bool {
        self.served_in.is_some_and(|process| !process.is_current())
    }

    /// Adds a closure. If there is no room, delivers the earlier closures first.
    ///
    /// # Panics
    /// As [`deliver`](Self::deliver).
    #[inline]
    #[track_caller]
    pub fn push<F: FnOnce(&mut T) + Send + 'static>(&mut self, closure: F) {
        if const { size_of::<F>() <= 8 * MOST && align_of::<F>() <= align_of::<u64>() } {
            self.add(closure);
        } else {
            self.add(Box::new(closure));
        }
    }

    #[inline]
    #[track_caller]
    fn add<F: FnOnce(&mut T) + Send>(&mut self, closure: F) {
        if !self.closures.has_room(size_of::<F>().div_ceil(size_of::<u64>())) {
            self.deliver();
            self.closures.words.reserve_exact(WORDS);
        }
        self.closures.push(closure);
    }

    /// Delivers the closures, as [`Delegate::detach`](crate::Delegate::detach) does.
    ///
    /// # Panics
    /// When the caller is itself a closure on this data, or when such a closure waits for the
    /// caller. The closures of the batch are then dropped. In a forked child, as
    /// [`Server::apply`](crate::Server::apply).
    #[cold]
    #[track_caller]
    pub fn deliver(&mut self) {
        let closures = mem::replace(&mut self.closures, Closures::new());
        if !closures.words.is_empty() {
            assert!(!self.is_lost(), "{NO_SERVER}");
            self.data.shared.refuse_circular_wait();
            let closures = Box::into_raw(Box::new(closures));
            self.data.push(words(execute_batch::<T>, closures.cast()));
        }
    }
}

impl<T, S: Scheme> Drop for Batch<'_, T, S> {
    /// Delivers the closures. Drops them instead if this thread panics within a closure on this
    /// data, or in a forked child without the server.
    fn drop(&mut self) {
        if !(self.is_lost() || thread::panicking() && self.data.shared.is_in_use_here()) {
            self.deliver();
        }
    }
}

impl<T, S: Scheme> fmt::Debug for Batch<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("words", &self.closures.words.len()).finish_non_exhaustive()
    }
}
