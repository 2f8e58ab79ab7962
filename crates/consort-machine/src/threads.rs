//! Checks how many threads the system lets this process start.
//!
//! A thread takes `MAPPINGS_OF_A_THREAD` mappings of the `vm.max_map_count` that a process may
//! have. The thread itself makes the last two, and aborts if it cannot. So a launch of many threads
//! checks first.

use std::io;

use crate::{
    fork_safe::{Guard, Mutex},
    limits::{mappings, most_mappings},
};

/// Mappings of a thread: its stack, its stack for signal handlers, and a guard for each.
pub const MAPPINGS_OF_A_THREAD: usize = 4;
/// Fewer threads than this start without a check of the mappings.
const MANY: usize = 64;
/// Mappings that other code may take in the meantime.
const SPARE: usize = 256;

/// The right to start many threads. One launch at a time has it.
pub struct ManyThreadStart(#[expect(dead_code, reason = "held")] Option<Guard<'static, ()>>);

impl ManyThreadStart {
    /// Takes the right to start `threads` threads.
    ///
    /// # Errors
    /// When the threads would take more mappings than the process may have.
    pub fn of(threads: usize) -> io::Result<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        if threads < MANY {
            return Ok(Self(None));
        }
        let held = ONE.lock();
        if let Some((used, most)) = mappings().zip(most_mappings()) {
            // Threads of the previous launch may not have made their mappings yet.
            let needed = 2 * MAPPINGS_OF_A_THREAD * threads + SPARE;
            if used + needed > most {
                return Err(io::Error::other(format!(
                    "{threads} threads need {needed} mappings, but this process already uses \
                     {used} of {most}: raise the limit with `sysctl vm.max_map_count`, or start \
                     fewer threads"
                )));
            }
        }
        Ok(Self(Some(held)))
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri))))]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_mappings_are_refused_before_one_starts() {
        let most = most_mappings().expect("a limit");
        let error = ManyThreadStart::of(most).map(drop).expect_err("each takes four");
        let text = error.to_string();
        assert!(text.contains("vm.max_map_count") && text.contains(&most.to_string()), "{text}");
        assert!(ManyThreadStart::of(2).is_ok() && ManyThreadStart::of(MANY).is_ok());
    }
}
