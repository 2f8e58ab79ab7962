//! Initialization and finalization, and the identity of this PE.
//!
//! | started by | where static variables are moved, and when | the job begins |
//! | --- | --- | --- |
//! | a launcher | to the segment of all PEs, before the program | at the same time |
//! | an MPI | to a file that near PEs find, before the program | in the first routine |
//! | `torchrun`, `srun` | to a file that all PEs find, before the program | in the first routine |
//! | none | not at all | in the first routine |

use std::{
    ptr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use consort::{
    Job, JobBuilder, JoinedPe, Rank, Rendezvous,
    bindings::{self, JobBuilderExt as _, MpiProcess, all_gather_named},
};
use consort_fabric::environment::variable;
use consort_machine::{BiasedMutex, ProcessToken, ThreadToken, in_children};
use consort_native::{Failure, PeProcess, SharedFile, Statics};
use libc::{c_int, c_void};

use crate::{
    active_sets,
    allocator::Allocator,
    environment, exits,
    failure::{self, Membership, fail, fail_to_start, is_ending},
    info,
    memory::preferred_alignment,
    teams,
    world::{self, Driver, World, initialized_world, world},
};

/// `SHMEM_THREAD_SINGLE`, the lowest level of thread support, as `shmem.h` numbers it.
pub const THREAD_SINGLE: c_int = 0;
/// `SHMEM_THREAD_SERIALIZED`.
pub const THREAD_SERIALIZED: c_int = 2;
/// `SHMEM_THREAD_MULTIPLE`.
pub const THREAD_MULTIPLE: c_int = 3;

/// A job that has begun; the program may or may not have initialized it.
struct StartedJob {
    world: &'static World,
    job: Job,
    /// `None` once the program has finalized it.
    joined: Option<ProcessMembership>,
}

/// A process's membership in the job.
struct ProcessMembership(JoinedPe);

// SAFETY: used by the thread that holds the lock; a PE may change threads.
unsafe impl Send for ProcessMembership {}

/// The job, or the reason why there is none; `None` before it begins.
static STARTED_JOB: Mutex<Option<Result<StartedJob, String>>> = Mutex::new(None);
/// The world that was created last. It is never freed, and memory checkers find it here after the
/// job has ended.
static WORLD: AtomicPtr<World> = AtomicPtr::new(ptr::null_mut());
/// The number of initializations that have not been finalized.
static INITIALIZED: Mutex<u32> = Mutex::new(0);
/// Whether the program has ever been initialized.
static WAS_INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Whether the library finalizes when the program ends, as after `start_pes`.
static FINALIZES_AT_EXIT: AtomicBool = AtomicBool::new(false);

/// Runs before the program, while it has one thread, so that its static variables can be moved. The
/// number puts it before the program's own constructors, unless theirs is smaller.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let mut begun = STARTED_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    // A constructor of the program that ran before may have begun the job.
    if begun.is_some() {
        return;
    }
    if variable("CONSORT_LAUNCH").is_some() {
        failure::use_line_buffering();
        *begun = Some(begin());
    } else if MpiProcess::here().is_some() || has_other_launcher() {
        failure::use_line_buffering();
        move_statics();
    }
}

/// Returns whether another launcher has started several processes, on one machine. If its variables
/// cannot be used, the first routine reports that.
fn has_other_launcher() -> bool {
    matches!(Rendezvous::environment(), Ok(Some((_, size, _))) if size > 1)
}

/// The file that holds the static variables, and their size, including the place for read-only
/// data; or the reason why they could not be moved.
static MOVED: OnceLock<Result<(Arc<SharedFile>, usize), String>> = OnceLock::new();

/// Moves the static variables to a file before the job begins, because then other threads start: the
/// MPI's, or the one that watches the other processes.
fn move_statics() {
    let statics = Statics::of_program();
    if statics.can_move() {
        // SAFETY: they can move, and this is the only thread; the file is kept.
        let moved = unsafe { statics.move_out() };
        let moved = moved.map(|file| (Arc::new(file), statics.bytes()));
        let moved = moved.map_err(|error| format!("{CANNOT_SHARE}: {error}"));
        MOVED.get_or_init(|| moved);
    }
}

/// The beginning of an error: the system has refused to share the static variables.
const CANNOT_SHARE: &str = "static variables cannot be shared";

