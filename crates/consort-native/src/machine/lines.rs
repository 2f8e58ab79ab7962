//! Lines for nodes of queues. They are never returned to the allocator, since a stale address of
//! one may be read at any time.

use std::{
    cell::Cell,
    sync::{Mutex, MutexGuard, PoisonError},
};

use consort_fabric::Line;

/// Lines that a thread keeps.
const KEPT: usize = 8;

/// The lines that no thread keeps.
static POOL: Mutex<Vec<&'static Line>> = Mutex::new(Vec::new());

fn pool() -> MutexGuard<'static, Vec<&'static Line>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two neighbouring lines, of which one is used: processors fetch lines in pairs.
#[derive(Default)]
#[repr(C, align(128))]
struct Pair {
    used: Line,
    _unused: Line,
}

/// The lines that a thread keeps for its next uses.
pub(super) struct Lines {
    count: Cell<usize>,
    lines: [Cell<Option<&'static Line>>; KEPT],
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self { count: Cell::new(0), lines: [const { Cell::new(None) }; KEPT] }
    }

    /// A kept line, the last one that was given; `None` if none is kept.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<&'static Line> {
        let index = self.count.get().checked_sub(1)?;
        let line = self.lines.get(index)?.get();
        self.count.set(index);
        line
    }

    /// Keeps a line, or leaves it to other threads.
    #[inline(always)]
    pub(super) fn give(&self, line: &'static Line) {
        match self.lines.get(self.count.get()) {
            Some(place) => {
                place.set(Some(line));
                self.count.set(self.count.get() + 1);
            }
            None => pool().push(line),
        }
    }

    /// Leaves all kept lines to other threads.
    pub(super) fn give_all(&self) {
        pool().extend(std::iter::from_fn(|| self.take()));
    }
}

/// A line that no thread keeps, or a new one.
#[cold]
pub(super) fn more() -> &'static Line {
    let left = pool().pop();
    left.unwrap_or_else(|| &Box::leak(Box::<Pair>::default()).used)
}
