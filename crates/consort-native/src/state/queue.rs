//! A queue of messages with many senders and one receiver: a ring of lines (Vyukov 2010).
//!
//! Line `i` serves the messages `i`, `i + CAPACITY`, ...; its last word is its state:
//!
//! | last word | state |
//! | --- | --- |
//! | `2 (n / CAPACITY)` | free for message `n` |
//! | `2 (n / CAPACITY) + 1` | holds message `n` |
//!
//! A sender takes a number by one atomic addition, waits until its line is free, fills the line,
//! and changes its state. The receiver empties lines in order. Cost: one addition, and one line
//! transfer a message.

use crate::inbox::line::Line;

/// The capacity in messages.
const CAPACITY: usize = 64;

/// A PE's queue of incoming messages.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Queue {
    /// Word 0: the next number for a sender.
    pub(crate) sent: Line,
    /// Word 0: messages received. Only the receiver writes it.
    pub(crate) received: Line,
    lines: [Line; CAPACITY],
}

impl Queue {
    /// The line of message `number`, and its last word while it is free for that message.
    pub(crate) fn place(&self, number: u64) -> (&Line, u64) {
        let index = usize::try_from(number % CAPACITY as u64).unwrap_or(0);
        (&self.lines[index], number / CAPACITY as u64 * 2)
    }
}
