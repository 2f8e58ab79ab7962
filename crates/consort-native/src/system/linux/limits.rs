//! The limits that refuse memory: how much address space is left, and which limit an error is of.

#![expect(unsafe_code, reason = "sets a parameter of the C library's allocator")]

use std::{fs, io};

use rustix::{
    io::Errno,
    param::page_size,
    process::{Resource, getrlimit},
};

/// Bytes of address space that this process may still map; `None` without a limit.
pub(crate) fn address_space_left() -> Option<usize> {
    let most = getrlimit(Resource::As).current?;
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    let left = most.saturating_sub(pages.saturating_mul(page_size() as u64));
    usize::try_from(left).ok()
}

/// Address space that the GNU C library's allocator takes for a thread that allocates, while it
/// aligns it.
pub(crate) const ARENA: usize = 128 << 20;

/// Lets all threads allocate from one arena, as they do anyway where no other fits. Otherwise each
/// takes tens of megabytes of address space as long as there is as much, and leaves less than the
/// stacks of later threads need.
pub(crate) fn share_arena() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it may be called at any time, and sets a number.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// A number in a file of the system.
fn number_in(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Which limit has refused `bytes` with this error, and what to do about it.
pub(crate) fn advice(error: &io::Error, bytes: usize) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOMEM) => advice_on_memory(bytes),
        Some(Errno::AGAIN) => advice_on_threads_and_locks(bytes),
        Some(Errno::FBIG) => match getrlimit(Resource::Fsize).current {
            Some(most) => format!(
                "shared memory is a file, and `ulimit -f` allows {most} bytes of one: raise it, or \
                 ask for less symmetric memory"
            ),
            None => "no file is as large: ask for less symmetric memory".to_owned(),
        },
        Some(Errno::MFILE) => "raise the limit of open files (`ulimit -n`)".to_owned(),
        Some(Errno::NFILE) => "raise the system's limit of open files (`fs.file-max`)".to_owned(),
        Some(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            "the kernel or a sandbox (seccomp) forbids this system call: allow it, or run the PEs \
             as threads of one process"
                .to_owned()
        }
        _ => "ask for less symmetric memory".to_owned(),
    }
}

fn advice_on_memory(bytes: usize) -> String {
    if let Some(left) = address_space_left()
        && let Some(most) = getrlimit(Resource::As).current
        && left < bytes.saturating_add(MARGIN)
    {
        return format!(
            "`ulimit -v` allows this process {most} bytes of address space, of which {left} are \
             left: raise it, or ask for less symmetric memory or fewer PEs"
        );
    }
    let mappings = || fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count());
    match number_in("/proc/sys/vm/max_map_count") {
        Some(most) if mappings() as u64 + 8 >= most => {
            return format!("the process has {most} mappings: raise vm.max_map_count");
        }
        _ => {}
    }
    if number_in("/proc/sys/vm/overcommit_memory") == Some(2) {
        return "vm.overcommit_memory is 2, so that all memory counts when it is mapped: ask for \
                less symmetric memory, or set it to 0"
            .to_owned();
    }
    "it is more than the address space or the machine's memory: ask for less symmetric memory or \
     fewer PEs"
        .to_owned()
}

fn advice_on_threads_and_locks(bytes: usize) -> String {
    if address_space_left().is_some_and(|left| left < bytes.saturating_add(MARGIN)) {
        return advice_on_memory(bytes);
    }
    "raise the limits of locked memory (`ulimit -l`) and of threads (`ulimit -u`, or pids.max of \
     the control group)"
        .to_owned()
}

/// A request fails although somewhat more than its bytes is left: it is aligned, and guarded.
const MARGIN: usize = 4 << 20;
