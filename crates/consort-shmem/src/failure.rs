//! Misuse and failures: one line on standard error, and the end of the process and its job.

#![expect(unsafe_code, reason = "ends the process like a C program")]

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{ErrorKind, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixDatagram},
            process::parent_id,
        },
    },
    panic, ptr,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicPtr,
            Ordering::{Acquire, Release},
        },
    },
    thread,
    time::Duration,
};

use consort::{Error, Rank, bindings::MpiProcess};
use consort_machine::ProcessToken;
use consort_native::{Failure, Job, PeProcess};
use libc::c_int;

/// The job, and this process's PE in it.
pub struct Membership {
    pub(crate) job: Arc<Job>,
    pub(crate) rank: Rank,
    /// Whether the PEs are processes, and no MPI has started them.
    pub(crate) is_launched: bool,
    /// Whether `consort run` has started this process, and reports failures.
    pub(crate) has_launcher: bool,
    /// The process that is this PE, as opposed to one that it has forked.
    pub(crate) process: ProcessToken,
    pub(crate) pes: u32,
}

/// This process's membership, from the beginning of the job, before the program initializes it, to
/// its end.
static STARTED_JOB: AtomicPtr<Membership> = AtomicPtr::new(ptr::null_mut());

/// Returns the membership if the job has begun and not ended, even if it is not initialized yet.
pub(crate) fn membership() -> Option<&'static Membership> {
    // SAFETY: null, or the argument of `set_membership`, which lives forever.
    unsafe { STARTED_JOB.load(Acquire).as_ref() } // pairs with the release in `set_membership`
}

/// Sets the membership when the job begins, and `None` when it ends.
pub(crate) fn set_membership(own: Option<&'static Membership>) {
    let address = own.map_or(ptr::null_mut(), |own| ptr::from_ref(own).cast_mut());
    STARTED_JOB.store(address, Release); // pairs with the acquire in `membership`
}

/// The thread that ends this process, and the exit status.
static ENDING: Mutex<Option<(libc::pthread_t, c_int)>> = Mutex::new(None);

/// How long a second thread that fails waits for the first one to end the process.
const END_LIMIT: Duration = Duration::from_secs(1);

unsafe extern "C" {
    #[link_name = "stdout"]
    static STDOUT: *mut libc::FILE;
}

/// Reports the PE, the routine and the error, and ends the process and its job. If a peer has ended
/// the job by `shmem_global_exit`, nothing is wrong: the process exits.
#[cold]
pub fn fail(routine: &str, what: impl fmt::Display) -> ! {
    end(routine, what, false)
}

/// Like [`fail`], for a process that has joined the job but failed to initialize.
#[cold]
pub(crate) fn fail_to_start(routine: &str, what: impl fmt::Display) -> ! {
    end(routine, what, true)
}

/// Ends the process and its job. `is_starting` means that it has joined but is not initialized.
fn end(routine: &str, what: impl fmt::Display, is_starting: bool) -> ! {
    if let Some(status) = ended_by_peer() {
        exit(status);
    }
    claim_exit(1);
    let reason = format!("{routine}: {what}").replace('\n', " ");
    if !fail_job(&reason, is_starting)
        && !is_reported(&reason)
        && let Some(claim) = claim(&reason)
    {
        let pe = membership().map_or_else(String::new, |own| format!("PE {}: ", own.rank));
        // In one piece, so that the lines of several PEs do not mix. Write errors are ignored.
        let _ = std::io::stderr().write_all(format!("{pe}{reason}\n").as_bytes());
        claim.hold();
    }
    end_all();
    // SAFETY: a C stream, which this library never closes.
    unsafe { libc::fflush(STDOUT) };
    // Exit handlers might call the library again while this thread holds some of its locks.
    // SAFETY: it ends the process at once.
    unsafe { libc::_exit(1) }
}

/// Warns about an action of this PE.
pub(crate) fn warn(what: fmt::Arguments<'_>) {
    let pe = membership().map_or_else(String::new, |world| format!("PE {}: ", world.rank));
    // In one piece, as in `fail`. Write errors are ignored.
    let _ = std::io::stderr().write_all(format!("warning: {pe}{what}\n").as_bytes());
}

/// Ends the process like a C program that ends normally, with its exit handlers.
pub(crate) fn exit(status: c_int) -> ! {
    claim_exit(status);
    // SAFETY: no other thread runs the exit handlers, because of `claim_exit`. If one of them
    // calls this function, the C library continues with the remaining ones.
    unsafe { libc::exit(status) }
}

/// Returns the status of `shmem_global_exit`, if a peer has called it and no MPI ends the others.
fn ended_by_peer() -> Option<c_int> {
    let world = membership().filter(|world| world.is_launched)?;
    match world.job.failure()? {
        Failure::Ended { rank, status, .. } if rank != world.rank => Some(status.into()),
        _ => None,
    }
}

/// If this process has failed or ended the job, ends all processes of its MPI, with this process's
/// exit status. If another process has, waits for that process to end them.
pub(crate) fn end_all() {
    let Some(own) = membership() else { return };
    let is_own = match own.job.failure() {
        Some(Failure::Pe { rank, .. } | Failure::Ended { rank, .. }) => rank == own.rank,
        _ => true,
    };
    let status = ENDING.lock().map_or(None, |ending| *ending).map_or(1, |(_, status)| status);
    let [status, ..] = status.to_le_bytes();
    if !own.is_launched && own.pes > 1 {
        if !is_own {
            thread::sleep(2 * END_LIMIT);
        }
        // SAFETY: it flushes all C streams.
        unsafe { libc::fflush(ptr::null_mut()) };
        own.job.abort(status);
    }
}

