//! System statistics: processor time, memory, suspension and large pages.

use std::{
    fs::{self, File},
    io::Read,
    time::Duration,
};

pub use crate::system::usage::{involuntary_switches, memory_bytes, processor_time, suspended};

/// Returns how long the calling thread could run, but waited for a processor, since it started;
/// `None` if the system does not report it.
#[must_use]
pub fn run_delay() -> Option<Duration> {
    let times = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    times.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Returns whether more threads of the system can run than the caller's `awake` threads. Also true
/// if the system does not report it. Allocates nothing.
#[must_use]
pub fn others_compete(awake: u32) -> bool {
    do_compete(awake, runnable_threads())
}

/// As [`others_compete`], for a given number of threads that can run.
fn do_compete(awake: u32, runnable: Option<u32>) -> bool {
    runnable.is_none_or(|runnable| runnable > awake)
}

/// Returns how many threads of the system run or could run now, the caller among them; `None` if
/// the system does not report it.
fn runnable_threads() -> Option<u32> {
    let mut text = [0; 128]; // three averages, two counts and the number of a thread
    let len = File::open("/proc/loadavg").and_then(|mut file| file.read(&mut text)).ok()?;
    let load = str::from_utf8(&text[..len]).ok()?;
    let (runnable, _) = load.split_whitespace().nth(3)?.split_once('/')?;
    runnable.parse().ok().filter(|&count| count > 0)
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
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

    #[test]
    fn threads_beyond_those_awake_compete() {
        for (awake, runnable, expected) in [
            (8, Some(8), false),
            (8, Some(9), true),
            (3, Some(3), false),
            (3, Some(4), true),
            (8, None, true), // the system does not say
        ] {
            let found = do_compete(awake, runnable);
            assert_eq!(found, expected, "{awake} threads are awake, {runnable:?} can run");
        }
    }

    #[test]
    fn threads_that_compute_are_runnable() {
        let is_over = AtomicBool::new(false);
        let count = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let count = runnable_threads();
            is_over.store(true, Relaxed);
            count
        });
        assert!(count.is_none_or(|count| count >= 4), "{count:?}");
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
