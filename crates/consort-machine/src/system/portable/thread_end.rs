//! Work at the end of a thread, among the destructors of its thread-local variables.

use std::cell::Cell;

struct End(Cell<Option<fn()>>);

impl Drop for End {
    fn drop(&mut self) {
        if let Some(work) = self.0.get() {
            work();
        }
    }
}

thread_local! {
    static END: End = const { End(Cell::new(None)) };
}

/// Runs `work` when the calling thread ends. Destructors that run later find it done.
pub fn at_end_of_thread(work: fn()) {
    let _ = END.try_with(|end| end.0.set(Some(work)));
}
