//! Point-to-point synchronization: tests of this PE's words, and waits for them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::c_int;

use crate::{
    elements::Waitable,
    failure::fail,
    world::{World, ensure_aligned, world},
};

/// `SHMEM_CMP_EQ`, as `shmem.h` numbers it.
pub const EQ: c_int = 0;
/// `SHMEM_CMP_NE`.
pub const NE: c_int = 1;
/// `SHMEM_CMP_GT`.
pub const GT: c_int = 2;
/// `SHMEM_CMP_LE`.
pub const LE: c_int = 3;
/// `SHMEM_CMP_LT`.
pub const LT: c_int = 4;
/// `SHMEM_CMP_GE`.
pub const GE: c_int = 5;

/// `SIZE_MAX`: no element.
const NONE: usize = usize::MAX;

fn holds<T: Waitable>(cmp: c_int, value: T, than: T) -> bool {
    match cmp {
        EQ => value == than,
        NE => value != than,
        GT => value > than,
        LE => value <= than,
        LT => value < than,
        _ => value >= than,
    }
}

/// Words of this PE that `status` does not exclude, and the values with which they are compared.
struct WaitedWords<'w, T> {
    world: &'w World,
    routine: &'w str,
    ivars: *const T,
    nelems: usize,
    status: *const c_int,
    cmp: c_int,
    values: *const T,
    /// 1 if each word has its own value, and 0 if all share one.
    step: usize,
}

impl<'w, T: Waitable> WaitedWords<'w, T> {
    /// Checks the arguments; `argument` is the name of the words' address.
    fn new(
        (routine, argument): (&'w str, &str),
        (ivars, nelems): (*const T, usize),
        status: *const c_int,
        cmp: c_int,
        (values, step): (*const T, usize),
    ) -> Self {
        let world = world(routine);
        if !(EQ..=GE).contains(&cmp) {
            fail(
                routine,
                format_args!(
                    "argument cmp is {cmp}, expected SHMEM_CMP_EQ, _NE, _GT, _LE, _LT or _GE"
                ),
            );
        }
        if nelems > 0 {
            let bytes = nelems.saturating_mul(size_of::<T>());
            world.locate(routine, (argument, ivars), bytes, world.rank);
            ensure_aligned(routine, argument, ivars.addr(), size_of::<T>());
        }
        Self { world, routine, ivars, nelems, status, cmp, values, step }
    }

    /// Returns the indices that are not excluded.
    ///
    /// # Safety
    /// The status, if there is one, is readable for all words.
    unsafe fn included(&self) -> impl Iterator<Item = usize> {
        // SAFETY: guaranteed by the caller.
        (0..self.nelems)
            .filter(|&index| self.status.is_null() || unsafe { *self.status.add(index) } == 0)
    }

    /// Returns the value of a word, if its condition holds.
    ///
    /// # Safety
    /// The values are readable.
    #[inline(always)]
    unsafe fn found(&self, index: usize) -> Option<T> {
        // SAFETY: a word that has been checked; the caller guarantees the values.
        let (value, than) =
            unsafe { (T::load(self.ivars.add(index)), *self.values.add(index * self.step)) };
        holds(self.cmp, value, than).then_some(value)
    }

    /// Returns `found`. If it is `None`, lets messages from far PEs take effect for the next
    /// search.
    #[inline(always)]
    fn or_progress<R>(&self, found: Option<R>) -> Option<R> {
        if found.is_none() {
            self.world.one_sided().progress();
        }
        found
    }

    /// Waits until `test` finds something, and returns it.
    fn wait<R>(&self, test: impl Fn() -> Option<R>) -> R {
        match test() {
            Some(found) => found,
            None => self.world.one_sided().wait_for(self.world.rank, test).unwrap_or_else(|_| {
                let reason = self.world.job.failure();
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                fail(self.routine, format_args!("the job has failed{reason}"))
            }),
        }
    }

    /// Returns a word whose condition holds. Each search begins after the word found last, so that
    /// a series of calls finds each of several words.
    ///
    /// # Safety
    /// As for `included` and `found`.
    unsafe fn any(&self) -> Option<usize> {
        /// The start of the next search.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let first = NEXT.load(Relaxed) % self.nelems.max(1);
        // SAFETY: guaranteed by the caller.
        let is_found = |&index: &usize| unsafe { self.found(index) }.is_some();
        // SAFETY: as above.
        let [mut behind, mut before] = [(); 2].map(|()| unsafe { self.included() });
        let found = behind.find(|index| *index >= first && is_found(index));
        let found = found.or_else(|| before.find(|index| *index < first && is_found(index)))?;
        NEXT.store(found + 1, Relaxed);
        Some(found)
    }

    /// Writes the indices of all words whose conditions hold, and returns their number.
    ///
    /// # Safety
    /// As [`WaitedWords::any`]; `indices` has room for all.
    unsafe fn some(&self, indices: *mut usize) -> usize {
        let mut count = 0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            for index in self.included().filter(|&index| self.found(index).is_some()) {
                indices.add(count).write(index);
                count += 1;
            }
        }
        count
    }

