//! Work at the end of a thread, among the destructors of its thread-local variables.

use std::cell::Cell;

struct ExitGuard(Cell<Option<fn()>>);

impl Drop for ExitGuard {
    fn drop(&mut self) {
        if let Some(work) = self.0.get() {
            work();
        }
    }
}

thread_local! {
    static END: ExitGuard = const { ExitGuard(Cell::new(None)) };
}

/// Runs `work` when the calling thread ends. Destructors that run later find it done.
pub fn at_thread_exit(work: fn()) {
    let _ = END.try_with(|end| end.0.set(Some(work)));
}
