//! Initialization and its end, and who this PE is.

use std::{
    any::Any,
    cell::RefCell,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
};

use consort::{Joined, Max, Pes, Rank};
use consort_native::{Failure, Member, Statics};
use libc::c_int;

use crate::{
    allocator::Allocator,
    collectives::synchronize,
    environment,
    failure::fail,
    info,
    world::{self, Driver, RESERVED, World, is_final, known, world},
};

/// The levels of thread support, as `shmem.h` numbers them.
pub const THREAD_SINGLE: c_int = 0;
/// As above.
pub const THREAD_MULTIPLE: c_int = 3;

/// A job that has begun, before the program has initialized it or after.
struct Begun {
    world: &'static World,
    joined: *mut Joined,
}

// SAFETY: used by the thread that has locked it; a PE may change threads.
unsafe impl Send for Begun {}

/// The job, or why there is none; `None` before it begins.
static BEGUN: Mutex<Option<Result<Begun, String>>> = Mutex::new(None);
/// How many initializations have not been finalized.
static INITIALIZED: Mutex<u32> = Mutex::new(0);

/// Runs before the program, while it has one thread: then its static variables can be moved. The
/// number puts it before the program's own constructors, unless they have a smaller one.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    // A constructor of the program that ran before may have begun the job, or ended it.
    if std::env::var_os("CONSORT_LAUNCH").is_some() && begun.is_none() && !is_final() {
        *begun = Some(begin());
    }
}

/// Begins the job that the environment says.
fn begin() -> Result<Begun, String> {
    let environment = environment::read()?;
    let member = Member::here().map_err(|error| error.to_string())?;
    environment.ensure_fits(member.as_ref().map_or(1, |member| member.pes()))?;
    let statics = Statics::of_program();
    let heap_bytes = environment.symmetric_bytes.next_multiple_of(4096) + RESERVED;
    let is_shared = member.is_some() && statics.can_move();
    let statics_bytes = if is_shared { statics.bytes() } else { 0 };
    let pes = if member.is_some() { Pes::from_env(1) } else { Pes::threads(1) };
    let job = pes.heap_bytes(heap_bytes).statics_bytes(statics_bytes).without_places().job();
    let job = job.map_err(|error| error.to_string())?;
    let native = job.native();
    let rank = native.own().unwrap_or(Rank(0));
    let statics_at = match native.statics(rank) {
        Some((_, _, at)) if is_shared => {
            // SAFETY: they can move, and this is the only thread.
            unsafe { statics.share(native, rank) }
                .map_err(|error| format!("static variables cannot be shared: {error}"))?;
            Some(at)
        }
        _ => None,
    };
    let joined = Box::into_raw(Box::new(job.join().map_err(|error| error.to_string())?));
    // SAFETY: just made; it is freed by `end`, after which nothing uses its teams.
    let team = unsafe { &*joined }.world();
    let heap = consort_native::OneSided::new(native, rank).address(rank, 0, heap_bytes);
    let world = World {
        job: native.clone(),
        rank,
        is_launched: member.is_some(),
        pes: team.size(),
        heap: heap.ok_or("the heap is smaller than it was asked to be")?.expose_provenance(),
        heap_bytes,
        statics,
        statics_at,
        environment,
        books: Mutex::new(Allocator::new(RESERVED, heap_bytes)),
        driver: Mutex::new(Driver { world: team, shared: team }),
        callers: AtomicU32::new(0),
        takes_turns: AtomicBool::new(false),
        thread_level: AtomicU32::new(0),
    };
    Ok(Begun { world: Box::leak(Box::new(world)), joined })
}

/// The job, if a launcher has started this process, and it has not left: the program may not have
/// initialized it yet.
pub(crate) fn of_launcher() -> Option<&'static World> {
    let begun = || Some(BEGUN.try_lock().ok()?.as_ref()?.as_ref().ok()?.world);
    known().or_else(begun).filter(|world| world.is_launched)
}

