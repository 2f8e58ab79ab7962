//! The job that this process is a PE of, and the locations of its peers' memory.

use std::{
    ops::Deref,
    ptr::null_mut,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicI64, AtomicPtr, AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use consort::{Rank, Team};
use consort_machine::{BiasedGuard, BiasedMutex, ThreadToken};
use consort_native::{OneSided, Statics};
use libc::c_int;

use crate::{
    allocator::Allocator,
    environment::Environment,
    failure::{self, Membership, fail},
};

/// The job as seen by this PE. It is never freed, because the handles of C programs may refer to
/// it.
pub struct World {
    pub(crate) own: Membership,
    pub(crate) heap: usize,
    /// The end of the heap, as an offset.
    pub(crate) heap_bytes: usize,
    pub(crate) statics: Statics,
    /// The offset of the static variables, if peers can reach them.
    pub(crate) statics_at: Option<usize>,
    pub(crate) environment: Environment,
    pub(crate) allocator: Mutex<Allocator>,
    pub(crate) driver: BiasedMutex<Driver>,
    /// The number of threads that make collective calls in turn.
    pub(crate) callers: AtomicU32,
    /// Whether threads of any PE make collective calls at the same time.
    pub(crate) takes_turns: AtomicBool,
    pub(crate) thread_level: AtomicU32,
}

/// Makes collective calls for the thread that holds its lock.
#[derive(Default)]
pub struct Driver {
    /// The world, and the team of the PEs that share memory, if these are all; `None` when the job
    /// has been left.
    pub(crate) teams: Option<[Team; 2]>,
}

impl Driver {
    /// Creates the driver of a job.
    pub(crate) fn new(world: &Team, shared: &Team) -> Self {
        Self { teams: Some([world.clone(), shared.clone()]) }
    }

    /// Returns the team of all PEs.
    #[inline(always)]
    pub(crate) fn world(&self) -> &Team {
        &self.all()[0]
    }

    /// Returns the team of the PEs that share memory, if these are all.
    #[inline(always)]
    pub(crate) fn shared(&self) -> &Team {
        &self.all()[1]
    }

    #[inline(always)]
    fn all(&self) -> &[Team; 2] {
        self.teams.as_ref().expect("calls are made before the job is left")
    }
}

// SAFETY: a PE may move between threads, but only one thread at a time may use it. The handles on
// it are in here, in teams, in requests, and in the code that ends the job. All of them are used
// only while this is locked.
unsafe impl Send for Driver {}

static WORLD: AtomicPtr<World> = AtomicPtr::new(null_mut());
/// The PE that this process was forked from; negative if it is not a fork.
static PARENT: AtomicI64 = AtomicI64::new(-1);
static IS_FINALIZED: AtomicBool = AtomicBool::new(false);

/// Returns the job, if it is initialized.
#[inline(always)]
pub fn initialized_world() -> Option<&'static World> {
    // SAFETY: null, or a world that is never freed.
    unsafe { WORLD.load(Acquire).as_ref() }
}

/// Returns the job, for a routine that needs it.
#[inline(always)]
pub fn world(routine: &str) -> &'static World {
    initialized_world().unwrap_or_else(|| missing(routine))
}

#[cold]
fn missing(routine: &str) -> ! {
    refuse_child(routine);
    match is_finalized() {
        true => fail(routine, "called after shmem_finalize"),
        false => fail(routine, "called before shmem_init or shmem_init_thread"),
    }
}

/// Fails in a process that was forked from a PE.
pub(crate) fn refuse_child(routine: &str) {
    if let rank @ 0.. = PARENT.load(Relaxed) {
        fail(
            routine,
            format_args!(
                "called in a process that was forked from PE {rank}, and is not a PE: it may \
                 call exec, or exit"
            ),
        );
    }
}

/// Forgets the job in a child that has just been forked, because the child is not a PE.
pub(crate) fn forget_in_child() {
    if let Some(own) = failure::membership() {
        PARENT.store(own.rank.0.into(), Relaxed);
        forget();
        failure::set_membership(None);
    }
}

fn is_finalized() -> bool {
    IS_FINALIZED.load(Acquire)
}

/// Sets the job when it begins, and `None` when it ends.
pub(crate) fn set(world: Option<&'static World>) {
    if world.is_none() {
        IS_FINALIZED.store(true, Release);
    }
    let address = world.map_or(null_mut(), |world| std::ptr::from_ref(world).cast_mut());
    WORLD.store(address, Release);
}

/// Hides the job. The next routine that the program calls finds none, and handles the reason. A
/// signal handler may call this.
pub(crate) fn forget() {
    // Release: as in `set`, although null points to no data.
    WORLD.store(null_mut(), Release);
}

/// The location of a PE's memory.
#[derive(Clone, Copy)]
pub(crate) enum Location {
    Near(*mut u8),
    /// At an offset: the PE is on another machine, or its process shares no memory with this one.
    Far(usize),
}

impl Deref for World {
    type Target = Membership;

    #[inline(always)]
    fn deref(&self) -> &Membership {
        &self.own
    }
}

