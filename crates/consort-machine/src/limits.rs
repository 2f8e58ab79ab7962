//! System limits: how much is left, which one refused a request, and how to raise it.
//!
//! The system returns an error number, which does not name the limit that was reached. Linux
//! reports limits and usage in `/proc`; other systems report less.

#![cfg_attr(any(not(unix), miri), expect(dead_code, reason = "this system reports no limits"))]
#![cfg_attr(all(unix, not(miri)), expect(unsafe_code, reason = "makes system calls"))]

use std::{fs, io};

use crate::fork_safe::Found;

/// The kind of request that the system refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedRequest {
    /// Memory, with its size in bytes.
    Memory(usize),
    /// A thread or a process.
    Thread,
    /// Anything else, such as a file.
    Other,
}

/// A request may fail although its size is left, because alignment and guard pages take up to this
/// much more.
const MARGIN: usize = 4 << 20;
/// A process this close to the limit on mappings counts as having reached it.
const MAPPINGS_IN_RESERVE: usize = 8;

/// Returns the first number in a file of the system.
fn number_in(path: &str) -> Option<usize> {
    number_at(path, 0)
}

/// Returns the number at position `place`, counted from 0, in a file of the system.
fn number_at(path: &str, place: usize) -> Option<usize> {
    fs::read_to_string(path).ok()?.split_whitespace().nth(place)?.parse().ok()
}

/// A limit on the memory of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLimit {
    /// The limit on address space (`ulimit -v`), which counts all mappings.
    AddressSpace,
    /// The limit on data (`ulimit -d`), which counts private writable mappings.
    Data,
}

impl MemoryLimit {
    /// All limits.
    pub const EVERY: [Self; 2] = [Self::AddressSpace, Self::Data];

    /// Returns the command that shows and changes the limit, and the name of the memory it counts.
    #[cfg(all(unix, not(miri)))]
    const fn names(self) -> [&'static str; 2] {
        match self {
            Self::AddressSpace => ["ulimit -v", "address space"],
            Self::Data => ["ulimit -d", "private memory"],
        }
    }
}

/// Returns how many bytes this process may still map privately; `None` if there is no limit.
#[must_use]
pub fn memory_left() -> Option<usize> {
    MemoryLimit::EVERY.into_iter().filter_map(left).min()
}

/// Returns whether the system charges private memory in full when it is mapped, used or not
/// (`vm.overcommit_memory` is 2).
#[must_use]
pub fn counts_unused_memory() -> bool {
    static COUNTS: Found<bool> = Found::new();
    *COUNTS.get_or_find(|| number_in("/proc/sys/vm/overcommit_memory") == Some(2))
}

/// Returns how many mappings this process may have, if the system has such a limit.
#[must_use]
pub fn most_mappings() -> Option<usize> {
    number_in("/proc/sys/vm/max_map_count")
}

/// Returns how many mappings this process has, if the system reports it.
#[must_use]
pub fn mappings() -> Option<usize> {
    Some(fs::read("/proc/self/maps").ok()?.iter().filter(|&&byte| byte == b'\n').count())
}

#[cfg(any(not(unix), miri))]
mod system {
    /// Returns `None`: this system has no memory limits.
    #[must_use]
    pub fn most(_: super::MemoryLimit) -> Option<usize> {
        None
    }

    /// Returns `None`: this system has no memory limits.
    #[must_use]
    pub fn left(_: super::MemoryLimit) -> Option<usize> {
        None
    }

    pub(super) fn remedy_of_number(
        _: &super::io::Error,
        _: super::RefusedRequest,
    ) -> Option<String> {
        None
    }
}

#[cfg(all(unix, not(miri)))]
pub use system::longest_file;
pub use system::{left, most};

/// Returns advice on an error of the system, if a limit may be the reason.
#[must_use]
pub fn remedy(error: &io::Error, refused: RefusedRequest) -> Option<String> {
    system::remedy_of_number(error, refused)
}

#[cfg(all(unix, not(miri)))]
mod system {
    use std::mem::MaybeUninit;

    use libc::{
        EACCES, EAGAIN, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM, RLIMIT_AS, RLIMIT_DATA,
        RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_NOFILE, RLIMIT_NPROC,
    };

    use super::{
        MAPPINGS_IN_RESERVE, MARGIN, MemoryLimit, RefusedRequest, counts_unused_memory, fs, io,
        mappings, most_mappings, number_at, number_in,
    };

    /// The type of a resource number, which differs between C libraries.
    #[cfg(target_env = "gnu")]
    type Resource = libc::__rlimit_resource_t;
    #[cfg(not(target_env = "gnu"))]
    type Resource = libc::c_int;