/// `shmem_init_thread`: any level is provided. Returns 0.
///
/// # Safety
/// `provided` is null or a variable, here and below.
pub unsafe fn init_thread(requested: c_int, provided: *mut c_int) -> c_int {
    let level = start("shmem_init_thread", requested);
    if !provided.is_null() {
        // SAFETY: the program's variable.
        unsafe { provided.write(level) };
    }
    0
}

/// `shmem_init`.
pub fn init() {
    start("shmem_init", THREAD_SINGLE);
}

/// `start_pes`: the end of the program finalizes.
pub fn start_pes(_: c_int) {
    if known().is_none() {
        start("start_pes", THREAD_SINGLE);
        AT_EXIT.with_borrow_mut(|at_exit| *at_exit = Some(Box::new(Finalizes)));
    }
}

thread_local! {
    /// What the thread does when it ends, before it is taken to have left the job.
    static AT_EXIT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Finalizes when it is dropped.
struct Finalizes;

impl Drop for Finalizes {
    fn drop(&mut self) {
        if known().is_some() {
            finalize();
        }
    }
}

/// Counts an initialization; the first makes the job. Returns the level of thread support.
fn start(routine: &str, requested: c_int) -> c_int {
    if !(THREAD_SINGLE..=THREAD_MULTIPLE).contains(&requested) {
        fail(routine, format_args!("argument requested is {requested}, expected 0 to 3"));
    }
    if is_final() {
        fail(routine, "called after shmem_finalize");
    }
    let mut count = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    *count += 1;
    if let Some(world) = known() {
        return world.level();
    }
    // Keeps the constructor, which nothing else refers to.
    std::hint::black_box(&CONSTRUCTOR);
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = match begun.get_or_insert_with(begin) {
        Ok(begun) => begun,
        Err(reason) => fail(routine, reason),
    };
    let world = begun.world;
    world.thread_level.store(requested.cast_unsigned(), Relaxed);
    let mut driver = world.driver();
    let made = driver.world.all_reduce(requested, Max).and_then(|level| {
        world.takes_turns.store(level == THREAD_MULTIPLE, Relaxed);
        driver.world.strided(Rank(0), 1, world.pes)
    });
    match made {
        Ok(shared) => driver.shared = shared.expect("all PEs are in it"),
        Err(error) => fail(routine, error),
    }
    drop(driver);
    world::set(Some(world));
    info::announce(world);
    requested
}

/// `shmem_finalize`: the last one, of as many as there were initializations, ends the job.
pub fn finalize() {
    let world = world("shmem_finalize");
    let mut count = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    *count -= 1;
    if *count > 0 {
        return;
    }
    synchronize("shmem_finalize");
    let begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Ok(Begun { joined, .. })) = begun {
        // SAFETY: made by `begin`, and taken once. No routine is called any more, so no team is
        // used, and nothing else refers to it.
        let joined = unsafe { Box::from_raw(joined) };
        if let Err(error) = joined.leave() {
            fail("shmem_finalize", error);
        }
        world.job.end();
    }
    world::set(None);
}

/// `shmem_global_exit`: ends all PEs.
pub fn global_exit(status: c_int) -> ! {
    let world = world("shmem_global_exit");
    let reason = format!("it called shmem_global_exit({status})");
    world.job.poison(&Failure::Pe { rank: world.rank, reason });
    std::process::exit(status)
}

/// `shmem_query_initialized`.
///
/// # Safety
/// As [`init_thread`].
pub unsafe fn query_initialized(initialized: *mut c_int) {
    if !initialized.is_null() {
        // SAFETY: the program's variable.
        unsafe { initialized.write(c_int::from(known().is_some())) };
    }
}

/// `shmem_query_thread`.
///
/// # Safety
/// As [`init_thread`].
pub unsafe fn query_thread(provided: *mut c_int) {
    let level = world("shmem_query_thread").level();
    if !provided.is_null() {
        // SAFETY: the program's variable.
        unsafe { provided.write(level) };
    }
}

/// `shmem_my_pe`.
pub fn my_pe() -> c_int {
    world("shmem_my_pe").rank.0.cast_signed()
}

/// `shmem_n_pes`.
pub fn n_pes() -> c_int {
    world("shmem_n_pes").pes.cast_signed()
}
