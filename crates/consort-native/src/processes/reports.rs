//! The reasons why processes cannot start, in the control block. Each text is stored once, even if
//! several processes report it.
//!
//! An entry is free, being written, or complete. A process that finds an entry free claims it and
//! writes the text. The others read it.

use std::{
    array, str,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
};

/// The number of texts that fit.
const ENTRIES: usize = 4;
/// The number of words in a text.
const WORDS: usize = 128;
/// How often a process checks whether another process, which may be killed, has written its text.
const LOOKS: u32 = 10_000;

/// The states of an entry.
const FREE: u32 = 0;
const WRITING: u32 = 1;
const COMPLETE: u32 = 2;

#[repr(C)]
pub(super) struct Reports([ReportSlot; ENTRIES]);

#[repr(C, align(64))]
struct ReportSlot {
    state: AtomicU32,
    /// The length of the text in bytes.
    length: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl ReportSlot {
    fn write(&self, text: &str) {
        self.length.store(u32::try_from(text.len()).unwrap_or(0), Relaxed);
        for (word, bytes) in self.words.iter().zip(text.as_bytes().chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(all), Relaxed);
        }
        // Release: a reader that sees the state sees the text.
        self.state.store(COMPLETE, Release);
    }

    fn text(&self) -> Option<String> {
        // Acquire: as above.
        if self.state.load(Acquire) != COMPLETE {
            return None;
        }
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let length = self.length.load(Relaxed) as usize;
        str::from_utf8(bytes.get(..length)?).ok().map(str::to_owned)
    }

    /// Returns whether the entry has this text, which is written if the entry is free. `None` if
    /// that is not known.
    fn is_or_becomes(&self, text: &str) -> Option<bool> {
        // Acquire: pairs with the writer's release.
        if self.state.compare_exchange(FREE, WRITING, Acquire, Acquire).is_ok() {
            self.write(text);
            return Some(true);
        }
        for _ in 0..LOOKS {
            match self.text() {
                Some(there) => return Some(there == text),
                None => thread::yield_now(),
            }
        }
        None
    }
}

impl Reports {
    /// Returns the number of a text, which is added if it is new. `None` if there is no room for
    /// it.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        if text.is_empty() || text.len() > 8 * WORDS {
            return None;
        }
        let mut numbered = (0..).zip(&self.0);
        numbered.find_map(|(number, report)| match report.is_or_becomes(text) {
            Some(true) => Some(Some(number)),
            Some(false) => None,
            None => Some(None),
        })?
    }

    /// Returns the texts, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, String)> {
        (0..).zip(&self.0).filter_map(|(number, report)| Some((number, report.text()?)))
    }
}

impl Default for Reports {
    fn default() -> Self {
        let report = |_| ReportSlot {
            state: AtomicU32::new(FREE),
            length: AtomicU32::new(0),
            words: array::from_fn(|_| AtomicU64::new(0)),
        };
        Self(array::from_fn(report))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_entered_once_while_there_is_room() {
        let reports = Reports::default();
        let longest = "ä".repeat(4 * WORDS);
        for _ in 0..2 {
            assert_eq!(reports.number("first"), Some(0));
            assert_eq!(reports.number(&longest), Some(1));
        }
        assert_eq!(reports.number(""), None);
        assert_eq!(reports.number(&"x".repeat(8 * WORDS + 1)), None);
        let all: Vec<(u32, String)> = reports.all().collect();
        assert_eq!(all, [(0, "first".to_owned()), (1, longest)]);
        assert_eq!(
            [3, 4, 5, 3].map(|text| reports.number(&text.to_string())),
            [Some(2), Some(3), None, Some(2)]
        );
    }

    #[test]
    fn text_of_a_dead_writer_is_skipped() {
        let reports = Reports::default();
        reports.0[0].state.store(WRITING, Relaxed);
        assert_eq!(reports.number("text"), None);
        assert_eq!(reports.all().count(), 0);
    }
}
