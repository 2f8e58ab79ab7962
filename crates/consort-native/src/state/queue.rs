//! A queue of messages with many senders and one receiver: a ring of lines (Vyukov 2010).
//!
//! Line `i` serves the messages `i`, `i + CAPACITY`, ...; its last word says what it waits for:
//!
//! | last word | state |
//! | --- | --- |
//! | `2 (n / CAPACITY)` | free for message `n` |
//! | `2 (n / CAPACITY) + 1` | holds message `n` |
//!
//! A sender takes a number by one atomic addition, waits until its line is free, fills it and says
//! so; the receiver empties lines in position. Cost: one addition, and one line transfer a message.

use crate::inbox::line::Line;

/// Messages that a queue holds.
const CAPACITY: usize = 64;

/// A PE's queue of incoming messages.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Queue {
    /// Word 0: numbers given to senders.
    pub(crate) sent: Line,
    /// Word 0: messages received. Written by the receiver alone.
    pub(crate) received: Line,
    lines: [Line; CAPACITY],
}

impl Queue {
    /// The line of message `number`, and what its last word is while it is free for that.
    pub(crate) fn place(&self, number: u64) -> (&Line, u64) {
        let index = usize::try_from(number % CAPACITY as u64).unwrap_or(0);
        (&self.lines[index], number / CAPACITY as u64 * 2)
    }
}
