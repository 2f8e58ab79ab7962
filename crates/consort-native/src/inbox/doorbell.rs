//! A doorbell: many lines for messages, one for each sender, and a word that counts the messages in
//! all of them.
//!
//! | PE | steps |
//! | --- | --- |
//! | sender | writes its line, the number last (release); then adds 1 to the doorbell (release) |
//! | listener | reads the doorbell (acquire); if it has grown, searches the lines |
//!
//! The listener counts the messages that it has taken. If the doorbell's count is larger, there is
//! a message to find, because senders count after they write. The search may first find another
//! message, which its sender has not yet counted. When the sender counts it, this causes another
//! search. Each search begins after the line that was found last, so no sender starves.

use std::{cell::Cell, sync::atomic::Ordering::Release};

use crate::inbox::line::{Line, PAYLOAD_WORDS};

/// The listener's private state.
#[derive(Debug)]
pub struct Doorbell {
    /// The number of the last message taken from each line.
    seen: Box<[Cell<u64>]>,
    /// The number of messages taken.
    taken: Cell<u64>,
    /// The index of the line at which the next search begins.
    next: Cell<usize>,
}

impl Doorbell {
    /// Returns the listener for `lines` lines. All of them, and the doorbell, must be zero.
    #[must_use]
    pub fn new(lines: usize) -> Self {
        Self {
            seen: (0..lines).map(|_| Cell::new(0)).collect(),
            taken: Cell::new(0),
            next: Cell::new(0),
        }
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.seen.len()
    }

    /// Leaves a message in the sender's own `line`, and adds 1 to word 0 of `doorbell`. `number`
    /// must differ from the previous message's number. The listener must have taken the previous
    /// message.
    ///
    /// # Panics
    /// If the message is longer than a line's payload.
    pub fn give(doorbell: &Line, line: &Line, message: &[u64], number: u64) {
        assert!(message.len() <= PAYLOAD_WORDS, "a message of {} words", message.len());
        for (index, &word) in message.iter().enumerate() {
            line.write(index, word);
        }
        line.publish(number);
        // Release: a listener that sees the new count finds the number.
        doorbell.counter(0).fetch_add(1, Release);
    }

    /// Returns the index and number of a line with a new message, if there is one. The message may
    /// be read until its sender is informed that it was taken.
    pub fn take<'l>(
        &self,
        doorbell: &Line,
        line: impl Fn(usize) -> &'l Line,
    ) -> Option<(usize, u64)> {
        if doorbell.word_at(0) == self.taken.get() {
            return None;
        }
        let count = self.lines();
        let mut indices = (0..count).map(|step| (self.next.get() + step) % count);
        let found = indices.find_map(|index| {
            let number = line(index).word();
            (number != self.seen[index].get()).then_some((index, number))
        })?;
        self.seen[found.0].set(found.1);
        self.taken.set(self.taken.get() + 1);
        self.next.set(found.0 + 1);
        Some(found)
    }
}