    /// Returns the soft limit of a resource; `None` if there is none.
    fn soft(resource: Resource) -> Option<u64> {
        let mut limit = MaybeUninit::<libc::rlimit>::uninit();
        // SAFETY: the pointer is to a local variable that has room for the structure.
        let failed = unsafe { libc::getrlimit(resource, limit.as_mut_ptr()) } != 0;
        if failed {
            return None;
        }
        // SAFETY: the call has succeeded, so it has filled the structure.
        let limit = unsafe { limit.assume_init() };
        match limit.rlim_cur {
            libc::RLIM_INFINITY => None,
            // The type differs between systems.
            #[expect(clippy::useless_conversion, reason = "it is u64 on Linux")]
            most => u64::try_from(most).ok(),
        }
    }

    /// Returns the length in bytes to which this process may extend a file; `None` without a limit.
    #[must_use]
    pub fn longest_file() -> Option<u64> {
        soft(RLIMIT_FSIZE)
    }

    fn page_size() -> usize {
        // SAFETY: the call reads no memory of this process.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4096)
    }

    /// Returns how many bytes a process may map under a limit; `None` if it is not set.
    #[must_use]
    pub fn most(limit: MemoryLimit) -> Option<usize> {
        let resource = match limit {
            MemoryLimit::AddressSpace => RLIMIT_AS,
            MemoryLimit::Data => RLIMIT_DATA,
        };
        usize::try_from(soft(resource)?).ok()
    }

    /// Returns how many bytes this process may still map under a limit; `None` if it is not set.
    #[must_use]
    pub fn left(limit: MemoryLimit) -> Option<usize> {
        let most = most(limit)?;
        let place = match limit {
            MemoryLimit::AddressSpace => 0,
            MemoryLimit::Data => 5, // stacks too
        };
        let pages = number_at("/proc/self/statm", place)?;
        Some(most.saturating_sub(pages.saturating_mul(page_size())))
    }

    fn shown(resource: Resource) -> String {
        soft(resource).map_or("unlimited".to_owned(), |limit| limit.to_string())
    }

