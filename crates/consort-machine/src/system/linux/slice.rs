//! The slice of a thread: how long the scheduler lets it run while others wait for its processor.
//!
//! A thread that wakes up takes the place of a running thread only if the slice of the woken thread
//! would end earlier (from Linux 6.6). A thread can set the length of its slices from Linux 6.12.

#![expect(unsafe_code, reason = "makes system calls that fill and read a structure")]

use std::{
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The shortest slice of the system, in nanoseconds.
const SHORTEST_NS: u64 = 100_000;

/// Whether the system has refused. Then no thread asks again.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// The calling thread has the shortest slice until this is dropped, if the system allows it.
#[derive(Debug)]
pub struct ShortSlice {
    before: Option<libc::sched_attr>,
}

impl ShortSlice {
    /// Shortens the slices of the calling thread.
    #[must_use]
    pub fn begin() -> Self {
        let before = own().filter(|before| {
            let short = libc::sched_attr { sched_runtime: SHORTEST_NS, ..*before };
            before.sched_runtime > SHORTEST_NS && set(&short)
        });
        Self { before }
    }
}

impl Drop for ShortSlice {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            set(before);
        }
    }
}

/// Returns the scheduling of the calling thread; `None` if its slices cannot be set: it has another
/// policy than the usual one, or the system has no slices. Older systems report slices of 0.
fn own() -> Option<libc::sched_attr> {
    if IS_REFUSED.load(Relaxed) {
        return None;
    }
    let mut own = MaybeUninit::<libc::sched_attr>::zeroed();
    let bytes = size_of::<libc::sched_attr>();
    // SAFETY: the pointer is to a local variable that has room for the structure.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, own.as_mut_ptr(), bytes, 0) };
    // SAFETY: the structure consists of integers, so all zeroes are valid too.
    let own = unsafe { own.assume_init() };
    let is_usual = i64::from(own.sched_policy) == i64::from(libc::SCHED_OTHER);
    if result != 0 || is_usual && own.sched_runtime == 0 {
        IS_REFUSED.store(true, Relaxed);
        return None;
    }
    is_usual.then_some(own)
}

/// Sets the scheduling of the calling thread. Returns whether the system did it.
fn set(attributes: &libc::sched_attr) -> bool {
    // SAFETY: the system only reads the structure.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes, 0) };
    if result != 0 {
        IS_REFUSED.store(true, Relaxed);
    }
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_is_short_only_until_the_guard_is_dropped() {
        let Some(before) = own() else { return }; // an older system
        let short = ShortSlice::begin();
        let during = own().expect("as before");
        drop(short);
        let after = own().expect("as before");
        assert_eq!(during.sched_runtime, SHORTEST_NS);
        assert_eq!(after.sched_runtime, before.sched_runtime);
        assert_eq!(
            (after.sched_policy, after.sched_nice),
            (before.sched_policy, before.sched_nice)
        );
    }
}
