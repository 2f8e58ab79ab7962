//! A fence of which one side pays for both: a thread that seldom stores and then loads makes all
//! running threads fence, so that those that often do need not.
//!
//! | where | frequent side | seldom side |
//! | --- | --- | --- |
//! | Linux | only the compiler keeps the order | `membarrier` interrupts running threads |
//! | elsewhere, and in Miri | the same | nothing: the two may miss each other |
//! | under loom | a fence | a fence |

use std::sync::atomic::Ordering::SeqCst;

use super::futex::Scope;

/// The frequent side's half.
#[inline(always)]
pub fn light() {
    #[cfg(loom)]
    super::fence(SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(SeqCst);
}

/// The seldom side's half. Returns whether it paired with the other; never, if the system has no
/// such fence.
pub fn heavy(scope: Scope) -> bool {
    super::fence(SeqCst);
    on_others(scope)
}

#[cfg(loom)]
fn on_others(_: Scope) -> bool {
    true
}

#[cfg(not(loom))]
fn on_others(scope: Scope) -> bool {
    match scope {
        Scope::Process => crate::system::fence::on_all_threads(),
        Scope::Machine => crate::system::fence::on_all_processes(),
    }
}

/// Lets threads of other processes make those of this one fence.
pub fn take_part() {
    #[cfg(not(loom))]
    crate::system::fence::take_part();
}
