//! Refused system calls, as in a container.

use std::io;

/// Calls that sandboxes refuse, and that a job makes.
pub const CALLS: [(&str, libc::c_long); 12] = [
    ("memfd_create", libc::SYS_memfd_create),
    ("ftruncate", libc::SYS_ftruncate),
    ("membarrier", libc::SYS_membarrier),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("getcpu", libc::SYS_getcpu),
    ("madvise", libc::SYS_madvise),
    ("prctl", libc::SYS_prctl),
    ("clone3", libc::SYS_clone3),
    ("readlinkat", libc::SYS_readlinkat),
    ("getdents64", libc::SYS_getdents64),
    ("sysinfo", libc::SYS_sysinfo),
];

/// Calls that sandboxes refuse, and that a launcher makes.
pub const OF_LAUNCHERS: [(&str, libc::c_long); 6] = [
    ("wait4", libc::SYS_wait4),
    ("ppoll", libc::SYS_ppoll),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("signalfd4", libc::SYS_signalfd4),
    ("prctl", libc::SYS_prctl),
    ("memfd_create", libc::SYS_memfd_create),
];

/// Makes the system refuse one of the calls above, with the error `EPERM` or `ENOSYS`, in this
/// thread and in all that it starts. It cannot be undone, so use it in a process that a test has
/// started.
///
/// # Errors
/// When the system has no such filters (seccomp).
///
/// # Panics
/// When `name` is not one of them.
pub fn refuse(name: &str, is_known: bool) -> io::Result<()> {
    let mut all = CALLS.iter().chain(&OF_LAUNCHERS);
    let call = all.find(|(call, _)| *call == name).expect("one of the calls").1;
    let errno = if is_known { libc::EPERM } else { libc::ENOSYS };
    let filter = |code: u32, [yes, no]: [u8; 2], k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: yes,
        jf: no,
        k,
    };
    let number = u32::try_from(call).map_err(io::Error::other)?;
    let refused = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    // The number of the call is the first word of a filter's input.
    let mut filters = [
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, [0, 0], 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, [0, 1], number),
        filter(libc::BPF_RET | libc::BPF_K, [0, 0], refused),
        filter(libc::BPF_RET | libc::BPF_K, [0, 0], libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filters.as_mut_ptr() };
    // SAFETY: only changes the permissions of this thread.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the program has four instructions, which the system copies.
    match unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
