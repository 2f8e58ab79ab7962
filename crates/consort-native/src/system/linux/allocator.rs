//! The address space that the C library's allocator takes.

#![expect(unsafe_code, reason = "sets a parameter of the C library's allocator")]

/// The address space in bytes that the GNU C library's allocator temporarily takes for a thread
/// that allocates, in order to align the thread's arena.
pub(crate) const ARENA: usize = 128 << 20;

/// Makes all threads allocate from one arena, as they do anyway if no other arena fits. Otherwise
/// each thread takes tens of megabytes of address space while there is enough, and leaves less than
/// the stacks of later threads need.
pub(crate) fn share_arena() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: may be called at any time, and sets a number.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}
