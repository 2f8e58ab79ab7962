//! The address space that the C library's allocator takes.

#![expect(unsafe_code, reason = "sets a parameter of the C library's allocator")]

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