/// Begins the job that the environment describes.
fn begin() -> Result<StartedJob, String> {
    failure::end_job_on_panic();
    let member = PeProcess::here().map_err(|error| error.to_string())?;
    let started = MpiProcess::here().filter(|_| member.is_none());
    let of_mpi = started.map(|started| started.here.unwrap_or(started.processes));
    let of_other = match member.is_some() || of_mpi.is_some() {
        true => None,
        false => Rendezvous::environment().map_err(|error| error.to_string())?,
    };
    let of_other = of_other.filter(|(_, size, _)| *size > 1);
    let is_launched = member.is_some() || of_other.is_some();
    let own = of_other.as_ref().map_or(1, |(_, size, _)| u32::try_from(*size).unwrap_or(u32::MAX));
    let number = member.as_ref().map_or(of_mpi.unwrap_or(own), |member| member.pes());
    let environment = environment::read(number)?;
    let statics = Statics::of_program();
    let heap_bytes = environment.symmetric_bytes.next_multiple_of(4096);
    let pes = match of_other {
        Some((rank, size, rendezvous)) => Job::processes(rank, size, rendezvous),
        None if member.is_some() || of_mpi.is_some() => Job::from_env(1),
        None => Job::threads(1),
    };
    let pes =
        pes.heap_bytes(heap_bytes).heap_align(preferred_alignment(heap_bytes)).without_places();
    let (job, are_shared) = if of_mpi.is_some() {
        environment::ensure_one_each()?;
        if statics.are_of_static_executable() {
            return Err(
                "a static executable cannot load an MPI: link it without -static, or start \
                        it by `consort run` on one machine"
                    .to_owned(),
            );
        }
        let (pes, has_moved) = with_moved(pes)?;
        let job = pes.job_of_mpi().map_err(|error| error.to_string())?;
        (job.ok_or("the MPI is no longer available")?, has_moved)
    } else if member.is_none() && is_launched {
        let (pes, has_moved) = with_moved(pes)?;
        // No time limit, as below: the processes watch each other.
        let job = pes.join_timeout(Duration::MAX).build().map_err(|error| error.to_string())?;
        (job, has_moved)
    } else {
        let can_move = member.is_some() && statics.can_move();
        // No time limit: the launcher reports each process that ends, and a process may join late.
        let pes = if member.is_some() { pes.join_timeout(Duration::MAX) } else { pes };
        let pes = pes.statics_bytes(if can_move { statics.bytes() } else { 0 });
        let job = pes.build().map_err(|error| error.to_string())?;
        if can_move {
            let native = bindings::native(&job);
            // SAFETY: they can move, and this is the only thread.
            unsafe { statics.share(native, native.own().unwrap_or(Rank(0))) }
                .map_err(|error| format!("{CANNOT_SHARE}: {error}"))?;
        }
        (job, can_move)
    };
    let native = bindings::native(&job);
    let statics_at = are_shared.then(|| native.statics_at());
    let (joined, team) = join(&job)?;
    let rank = team.rank();
    let heap = consort_native::OneSided::new(native, rank).address(rank, 0, heap_bytes);
    let world = World {
        own: Membership {
            job: native.clone(),
            rank,
            is_launched,
            has_launcher: member.is_some(),
            process: ProcessToken::current(),
            pes: native.config().pes,
        },
        heap: heap.ok_or("the heap is smaller than requested")?.expose_provenance(),
        heap_bytes,
        statics,
        statics_at,
        environment,
        allocator: Mutex::new(Allocator::new(0, heap_bytes)),
        driver: BiasedMutex::new(Driver::new(&team, &team)),
        callers: AtomicU32::new(0),
        takes_turns: AtomicBool::new(false),
        thread_level: AtomicU32::new(0),
    };
    in_children(world::forget_in_child);
    exits::call_at_exit(at_exit);
    if member.is_some() {
        exits::take_signal();
    }
    let world: &'static World = Box::leak(Box::new(world));
    WORLD.store(ptr::from_ref(world).cast_mut(), Relaxed);
    failure::set_membership(Some(world));
    Ok(StartedJob { world, job, joined: Some(joined) })
}

/// Declares where the static variables are, if they have been moved. Returns whether they have.
fn with_moved(pes: JobBuilder) -> Result<(JobBuilder, bool), String> {
    Ok(match MOVED.get().cloned().transpose()? {
        Some((file, bytes)) => (pes.statics_bytes(bytes).statics_in(file), true),
        None => (pes, false),
    })
}

/// Joins the job, and returns the team of all PEs.
fn join(job: &Job) -> Result<(ProcessMembership, consort::Team), String> {
    let joined = job.join().map_err(|error| error.to_string())?;
    // SAFETY: the PE and its handles are used by the thread that holds the driver's lock.
    unsafe { bindings::bind_to_process(&joined) };
    let world = joined.world().clone();
    Ok((ProcessMembership(joined), world))
}

/// Runs when the process exits. If the program ends successfully without having finalized the job,
/// finalizes it. After a failure, ends the other processes. Does nothing in a forked process.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    let is_own = STARTED_JOB
        .try_lock()
        .is_ok_and(|begun| matches!(&*begun, Some(Ok(begun)) if begun.world.process.is_current()));
    if !is_own {
        return;
    }
    if is_ending() {
        return failure::end_all();
    }
    let [status, ..] = status.to_le_bytes();
    match initialized_world() {
        Some(world) if world.job.is_poisoned() => {}
        Some(_) if FINALIZES_AT_EXIT.load(Relaxed) => finalize(),
        Some(_) if status == 0 => finalize_for_program(),
        None if !WAS_INITIALIZED.load(Relaxed) => leave_uninitialized(status == 0),
        _ => {}
    }
    if failure::membership().is_none()
        && let Ok(mut begun) = STARTED_JOB.lock()
        && let Some(Ok(StartedJob { world, .. })) = &*begun
    {
        if !world.is_launched && !world.job.is_poisoned() {
            // The processes of an MPI must end together, so they wait for each other.
            world.job.end();
            world.job.await_end();
        }
        drop(begun.take());
    }
}

