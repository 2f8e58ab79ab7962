//! Initialization and its end, and who this PE is.

use std::{
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
};

use consort::{Job, Joined, Max, Pes, Rank};
use consort_native::{Biased, Failure, Member, Statics, ThreadToken};
use libc::c_int;

use crate::{
    active_sets,
    allocator::{Allocator, MOST_ALIGN},
    collectives::synchronize,
    environment,
    failure::{self, fail, is_ending},
    info, teams,
    world::{self, Driver, World, known, world},
};

/// The levels of thread support, as `shmem.h` numbers them.
pub const THREAD_SINGLE: c_int = 0;
/// As above.
pub const THREAD_SERIALIZED: c_int = 2;
/// As above.
pub const THREAD_MULTIPLE: c_int = 3;

/// A job that has begun, before the program has initialized it or after.
struct Begun {
    world: &'static World,
    job: Job,
    /// The process that has begun it, and not one that it has forked.
    process: u32,
    /// `None` once the program has finalized it.
    joined: Option<Boxed>,
}

/// What a process is in the job, from `Box::into_raw`: teams that live as long refer to it.
struct Boxed(*mut Joined);

// SAFETY: used by the thread that has locked it; a PE may change threads.
unsafe impl Send for Boxed {}

/// The job, or why there is none; `None` before it begins.
static BEGUN: Mutex<Option<Result<Begun, String>>> = Mutex::new(None);
/// How many initializations have not been finalized.
static INITIALIZED: Mutex<u32> = Mutex::new(0);
/// Whether the program has ever been initialized.
static WAS_INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Whether the end of the program finalizes, as after `start_pes`.
static ENDS_BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// Runs before the program, while it has one thread: then its static variables can be moved. The
/// number puts it before the program's own constructors, unless they have a smaller one.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    // A constructor of the program that ran before may have begun the job.
    if std::env::var_os("CONSORT_LAUNCH").is_some() && begun.is_none() {
        failure::print_by_lines();
        *begun = Some(begin());
    }
}

/// Begins the job that the environment says.
fn begin() -> Result<Begun, String> {
    failure::end_by_panics();
    let environment = environment::read()?;
    let member = Member::here().map_err(|error| error.to_string())?;
    environment.ensure_fits(member.as_ref().map_or(1, |member| member.pes()))?;
    let statics = Statics::of_program();
    let heap_bytes = environment.symmetric_bytes.next_multiple_of(4096);
    let is_shared = member.is_some() && statics.can_move();
    let statics_bytes = if is_shared { statics.bytes() } else { 0 };
    let pes = if member.is_some() { Pes::from_env(1) } else { Pes::threads(1) };
    let pes = pes.heap_bytes(heap_bytes).heap_align(MOST_ALIGN);
    let job = pes.statics_bytes(statics_bytes).without_places().job();
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
    let (joined, team) = join(&job)?;
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
        books: Mutex::new(Allocator::new(0, heap_bytes)),
        driver: Biased::new(Driver { world: team, shared: team }),
        callers: AtomicU32::new(0),
        takes_turns: AtomicBool::new(false),
        thread_level: AtomicU32::new(0),
    };
    // SAFETY: it takes no arguments, and may be called at any time.
    unsafe { libc::atexit(at_exit) };
    let world: &'static World = Box::leak(Box::new(world));
    world::set_begun(Some(world));
    Ok(Begun { world, job, process: process::id(), joined: Some(joined) })
}

/// Joins the job, and returns the team of all.
fn join(job: &Job) -> Result<(Boxed, consort::Team<'static>), String> {
    let joined = job.join().map_err(|error| error.to_string())?.by_process();
    let joined = Box::into_raw(Box::new(joined));
    // SAFETY: just made; it is freed by `finalize`, after which nothing uses its teams.
    Ok((Boxed(joined), unsafe { &*joined }.world()))
}

