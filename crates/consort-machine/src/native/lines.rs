//! Lines for nodes of queues. They are never returned to the allocator, because a stale address of
//! a line may be read at any time.

use std::cell::Cell;

use crate::{Line, fork_safe::Mutex};

/// The number of lines that a thread keeps.
const KEPT: usize = 8;

/// The lines that no thread keeps.
static POOL: Mutex<Vec<&'static Line>> = Mutex::new(Vec::new());

/// Two adjacent lines, of which one is used, because processors fetch lines in pairs.
#[derive(Default)]
#[repr(C, align(128))]
struct LinePair {
    used: Line,
    _unused: Line,
}

/// The lines that a thread keeps for later use. Before [`Lines::open`] it keeps none, and the count
/// is at its maximum. So a thread that only gives lines passes them on to other threads.
pub(super) struct Lines {
    count: Cell<usize>,
    lines: [Cell<Option<&'static Line>>; KEPT],
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self { count: Cell::new(KEPT), lines: [const { Cell::new(None) }; KEPT] }
    }

    /// Lets a thread without lines keep some, until [`give_all`](Self::give_all).
    pub(super) fn open(&self) {
        self.count.set(0);
    }

    /// Takes the line that was given last; `None` if none is kept.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<&'static Line> {
        let index = self.count.get().checked_sub(1)?;
        let line = self.lines.get(index)?.get()?;
        self.count.set(index);
        Some(line)
    }

    /// Keeps a line, or passes it on to other threads if there is no room.
    #[inline(always)]
    pub(super) fn give(&self, line: &'static Line) {
        match self.lines.get(self.count.get()) {
            Some(place) => {
                place.set(Some(line));
                self.count.set(self.count.get() + 1);
            }
            None => POOL.lock().push(line),
        }
    }

    /// Passes all kept lines on to other threads, and also those given later.
    pub(super) fn give_all(&self) {
        POOL.lock().extend(std::iter::from_fn(|| self.take()));
        self.lines.iter().for_each(|line| line.set(None));
        self.count.set(KEPT);
    }
}

/// Returns a line that no thread keeps, or allocates one.
#[cold]
pub(super) fn more() -> &'static Line {
    let left = POOL.lock().pop();
    left.unwrap_or_else(|| &Box::leak(Box::<LinePair>::default()).used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_between_open_and_give_all() {
        let lines = Lines::new();
        let keeps = || {
            lines.give(more());
            lines.take().is_some()
        };
        assert!(!keeps());
        lines.open();
        assert!(keeps());
        lines.give(more());
        lines.give_all();
        assert!(lines.take().is_none());
        assert!(!keeps());
    }
}
