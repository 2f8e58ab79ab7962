//! System statistics: processor time, memory, suspension and large pages.

use std::{fs, time::Duration};

use crate::system;

/// Returns how often the calling thread was preempted; `None` if the system does not report it.
#[must_use]
pub fn involuntary_switches() -> Option<u64> {
    system::usage::involuntary_switches()
}

/// Returns how long the calling thread could run, but waited for a processor, since it started;
/// `None` if the system does not report it.
#[must_use]
pub fn run_delay() -> Option<Duration> {
    let times = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    times.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Returns how long the machine has been suspended since it booted; `None` if the system does not
/// report it. The clock that measures times stands still during suspension.
#[must_use]
pub fn suspended() -> Option<Duration> {
    system::clock::suspended_ns().map(Duration::from_nanos)
}

/// Returns the processor time of all threads of this process, including those that have ended;
/// `None` if the system does not report it.
#[must_use]
pub fn processor_time() -> Option<Duration> {
    system::clock::processor_ns().map(Duration::from_nanos)
}

/// Returns nanoseconds since a fixed moment. On Linux all processes of a machine share the clock.
#[inline]
#[must_use]
pub fn clock_ns() -> u64 {
    system::clock::now_ns()
}

/// Returns the size of the machine's memory and swap, in bytes; `None` if the system does not
/// report it.
#[must_use]
pub fn memory_bytes() -> Option<usize> {
    system::usage::memory_bytes()
}

/// The system's settings for transparent large pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargePages {
    /// For memory of one process: `always`, `madvise` or `never`.
    pub private: String,
    /// For memory that processes share: `always`, `within_size`, `advise`, `never`, `force`.
    pub shared: String,
}

impl LargePages {
    /// The file with the setting for shared memory.
    pub const SHARED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

    /// Returns this system's settings; `None` if it has no large pages, or does not report them.
    #[must_use]
    pub fn of_system() -> Option<Self> {
        let private = chosen("/sys/kernel/mm/transparent_hugepage/enabled")?;
        Some(Self { private, shared: chosen(Self::SHARED)? })
    }

    /// Returns whether the symmetric memory of PEs that are processes, which asks for large pages,
    /// may get them.
    #[must_use]
    pub fn may_be_shared(&self) -> bool {
        !matches!(&*self.shared, "never" | "deny")
    }
}

/// Returns the word in brackets in a file of the system.
fn chosen(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::system::IS_LINUX;

    #[test]
    fn usage_is_known_only_on_linux() {
        assert_eq!(involuntary_switches().is_some(), IS_LINUX);
        assert_eq!(suspended().is_some(), IS_LINUX);
        assert_eq!(memory_bytes() >= Some(1 << 20), IS_LINUX);
        let before = processor_time();
        std::thread::spawn(|| (0..1_000_000).for_each(|_| std::hint::spin_loop())).join().unwrap();
        assert!(processor_time() > before || !IS_LINUX, "of a thread that has ended too");
    }

    /// Two threads compete for one processor, so each is preempted again and again, and waits half
    /// of the time.
    #[test]
    fn a_thread_that_competes_is_switched_and_waits() {
        let cpu = crate::affinity::allowed()[0];
        let compete = || {
            let bound = crate::affinity::pin(cpu).is_ok();
            let (begun, before) =
                (std::time::Instant::now(), (involuntary_switches(), run_delay()));
            while begun.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
            let count = before.0.zip(involuntary_switches()).map(|(before, after)| after - before);
            let delay = before.1.zip(run_delay()).map(|(before, after)| after - before);
            count.zip(delay).filter(|_| bound)
        };
        let lost = std::thread::scope(|scope| {
            let all = [scope.spawn(compete), scope.spawn(compete)];
            all.map(|one| one.join().unwrap())
        });
        if let [Some(one), Some(other)] = lost {
            assert!(one.0 + other.0 >= 4, "{lost:?}");
            let delay = one.1 + other.1;
            // Zero on a system that does not count.
            assert!(delay.is_zero() || delay >= Duration::from_millis(100), "{lost:?}");
        }
    }
}