    /// Returns whether all conditions hold.
    ///
    /// # Safety
    /// As [`WaitedWords::any`].
    unsafe fn all(&self) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.included().all(|index| self.found(index).is_some()) }
    }

    /// Returns whether no word is included.
    ///
    /// # Safety
    /// As [`WaitedWords::any`].
    unsafe fn is_empty(&self) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.included() }.next().is_none()
    }
}

/// `shmem_wait_until`.
///
/// # Safety
/// Here and below: `ivar` and `ivars` are words of the type; `status` is null or readable for all
/// words, and so are `cmp_values`; `indices` is writable for all words.
#[inline]
pub unsafe fn wait_until<T: Waitable>(ivar: *mut T, cmp: c_int, cmp_value: T) {
    // SAFETY: guaranteed by the caller.
    unsafe { wait_for(("shmem_wait_until", "ivar"), ivar, cmp, cmp_value) };
}

unsafe fn wait_for<T: Waitable>(
    names: (&str, &str),
    ivar: *const T,
    cmp: c_int,
    cmp_value: T,
) -> T {
    let words =
        WaitedWords::new(names, (ivar, 1), std::ptr::null(), cmp, (&raw const cmp_value, 0));
    // SAFETY: guaranteed by the caller.
    words.wait(|| unsafe { words.found(0) })
}

/// `shmem_wait`, of 1.3: waits until the word differs.
///
/// # Safety
/// As [`wait_until`].
pub unsafe fn wait<T: Waitable>(ivar: *mut T, cmp_value: T) {
    // SAFETY: guaranteed by the caller.
    unsafe { wait_for(("shmem_wait", "ivar"), ivar, NE, cmp_value) };
}

/// `shmem_signal_wait_until`: returns the signal.
///
/// # Safety
/// As [`wait_until`].
pub unsafe fn signal_wait_until(sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { wait_for(("shmem_signal_wait_until", "sig_addr"), sig_addr, cmp, cmp_value) }
}

/// `shmem_test`.
///
/// # Safety
/// As [`wait_until`].
pub unsafe fn test<T: Waitable>(ivar: *mut T, cmp: c_int, cmp_value: T) -> c_int {
    let given = (&raw const cmp_value, 0);
    let words = WaitedWords::new(("shmem_test", "ivar"), (ivar, 1), std::ptr::null(), cmp, given);
    // SAFETY: guaranteed by the caller.
    c_int::from(words.or_progress(unsafe { words.found(0) }).is_some())
}

macro_rules! of_many {
    ($(
        $of_one:ident, $of_each:ident $(, $indices:ident)?: $result:ty, $routine:literal,
        |$words:ident| $body:expr;
    )*) => {$(
        #[doc = concat!("`", $routine, "`.")]
        ///
        /// # Safety
        /// As [`wait_until`].
        pub unsafe fn $of_one<T: Waitable>(
            ivars: *mut T,
            nelems: usize,
            $($indices: *mut usize,)?
            status: *const c_int,
            cmp: c_int,
            cmp_value: T,
        ) -> $result {
            let given = (&raw const cmp_value, 0);
            let $words = WaitedWords::new(($routine, "ivars"), (ivars, nelems), status, cmp, given);
            // SAFETY: guaranteed by the caller.
            unsafe { $body }
        }

        #[doc = concat!("`", $routine, "_vector`.")]
        ///
        /// # Safety
        /// As [`wait_until`].
        pub unsafe fn $of_each<T: Waitable>(
            ivars: *mut T,
            nelems: usize,
            $($indices: *mut usize,)?
            status: *const c_int,
            cmp: c_int,
            cmp_values: *const T,
        ) -> $result {
            let routine = concat!($routine, "_vector");
            let (names, values) = ((routine, "ivars"), (cmp_values, 1));
            let $words = WaitedWords::new(names, (ivars, nelems), status, cmp, values);
            // SAFETY: guaranteed by the caller.
            unsafe { $body }
        }
    )*};
}

of_many! {
    wait_until_all, wait_until_all_vector: (), "shmem_wait_until_all",
        |words| words.wait(|| words.all().then_some(()));
    wait_until_any, wait_until_any_vector: usize, "shmem_wait_until_any",
        |words| if words.is_empty() { NONE } else { words.wait(|| words.any()) };
    wait_until_some, wait_until_some_vector, indices: usize, "shmem_wait_until_some",
        |words| if words.is_empty() {
            0
        } else {
            words.wait(|| Some(words.some(indices)).filter(|&count| count > 0))
        };
    test_all, test_all_vector: c_int, "shmem_test_all",
        |words| c_int::from(words.or_progress(words.all().then_some(())).is_some());
    test_any, test_any_vector: usize, "shmem_test_any",
        |words| words.or_progress(words.any()).unwrap_or(NONE);
    test_some, test_some_vector, indices: usize, "shmem_test_some",
        |words| words
            .or_progress(Some(words.some(indices)).filter(|&count| count > 0))
            .unwrap_or(0);
}
