//! How many threads the system lets this process start, and which limit a thread meets that could
//! not be started.
//!
//! A thread takes `MAPPINGS_OF_A_THREAD` parts of the address space, of which a process has
//! `vm.max_map_count`. The last two are taken by the thread itself, which aborts if there are none.
//! So a launch of many threads asks first.

use std::{
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Mappings of a thread: its stack, that for handlers of signals, and a guard of each.
pub(crate) const MAPPINGS_OF_A_THREAD: usize = 4;
/// Fewer threads than this are started without a look at the mappings.
const MANY: usize = 64;
/// Mappings that others may take meanwhile.
const SPARE: usize = 256;

/// A number in a file of the system.
fn number_in(path: &str) -> Option<usize> {
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// The most mappings that a process may have.
pub(crate) fn most_mappings() -> Option<usize> {
    number_in("/proc/sys/vm/max_map_count")
}

/// The mappings that this process has.
fn mappings() -> Option<usize> {
    Some(fs::read("/proc/self/maps").ok()?.iter().filter(|&&byte| byte == b'\n').count())
}

/// The right to start many threads, which one launch has at a time.
pub struct Starting(#[expect(dead_code, reason = "held")] Option<MutexGuard<'static, ()>>);

impl Starting {
    /// The right to start `threads` threads.
    ///
    /// # Errors
    /// When they would take more mappings than the process may have.
    pub fn of(threads: usize) -> io::Result<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        if threads < MANY {
            return Ok(Self(None));
        }
        let held = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, most)) = mappings().zip(most_mappings()) {
            // Threads of the launch before may not have taken theirs yet.
            let needed = 2 * MAPPINGS_OF_A_THREAD * threads + SPARE;
            if used + needed > most {
                return Err(io::Error::other(format!(
                    "{threads} threads take {needed} mappings at first, and this process has \
                     {used} of {most}: raise the limit with `sysctl vm.max_map_count`, or start \
                     fewer threads"
                )));
            }
        }
        Ok(Self(Some(held)))
    }
}

/// A limit on threads: its name, how much of it is used, and what it is.
type Limit = (&'static str, Option<usize>, usize);

/// The limits that are known here.
fn limits() -> Vec<Limit> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let of_user = soft("Max processes").map(|most| ("RLIMIT_NPROC (`ulimit -u`)", None, most));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let all = load.split_whitespace().nth(3).and_then(|part| part.split_once('/'));
    let all = all.and_then(|(_, all)| all.parse().ok());
    let of_system = number_in("/proc/sys/kernel/threads-max");
    let of_system = of_system.map(|most| ("kernel.threads-max", all, most));
    let of_maps = most_mappings().map(|most| ("vm.max_map_count", mappings(), most));
    of_user.into_iter().chain(of_system).chain(of_maps).chain(of_group()).collect()
}

/// The smallest limit of the control groups that this process is in.
fn of_group() -> Option<Limit> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let is_for_pids = |line: &&str| {
        let mut parts = line.splitn(3, ':').skip(1);
        parts.next().is_some_and(|names| names.is_empty() || names.split(',').any(|n| n == "pids"))
    };
    let path = groups.lines().find(is_for_pids)?.splitn(3, ':').nth(2)?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"];
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
    let all = folders.flat_map(|folder| roots.map(|root| format!("{root}{folder}")));
    let limit = |folder: String| {
        let most = number_in(&format!("{folder}/pids.max"))?;
        Some(("the control group's pids.max", number_in(&format!("{folder}/pids.current")), most))
    };
    all.filter_map(limit).min_by_key(|&(_, used, most)| most.saturating_sub(used.unwrap_or(0)))
}

/// Why a thread could not be started: what the system says, and which limits there are.
#[must_use]
pub fn why_not_started(error: &io::Error) -> String {
    with_limits(error, &limits())
}

fn with_limits(error: &io::Error, limits: &[Limit]) -> String {
    if error.raw_os_error().is_none() {
        return error.to_string(); // it names the limit
    }
    let name = |&(name, used, most): &Limit| match used {
        Some(used) => format!("{name} of {most}, of which {used} are used"),
        None => format!("{name} of {most}"),
    };
    let is_met = |(_, used, most): &&Limit| {
        used.is_some_and(|used| used + most / 64 + MAPPINGS_OF_A_THREAD >= *most)
    };
    let met: Vec<String> = limits.iter().filter(is_met).map(name).collect();
    if !met.is_empty() {
        return format!("{error}: the limit is {}: raise it, or use fewer PEs", met.join("; "));
    }
    match limits {
        [] => format!("{error}: use fewer PEs"),
        _ => {
            let all = limits.iter().map(name).collect::<Vec<_>>().join("; ");
            format!("{error}: raise the limit that is met, or use fewer PEs ({all})")
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn limit_that_is_met_is_named() {
        let error = io::Error::from_raw_os_error(11);
        let limits: [Limit; 3] =
            [("RLIMIT_NPROC", None, 9), ("pids.max", Some(99), 100), ("maps", Some(5), 65530)];
        let text = with_limits(&error, &limits);
        assert!(text.contains("the limit is pids.max of 100, of which 99 are used"), "{text}");
        assert!(!text.contains("maps") && !text.contains("NPROC"), "{text}");
        let text = with_limits(&error, &limits[..1]);
        assert!(text.contains("use fewer PEs (RLIMIT_NPROC of 9)"), "{text}");
        let own = io::Error::other("too many");
        assert_eq!(with_limits(&own, &limits), "too many");
    }

    #[test]
    fn more_threads_than_mappings_are_refused_before_one_starts() {
        let most = most_mappings().expect("a limit");
        let error = Starting::of(most).map(drop).expect_err("each takes four");
        let text = why_not_started(&error);
        assert!(text.contains("vm.max_map_count") && text.contains(&most.to_string()), "{text}");
        assert!(Starting::of(2).is_ok() && Starting::of(MANY).is_ok());
    }
}
