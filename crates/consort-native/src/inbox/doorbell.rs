//! A doorbell: many lines in which anyone may leave a message, and one word that says whether to
//! look.
//!
//! | who | what |
//! | --- | --- |
//! | a giver | writes its line, its number last (release); then counts the doorbell on (release) |
//! | the listener | reads the doorbell (acquire); if it has counted on, looks through the lines |
//!
//! The listener has taken as many messages as it has counted, so a doorbell that shows more has
//! some to be found: the count comes after its message. It may find another's first, whose count is
//! still to come; then that count makes it look again. Nobody is forgotten for the sake of another,
//! for it looks from the line after the last one on.

use std::{cell::Cell, sync::atomic::Ordering::Release};

use crate::inbox::line::{Line, PAYLOAD_WORDS};

/// The listener's own part.
#[derive(Debug)]
pub struct Doorbell {
    /// The number of the last message of each line that was taken.
    seen: Box<[Cell<u64>]>,
    /// Messages that were taken.
    taken: Cell<u64>,
    /// Where the next search begins.
    next: Cell<usize>,
}

impl Doorbell {
    /// For so many lines, all of which have zeros, as the doorbell.
    #[must_use]
    pub fn new(lines: usize) -> Self {
        Self {
            seen: (0..lines).map(|_| Cell::new(0)).collect(),
            taken: Cell::new(0),
            next: Cell::new(0),
        }
    }

    /// How many lines there are.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.seen.len()
    }

    /// Leaves a message in the giver's own `line`, with a number other than its last one's, and
    /// rings `doorbell`, in its word 0. The listener has taken the last one.
    ///
    /// # Panics
    /// If the message is longer than a line's payload.
    pub fn give(doorbell: &Line, line: &Line, message: &[u64], number: u64) {
        assert!(message.len() <= PAYLOAD_WORDS, "a message of {} words", message.len());
        for (index, &word) in message.iter().enumerate() {
            line.write(index, word);
        }
        line.publish(number);
        // Release: whoever sees the count finds the number.
        doorbell.counter(0).fetch_add(1, Release);
    }

    /// The index and number of a line whose message was not taken before, if there is one. It may
    /// be read until the giver sees that it was.
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
