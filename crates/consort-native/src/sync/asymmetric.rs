//! A fence of which one side pays for both: a thread that seldom stores and then loads makes all
//! running threads fence, so that those that often do need not.
//!
//! | where | frequent side | seldom side |
//! | --- | --- | --- |
//! | Linux | only the compiler keeps the order | `membarrier` interrupts running threads |
//! | elsewhere, and in Miri | the same | nothing: the two may miss each other |
//! | under loom | a fence | a fence |

use std::sync::atomic::Ordering::SeqCst;

/// The frequent side's half.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(loom)]
    super::fence(SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(SeqCst);
}

/// The seldom side's half. Returns whether it paired with the other; never, if the system has no
/// such fence.
pub(crate) fn heavy() -> bool {
    super::fence(SeqCst);
    #[cfg(loom)]
    return true;
    #[cfg(not(loom))]
    crate::system::fence::on_all_threads()
}
