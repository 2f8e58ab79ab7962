//! An asymmetric fence. Two sides store, then load. The rare side pays for both fences: it makes
//! all running threads fence, so the frequent side needs no fence instruction.
//!
//! | where | frequent side | rare side |
//! | --- | --- | --- |
//! | Linux | only the compiler keeps the order | `membarrier` interrupts running threads |
//! | elsewhere, and in Miri | the same | nothing: the two may miss each other |
//! | under loom | a fence | a fence |

use std::sync::atomic::Ordering::SeqCst;

use super::futex::Scope;

/// Orders a store before a load on the frequent side.
#[inline(always)]
pub fn light() {
    #[cfg(loom)]
    super::fence(SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(SeqCst);
}

/// Orders a store before a load on the rare side. Returns whether the fence paired with the
/// frequent side; always false if the system has no such fence.
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

/// Prepares fences within this process while the process has only one thread. Later, the first such
/// fence takes some 20 milliseconds.
pub fn prepare() {
    #[cfg(not(loom))]
    crate::system::fence::register_early();
}

/// Registers this process, so that threads of other processes can make its threads fence.
pub fn take_part() {
    #[cfg(not(loom))]
    crate::system::fence::take_part();
}