/// Runs when the program ends: by itself, not by a failure, and not in a process that it forked.
extern "C" fn at_exit() {
    let is_own = BEGUN
        .try_lock()
        .is_ok_and(|begun| matches!(&*begun, Some(Ok(begun)) if begun.process == process::id()));
    if !is_own || is_ending() {
        return;
    }
    match known() {
        Some(world) if ENDS_BY_ITSELF.load(Relaxed) && !world.job.is_poisoned() => finalize(),
        None if !WAS_INITIALIZED.load(Relaxed) => leave("exit"),
        _ => {}
    }
    if known().is_none() {
        drop(BEGUN.lock().map(|mut begun| begun.take()));
    }
}

/// The job, if a launcher has started this process, and it has not left: the program may not have
/// initialized it yet.
pub(crate) fn of_launcher() -> Option<&'static World> {
    world::begun().filter(|world| world.is_launched)
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
        ENDS_BY_ITSELF.store(true, Relaxed);
    }
}

/// Counts an initialization; the first makes the job. Returns the level of thread support.
fn start(routine: &str, requested: c_int) -> c_int {
    if !(THREAD_SINGLE..=THREAD_MULTIPLE).contains(&requested) {
        fail(routine, format_args!("argument requested is {requested}, expected 0 to 3"));
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
        Err(reason) => fail(routine, &*reason),
    };
    let world = begun.world;
    world.thread_level.store(requested.cast_unsigned(), Relaxed);
    let mut driver = world.driver();
    if begun.joined.is_none() {
        let (joined, team) = join(&begun.job).unwrap_or_else(|reason| fail(routine, reason));
        world.job.resume();
        *driver = Driver { world: team, shared: team };
        begun.joined = Some(joined);
        world::set_begun(Some(world));
    }
    world.takes_turns.store(false, Relaxed);
    let made = driver.world.all_reduce(requested, Max).and_then(|level| {
        world.takes_turns.store(level == THREAD_MULTIPLE, Relaxed);
        driver.world.strided(Rank(0), 1, world.pes)
    });
    match made {
        Ok(shared) => driver.shared = shared.expect("all PEs are in it"),
        Err(error) => fail(routine, error),
    }
    drop(driver);
    if requested < THREAD_SERIALIZED {
        // One thread alone makes calls, if the program does as it says.
        world.driver.bias_to(ThreadToken::of_caller());
    }
    world::set(Some(world));
    if !WAS_INITIALIZED.swap(true, Relaxed) {
        info::announce(world);
    }
    requested
}

/// `shmem_finalize`: the last one, of as many as there were initializations, leaves the job. The
/// program may initialize it again.
pub fn finalize() {
    // A failure, whose exit handlers may be here, has ended the job.
    if is_ending() {
        return;
    }
    world("shmem_finalize");
    synchronize("shmem_finalize");
    let mut count = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    *count -= 1;
    if *count == 0 {
        leave("shmem_finalize");
    }
}

/// Leaves the job, and gives back what the program has taken.
fn leave(routine: &str) {
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Ok(begun)) = &mut *begun else { return };
    active_sets::forget_all();
    teams::forget_all();
    begun.world.books().give_all();
    if let Some(Boxed(joined)) = begun.joined.take() {
        // SAFETY: made by `join`, and taken once. No routine is called any more, so no team is
        // used, and nothing else refers to it.
        let joined = unsafe { Box::from_raw(joined) };
        if let Err(error) = joined.leave() {
            fail(routine, error);
        }
    }
    begun.world.job.end();
    world::set(None);
    world::set_begun(None);
}

/// `shmem_global_exit`: ends all PEs. The job's status is the one that a process would exit with.
pub fn global_exit(status: c_int) -> ! {
    let world = world("shmem_global_exit");
    let reason = format!("it called shmem_global_exit({status})");
    let [status_of_process, ..] = status.to_le_bytes();
    world.job.poison(&Failure::Ended { rank: world.rank, status: status_of_process, reason });
    failure::exit(status)
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