impl World {
    #[inline(always)]
    pub(crate) fn one_sided(&self) -> OneSided<'_> {
        OneSided::new(&self.job, self.rank)
    }

    /// Returns the offset of memory in this PE's heap or among the static variables that peers can
    /// reach.
    #[inline(always)]
    pub(crate) fn offset_of(&self, address: usize, bytes: usize) -> Option<usize> {
        let at = address.wrapping_sub(self.heap);
        if at < self.heap_bytes {
            return (bytes <= self.heap_bytes - at).then_some(at);
        }
        let first = self.statics_at?;
        self.statics.offset_of(address, bytes).map(|at| first + at)
    }

    /// Returns the address of PE `pe`'s memory that is symmetric to this PE's `address`; `None` if
    /// it is not symmetric, or the PE is far.
    #[inline(always)]
    pub(crate) fn address(&self, address: usize, bytes: usize, pe: Rank) -> Option<*mut u8> {
        if let Some(at) = self.offset_of(address, bytes) {
            return self.one_sided().address(pe, at, bytes);
        }
        // Without peers, static variables stay where they are.
        let is_alone = self.pes == 1 && self.statics.offset_of(address, bytes).is_some();
        is_alone.then(|| std::ptr::with_exposed_provenance_mut(address))
    }

    /// Returns the location of PE `pe`'s memory that is symmetric to `address`, the routine's
    /// `argument`.
    #[inline(always)]
    pub(crate) fn locate<T>(
        &self,
        routine: &str,
        (argument, address): (&str, *const T),
        bytes: usize,
        pe: Rank,
    ) -> Location {
        let address = address.expose_provenance();
        let found = match self.address(address, bytes, pe) {
            Some(address) => Location::Near(address),
            None => self.locate_elsewhere(routine, (argument, address), bytes),
        };
        self.check_if_debugging(routine, (argument, address), bytes);
        found
    }

    /// Returns the location, on the other PE, of memory that this PE has no address for.
    #[cold]
    #[inline(never)]
    fn locate_elsewhere(
        &self,
        routine: &str,
        (argument, address): (&str, usize),
        bytes: usize,
    ) -> Location {
        if let Some(constant) = self.constant(argument, address, bytes) {
            return Location::Near(constant);
        }
        match self.offset_of(address, bytes) {
            Some(at) => Location::Far(at),
            None if bytes == 0 => Location::Near(null_mut()), // zero bytes: any address is valid
            None => not_symmetric(routine, argument, address, bytes),
        }
    }

    /// Checks that heap memory has been allocated, if expensive checks are enabled.
    #[inline(always)]
    pub(crate) fn check_if_debugging(&self, routine: &str, argument: (&str, usize), bytes: usize) {
        if self.environment.debug {
            self.check_allocated(routine, argument, bytes);
        }
    }

    /// Returns the address of a source in the program's read-only data, which is the same on all
    /// PEs.
    #[cold]
    fn constant(&self, argument: &str, address: usize, bytes: usize) -> Option<*mut u8> {
        self.statics.offset_of_constant(address, bytes)?;
        (argument == "source").then(|| std::ptr::with_exposed_provenance_mut(address))
    }

    /// Fails unless heap memory has been allocated.
    #[cold]
    fn check_allocated(&self, routine: &str, (argument, address): (&str, usize), bytes: usize) {
        let at = address.wrapping_sub(self.heap);
        if at < self.heap_bytes && bytes > 0 && !self.allocator().holds(at, bytes) {
            fail(
                routine,
                format_args!(
                    "argument {argument}, {bytes} bytes at {address:#x}, is not in one allocation \
                     of the symmetric heap"
                ),
            );
        }
    }

    /// Copies a source in the program's read-only data to where peers can reach it, and returns the
    /// offset of the copy.
    #[cold]
    pub(crate) fn offset_of_constant(
        &self,
        argument: &str,
        address: usize,
        bytes: usize,
    ) -> Option<usize> {
        let source = self.constant(argument, address, bytes)?;
        let at = self.statics_at? + self.statics.offset_of_constant(address, bytes)?;
        let copy = self.one_sided().address(self.rank, at, bytes)?;
        // SAFETY: read-only data, and the same number of bytes of the place for it. A peer that
        // still reads an earlier copy finds the same bytes.
        unsafe { OneSided::copy(copy, source, bytes) };
        Some(at)
    }

    /// Returns the PE with this number.
    #[inline(always)]
    pub(crate) fn pe(&self, routine: &str, pe: c_int) -> Rank {
        match u32::try_from(pe) {
            Ok(rank) if rank < self.pes => Rank(rank),
            _ => no_pe(routine, pe, self.pes),
        }
    }

    pub(crate) fn allocator(&self) -> MutexGuard<'_, Allocator> {
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub(crate) fn driver(&self) -> BiasedGuard<'_, Driver> {
        self.driver.lock(ThreadToken::current()).unwrap_or_else(|| within_another())
    }

    pub(crate) fn level(&self) -> c_int {
        self.thread_level.load(Relaxed).cast_signed()
    }
}

#[cold]
fn within_another() -> ! {
    fail(
        "shmem",
        "a collective routine was called within another one, for example by a signal handler",
    )
}

/// Fails unless an address is a multiple of `bytes`.
#[inline(always)]
pub(crate) fn ensure_aligned(routine: &str, argument: &str, address: usize, bytes: usize) {
    if !address.is_multiple_of(bytes) {
        not_aligned(routine, argument, address, bytes);
    }
}

#[cold]
fn not_aligned(routine: &str, argument: &str, address: usize, bytes: usize) -> ! {
    let expected = format_args!("expected a multiple of {bytes}");
    fail(routine, format_args!("argument {argument} is {address:#x}, {expected}"));
}

#[cold]
pub(crate) fn no_pe(routine: &str, pe: c_int, pes: u32) -> ! {
    fail(routine, format_args!("argument pe is {pe}, expected 0 to {}", pes - 1))
}

#[cold]
pub(crate) fn not_symmetric(routine: &str, argument: &str, address: usize, bytes: usize) -> ! {
    fail(
        routine,
        format_args!(
            "argument {argument}, {bytes} bytes at {address:#x}, is not symmetric: expected memory \
             from shmem_malloc or a static variable of the program"
        ),
    )
}