/// Returns whether this process is already ending, because of a failure or by `shmem_global_exit`.
pub(crate) fn is_ending() -> bool {
    ENDING.lock().is_ok_and(|ending| ending.is_some())
}

/// Lets the calling thread end the process. If this thread is already doing so, an exit handler has
/// called the library: then flushes all C streams and ends the process. If another thread is doing
/// so, waits for it.
fn claim_exit(status: c_int) {
    // SAFETY: no conditions. When exit handlers run, Rust's own thread ids no longer exist.
    let own = unsafe { libc::pthread_self() };
    let begun = ENDING.lock().map_or(None, |mut ending| match *ending {
        Some(begun) => Some(begun),
        None => {
            *ending = Some((own, status));
            None
        }
    });
    let Some((by, status)) = begun else { return };
    if by == own {
        // SAFETY: it flushes all C streams.
        unsafe { libc::fflush(ptr::null_mut()) };
    } else {
        thread::sleep(END_LIMIT);
    }
    // SAFETY: it ends the process at once.
    unsafe { libc::_exit(status) }
}

/// Makes a panic, which no C caller could catch, end the job with one line.
pub(crate) fn end_job_on_panic() {
    panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("a panic");
        let place = info.location().map_or_else(String::new, |place| format!(" ({place})"));
        fail("internal error", format_args!("{what}{place}"));
    }));
}

/// Makes the program's output reach the launcher line by line, as on a terminal.
pub(crate) fn use_line_buffering() {
    // SAFETY: a C stream to which nothing has been written.
    unsafe { libc::setvbuf(STDOUT, ptr::null_mut(), libc::_IOLBF, 0) };
}

/// Returns whether the launcher reports why this process cannot start, once for all processes with
/// the same reason.
fn is_reported(reason: &str) -> bool {
    let member = if membership().is_none() { PeProcess::here().ok().flatten() } else { None };
    member.is_some_and(|member| member.report(reason))
}

/// Claims the report of why this process cannot start. `None` if another process that the same MPI
/// has started on this machine is reporting the same. The claim is the name of a socket.
fn claim(reason: &str) -> Option<ReportClaim> {
    if membership().is_some() || MpiProcess::here().is_none() {
        return Some(ReportClaim(None));
    }
    let mut hasher = DefaultHasher::new();
    reason.hash(&mut hasher);
    let name = format!("consort-{}-{:x}", parent_id(), hasher.finish());
    match SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name)) {
        Ok(socket) => Some(ReportClaim(Some(socket))),
        Err(error) if error.kind() == ErrorKind::AddrInUse => None,
        Err(_) => Some(ReportClaim(None)),
    }
}

/// A claimed report. Others can claim it once the socket is closed.
struct ReportClaim(Option<UnixDatagram>);

impl ReportClaim {
    /// Keeps the claim until all processes have found why they cannot start.
    fn hold(self) {
        if self.0.is_some() {
            thread::sleep(END_LIMIT);
        }
    }
}

/// Fails the job. Returns whether the launcher or an earlier PE already reports the reason. If the
/// reason is that calls do not match, neither does: each PE writes a line that names its routine,
/// unless the job fails at its start.
fn fail_job(reason: &str, is_starting: bool) -> bool {
    let Some(own) = membership() else { return false };
    own.job.poison(&Failure::Pe { rank: own.rank, reason: reason.to_owned() });
    match own.job.failure() {
        Some(Failure::Pe { rank, .. } | Failure::Ended { rank, .. }) => {
            own.has_launcher || rank != own.rank
        }
        Some(_) => is_starting && own.has_launcher,
        None => false,
    }
}

/// The routine with which a PE leaves the job, and the name of its call.
pub(crate) const FINALIZE: &str = "shmem_finalize";

/// Explains an error of `routine` if one PE has called `shmem_finalize` or exited while another one
/// waits for it in this or another routine.
///
/// A PE that leaves makes one more call, in which all PEs must take part. If the others make
/// another call, the runtime reports two calls that do not match, although the program has made
/// only one of them. The leaving PE's call has the name of its routine.
pub(crate) fn departure(routine: &str, error: &Error) -> Option<String> {
    let Error::Mismatched(
        Failure::Mismatched { one, other, .. } | Failure::Deadlock { one, other },
    ) = error
    else {
        return None;
    };
    let finalizes = |call: &str| call.starts_with(FINALIZE);
    let (left, (waiting, call)) = match (finalizes(&one.1), finalizes(&other.1)) {
        (true, false) => (one.0, other),
        (false, true) => (other.0, one),
        _ => return None,
    };
    // Only a PE that waits knows its routine.
    Some(match routine {
        FINALIZE => format!(
            "PE {left} has called {FINALIZE}, or has exited, while PE {waiting} waits in {call}: \
             all PEs must make the same calls before they end"
        ),
        _ => format!(
            "PE {left} has called {FINALIZE}, or has exited, while others wait in {routine}: all \
             PEs must make the same calls before they end"
        ),
    })
}