/// Leaves the job when the program ends without having initialized it. This succeeds only if no
/// other PE has initialized it either. PEs that wait in `shmem_init` find a call that does not
/// match.
fn leave_uninitialized(is_success: bool) {
    let begun = STARTED_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Ok(StartedJob { world, .. })) = &*begun else { return };
    let world = *world;
    drop(begun);
    let is_alone =
        || all_gather_named(world.driver().world(), "exit without shmem_init", 0_u8).is_ok();
    if !is_success || is_alone() {
        leave("exit");
    }
}

/// `shmem_init_thread`: any level is provided. Returns 0.
///
/// # Safety
/// The pointer is null or points to a writable variable, here and below.
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

/// `start_pes`: the library finalizes when the program ends.
pub fn start_pes(_: c_int) {
    if initialized_world().is_none() {
        start("start_pes", THREAD_SINGLE);
        FINALIZES_AT_EXIT.store(true, Relaxed);
    }
}

/// Counts an initialization; the first one creates the job. Returns the level of thread support.
fn start(routine: &str, requested: c_int) -> c_int {
    if !(THREAD_SINGLE..=THREAD_MULTIPLE).contains(&requested) {
        fail(routine, format_args!("argument requested is {requested}, expected 0 to 3"));
    }
    world::refuse_child(routine);
    let mut count = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    *count += 1;
    if let Some(world) = initialized_world() {
        return world.level();
    }
    // Keeps the constructor, which nothing else refers to.
    std::hint::black_box(&CONSTRUCTOR);
    let mut begun = STARTED_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = match begun.get_or_insert_with(begin) {
        Ok(begun) => begun,
        Err(reason) => fail(routine, &*reason),
    };
    let world = begun.world;
    world.thread_level.store(requested.cast_unsigned(), Relaxed);
    let mut driver = world.driver();
    if begun.joined.is_none() {
        let (joined, team) = join(&begun.job).unwrap_or_else(|why| fail_to_start(routine, why));
        world.job.resume();
        *driver = Driver::new(&team, &team);
        begun.joined = Some(joined);
        failure::set_membership(Some(world));
    }
    world.takes_turns.store(false, Relaxed);
    let made = all_gather_named(driver.world(), "shmem_init", requested).and_then(|levels| {
        world.takes_turns.store(levels.contains(&THREAD_MULTIPLE), Relaxed);
        driver.world().strided(Rank(0), 1, world.pes as usize)
    });
    match made {
        Ok(shared) => {
            let shared = shared.expect("all PEs are in it");
            *driver = Driver::new(driver.world(), &shared);
        }
        Err(error) => fail_to_start(routine, error),
    }
    teams::form_shared(routine, world, &driver);
    drop(driver);
    if requested < THREAD_SERIALIZED {
        // Only one thread makes calls, if the program keeps to the level that it has requested.
        world.driver.bias_to(ThreadToken::current());
    }
    world::set(Some(world));
    if !WAS_INITIALIZED.swap(true, Relaxed) {
        info::announce(world);
    }
    requested
}

/// `shmem_finalize`: leaves the job when it has been called once per initialization. The program
/// may initialize it again.
pub fn finalize() {
    finalize_once(false);
}

/// Calls `shmem_finalize` as often as the program should have called it.
fn finalize_for_program() {
    let mut left = *INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    let _watch = initialized_world().map(exits::ExitWatch::of);
    while left > 0 {
        finalize_once(left == 1);
        left -= 1;
    }
}

/// Finalizes once. `has_exited` means that the program has exited without calling `shmem_finalize`.
/// The first PE whose program has done so warns.
fn finalize_once(has_exited: bool) {
    // If a failure has ended the job, its exit handlers may be running here.
    if is_ending() {
        return;
    }
    let world = world("shmem_finalize");
    if exits::first_pe_that_has_exited(has_exited) == Some(world.rank) {
        failure::warn(format_args!(
            "it exited without calling shmem_finalize, so the library called it: call \
             shmem_finalize before the program ends"
        ));
    }
    let mut count = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    *count -= 1;
    if *count == 0 {
        leave("shmem_finalize");
    }
}

/// Leaves the job, and frees everything that the program has allocated.
fn leave(routine: &str) {
    let mut begun = STARTED_JOB.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Ok(begun)) = &mut *begun else { return };
    let mut driver = begun.world.driver();
    active_sets::forget_all();
    teams::forget_all(&driver);
    begun.world.allocator().give_all();
    if let Some(ProcessMembership(joined)) = begun.joined.take() {
        let left = joined.leave();
        // Drops the last handles, so that the PE's memory is freed with the job.
        *driver = Driver::default();
        drop(driver);
        left.unwrap_or_else(|error| fail(routine, error));
    }
    if begun.world.is_launched {
        begun.world.job.end();
    }
    world::set(None);
    failure::set_membership(None);
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
        unsafe { initialized.write(c_int::from(initialized_world().is_some())) };
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