    pub(super) fn remedy_of_number(error: &io::Error, refused: RefusedRequest) -> Option<String> {
        Some(match (error.raw_os_error()?, refused) {
            (ENOMEM, RefusedRequest::Memory(bytes)) => remedy_of_memory(bytes),
            (ENOMEM, RefusedRequest::Other) => remedy_of_memory(0),
            (EAGAIN, RefusedRequest::Memory(bytes)) => {
                if limit_exceeded_by(bytes).is_some() {
                    return Some(remedy_of_memory(bytes));
                }
                let limit = shown(RLIMIT_MEMLOCK);
                format!("raise the limit of locked memory: `ulimit -l` is {limit} bytes")
            }
            (ENOSYS | EPERM | EACCES, RefusedRequest::Thread) => {
                "the kernel or a sandbox (seccomp) does not let this process start threads: allow the \
                 system calls clone and clone3"
                    .to_owned()
            }
            (EAGAIN, RefusedRequest::Other) | (_, RefusedRequest::Thread) => {
                remedy_of_threads(&counts())
            }
            (EMFILE, _) => format!(
                "too many open files: `ulimit -n` is {}; raise it, or start fewer PEs",
                shown(RLIMIT_NOFILE)
            ),
            (ENFILE, _) => {
                "too many open files on this machine: raise `sysctl fs.file-max`".to_owned()
            }
            (EFBIG, _) => match longest_file() {
                Some(most) => format!(
                    "shared memory is a file, and `ulimit -f` limits a file to {most} bytes: \
                     raise it, or ask for less symmetric memory"
                ),
                None => "no file can be that large: ask for less symmetric memory".to_owned(),
            },
            (ENOSYS | EPERM | EACCES, RefusedRequest::Memory(_)) => {
                "the kernel or a sandbox (seccomp) forbids this system call: allow it, or run the \
                 PEs as threads of one process, without CONSORT_SEGMENT=shared"
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// Returns the limit that a request of `bytes` exceeds, its value, and the bytes that are left.
    fn limit_exceeded_by(bytes: usize) -> Option<(MemoryLimit, usize, usize)> {
        let is_met = |limit| {
            let left = left(limit).filter(|&left| left < bytes.saturating_add(MARGIN))?;
            Some((limit, most(limit)?, left))
        };
        MemoryLimit::EVERY.into_iter().find_map(is_met)
    }

    fn remedy_of_memory(bytes: usize) -> String {
        if let Some((limit, most, left)) = limit_exceeded_by(bytes) {
            let [command, name] = limit.names();
            return format!(
                "`{command}` allows this process {most} bytes of {name}, of which {left} are \
                 left: raise it, or ask for less symmetric memory or fewer PEs"
            );
        }
        match most_mappings() {
            Some(most) if mappings().is_some_and(|used| used + MAPPINGS_IN_RESERVE >= most) => {
                return format!("the process has {most} mappings: raise `sysctl vm.max_map_count`");
            }
            _ => {}
        }
        if counts_unused_memory() {
            return "vm.overcommit_memory is 2: private memory counts when it is mapped. Ask for \
                    less symmetric memory, or set CONSORT_SEGMENT=shared"
                .to_owned();
        }
        "it is more than the address space or the machine's memory: ask for less symmetric memory \
         or fewer PEs"
            .to_owned()
    }

    /// A limit on a count: its name, the current count if known, and the limit.
    pub(super) type Count = (&'static str, Option<usize>, usize);

    /// Returns the limits that can prevent a thread or a process from starting.
    fn counts() -> Vec<Count> {
        let of_process = [
            (RLIMIT_NPROC, "RLIMIT_NPROC (`ulimit -u`)"),
            (RLIMIT_DATA, "RLIMIT_DATA (`ulimit -d`)"),
            (RLIMIT_AS, "RLIMIT_AS (`ulimit -v`)"),
        ];
        let of_process = of_process.into_iter().filter_map(|(resource, name)| {
            let most = soft(resource)?;
            Some((name, None, usize::try_from(most).ok()?))
        });
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let all = load.split_whitespace().nth(3).and_then(|part| part.split_once('/'));
        let all = all.and_then(|(_, all)| all.parse().ok());
        let of_system = number_in("/proc/sys/kernel/threads-max");
        let of_system = of_system.map(|most| ("kernel.threads-max", all, most));
        let of_maps = most_mappings().map(|most| ("vm.max_map_count", mappings(), most));
        of_process.chain(of_system).chain(of_maps).chain(of_group()).collect()
    }

    /// Returns the tightest limit of the control groups of this process.
    fn of_group() -> Option<Count> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let is_for_pids = |line: &&str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let names = parts.next();
            names.is_some_and(|names| names.is_empty() || names.split(',').any(|n| n == "pids"))
        };
        let path = groups.lines().find(is_for_pids)?.splitn(3, ':').nth(2)?;
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"];
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
        let all = folders.flat_map(|folder| roots.map(|root| format!("{root}{folder}")));
        let limit = |folder: String| {
            let most = number_in(&format!("{folder}/pids.max"))?;
            let used = number_in(&format!("{folder}/pids.current"));
            Some(("the control group's pids.max", used, most))
        };
        all.filter_map(limit).min_by_key(|&(_, used, most)| most.saturating_sub(used.unwrap_or(0)))
    }

    pub(super) fn remedy_of_threads(limits: &[Count]) -> String {
        let name = |&(name, used, most): &Count| match used {
            Some(used) => format!("{name} of {most}, of which {used} are used"),
            None => format!("{name} of {most}"),
        };
        let is_met = |(_, used, most): &&Count| {
            used.is_some_and(|used| used + most / 64 + MAPPINGS_IN_RESERVE >= *most)
        };
        let met: Vec<String> = limits.iter().filter(is_met).map(name).collect();
        if !met.is_empty() {
            return format!("the limit is {}: raise it, or use fewer PEs", met.join("; "));
        }
        match limits {
            [] => "use fewer PEs".to_owned(),
            _ => {
                let all = limits.iter().map(name).collect::<Vec<_>>().join("; ");
                format!("raise the limit that was reached, or use fewer PEs ({all})")
            }
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::{system::*, *};

    #[test]
    fn remedy_names_the_limit() {
        let memory = RefusedRequest::Memory(1 << 20);
        for (errno, refused, part) in [
            (libc::EAGAIN, RefusedRequest::Other, "`ulimit -u`"),
            (libc::EAGAIN, RefusedRequest::Thread, "`ulimit -u`"),
            (libc::EAGAIN, memory, "`ulimit -l` is "),
            (libc::EMFILE, RefusedRequest::Other, "`ulimit -n` is "),
            (libc::ENFILE, memory, "fs.file-max"),
            (libc::ENOMEM, RefusedRequest::Other, "less symmetric memory"),
            (libc::EFBIG, memory, "ask for less symmetric memory"),
            (libc::ENOSYS, memory, "seccomp"),
        ] {
            let remedy =
                remedy(&io::Error::from_raw_os_error(errno), refused).expect("a limit is known");
            assert!(remedy.contains(part), "{errno:?}, {refused:?}: `{part}` in {remedy}");
        }
        assert_eq!(remedy(&io::Error::from_raw_os_error(libc::EPERM), RefusedRequest::Other), None);
        assert_eq!(remedy(&io::Error::from_raw_os_error(libc::EINVAL), memory), None);
    }

    #[test]
    fn reached_thread_limit_is_named() {
        let limits =
            [("RLIMIT_NPROC", None, 9), ("pids.max", Some(99), 100), ("maps", Some(5), 65530)];
        let text = remedy_of_threads(&limits);
        assert!(text.contains("the limit is pids.max of 100, of which 99 are used"), "{text}");
        assert!(!text.contains("maps") && !text.contains("NPROC"), "{text}");
        let text = remedy_of_threads(&limits[..1]);
        assert!(text.contains("use fewer PEs (RLIMIT_NPROC of 9)"), "{text}");
    }
}
