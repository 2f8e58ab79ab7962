//! The names of calls, and a number for each name. Messages use the numbers to distinguish calls.
//!
//! A name has a number as long as a plan of any PE holds it. A name without holders keeps its
//! number until another name needs it. A number is not reused while it is in any PE's log of recent
//! calls: messages of such calls may be in flight, and errors report them by name.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{
    locked_words::{LockedWords, size},
    map::{Key, Map, MapFull},
};

/// The number of words in a name: holders, length in bytes, and the text.
const NAME: usize = 32;
const HOLDERS: usize = 0;
const BYTES: usize = 1;
const TEXT: usize = 2;
/// The word that links spare numbers.
const AFTER: usize = 1;

/// The number of bytes of a text that are stored. Longer texts are distinguished by a hash of the
/// whole text.
const KEPT: usize = (NAME - TEXT) * 8;

/// The number of words before the names: the first spare number, the highest number ever given, and
/// the number of names above which a sweep is tried before a new number is used.
const HEAD: usize = 3;
const SPARE: usize = 0;
const HIGHEST: usize = 1;
const SWEEP_ABOVE: usize = 2;

/// A number of names that suffices for most programs.
const FEW: u64 = 1024;

/// The number of holders that marks a number without a name.
const UNNAMED: u64 = u64::MAX;

pub(super) struct Names<'d> {
    words: LockedWords<'d>,
    map: &'d Map<'d>,
}

/// Returns the key of a name: a hash of 128 bits, so collisions are not expected.
fn key(text: &str) -> Key {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, text).hash(&mut hasher);
        hasher.finish()
    };
    [super::keys::NAME, hash(1), hash(2)]
}

impl<'d> Names<'d> {
    /// Returns the number of words for `numbers` names.
    pub(super) const fn words(numbers: usize) -> usize {
        HEAD + numbers * NAME
    }

    /// Returns the names in these words; `map` finds their numbers.
    pub(super) fn new(words: LockedWords<'d>, map: &'d Map<'d>) -> Self {
        Self { words, map }
    }

    pub(super) fn most(&self) -> usize {
        (self.words.len() - HEAD) / NAME
    }

    /// Returns the index of a word of a name. Numbers begin at 1.
    fn at(number: u64, word: usize) -> usize {
        HEAD + size(number - 1) * NAME + word
    }

    /// Returns the number of a name, and adds a hold to it. `recent` passes on the numbers of
    /// recent calls.
    pub(super) fn hold(
        &self,
        text: &str,
        recent: impl FnOnce(&mut dyn FnMut(u64)),
    ) -> Result<u64, MapFull> {
        let key = key(text);
        if let Some([number, ..]) = self.map.get(&key) {
            let holders = Self::at(number, HOLDERS);
            self.words.set(holders, self.words.get(holders) + 1);
            return Ok(number);
        }
        let number = self.number(recent)?;
        self.map.put(&key, &[number, 0, 0, 0]).expect("there is room for as many names");
        self.words.set(Self::at(number, HOLDERS), 1);
        self.write(number, text);
        Ok(number)
    }

    /// Returns a number that has no name.
    fn number(&self, recent: impl FnOnce(&mut dyn FnMut(u64))) -> Result<u64, MapFull> {
        let highest = self.words.get(HIGHEST);
        let is_sweep_due =
            highest >= self.words.get(SWEEP_ABOVE).max(FEW) || size(highest) == self.most();
        if self.words.get(SPARE) == 0 && is_sweep_due {
            let freed = self.sweep(recent);
            // The next sweep happens only after at least as many new names as this sweep has left.
            self.words.set(SWEEP_ABOVE, 2 * (highest - freed));
        }
        let spare = self.words.get(SPARE);
        if spare != 0 {
            self.words.set(SPARE, self.words.get(Self::at(spare, AFTER)));
            return Ok(spare);
        }
        if size(highest) == self.most() {
            return Err(MapFull);
        }
        self.words.set(HIGHEST, highest + 1);
        Ok(highest + 1)
    }

    /// Frees the numbers of all names without holders that are not recent. Returns how many it
    /// freed.
    fn sweep(&self, recent: impl FnOnce(&mut dyn FnMut(u64))) -> u64 {
        let mut is_recent = vec![false; self.most() + 1];
        recent(&mut |number| {
            if let Some(is_recent) = is_recent.get_mut(size(number)) {
                *is_recent = true;
            }
        });
        let names: Vec<(Key, u64)> =
            self.map.of_kind(super::keys::NAME).map(|(key, [number, ..])| (key, number)).collect();
        let mut freed = 0;
        for (key, number) in names {
            if self.words.get(Self::at(number, HOLDERS)) == 0 && !is_recent[size(number)] {
                self.map.remove(&key);
                self.free(number);
                freed += 1;
            }
        }
        freed
    }

    fn free(&self, number: u64) {
        self.words.set(Self::at(number, HOLDERS), UNNAMED);
        self.words.set(Self::at(number, AFTER), self.words.get(SPARE));
        self.words.set(SPARE, number);
    }

    pub(super) fn release(&self, number: u64) {
        let holders = Self::at(number, HOLDERS);
        let before = self.words.get(holders);
        assert!(
            before != 0 && before != UNNAMED,
            "a process releases a number that it does not hold"
        );
        self.words.set(holders, before - 1);
    }

    fn write(&self, number: u64, text: &str) {
        let kept = &text.as_bytes()[..text.len().min(KEPT)];
        self.words.set_size(Self::at(number, BYTES), text.len());
        for (index, bytes) in kept.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.words.set(Self::at(number, TEXT + index), u64::from_le_bytes(word));
        }
    }

    /// Returns the name with a number, truncated if it is long. `None` if the number has no name.
    pub(super) fn text(&self, number: u64) -> Option<String> {
        let has_name = (1..=self.words.get(HIGHEST)).contains(&number)
            && self.words.get(Self::at(number, HOLDERS)) != UNNAMED;
        if !has_name {
            return None;
        }
        let bytes = self.words.size(Self::at(number, BYTES));
        let words = (0..KEPT / 8).map(|index| self.words.get(Self::at(number, TEXT + index)));
        let kept: Vec<u8> = words.flat_map(u64::to_le_bytes).take(bytes).collect();
        let text = String::from_utf8_lossy(&kept);
        if bytes <= KEPT {
            return Some(text.into_owned());
        }
        Some(format!("{}...", text.trim_end_matches(char::REPLACEMENT_CHARACTER)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::locked_words::tests::zeros;

    const NOT_RECENT: fn(&mut dyn FnMut(u64)) = |_| ();

    #[test]
    fn name_keeps_its_number_until_it_is_reused() {
        let (table, words) = (zeros(Map::words(12)), zeros(Names::words(3)));
        let map = Map::new(LockedWords(&table));
        let names = Names::new(LockedWords(&words), &map);
        let hold = |text: &str| names.hold(text, NOT_RECENT);
        assert_eq!(["a", "b", "a", "c"].map(hold), [Ok(1), Ok(2), Ok(1), Ok(3)]);
        assert_eq!(hold("d"), Err(MapFull));
        names.release(1);
        assert_eq!(hold("d"), Err(MapFull), "it is still held");
        names.release(1);
        assert_eq!(names.text(1).as_deref(), Some("a"));
        assert_eq!(names.hold("d", |recent| recent(1)), Err(MapFull), "it was called just now");
        assert_eq!((hold("a"), hold("e")), (Ok(1), Err(MapFull)), "the same again");
        names.release(1);
        assert_eq!(hold("d"), Ok(1));
        assert_eq!(names.text(1).as_deref(), Some("d"));
        assert_eq!([0, 4, u64::MAX].map(|number| names.text(number)), [None, None, None]);
        names.release(2);
        names.release(3);
        assert_eq!(
            [hold("x"), hold("y"), hold("z")].map(|number| number.is_ok()),
            [true, true, false]
        );
    }

    #[test]
    fn long_names_differ_by_end_and_print_truncated() {
        let (table, words) = (zeros(Map::words(12)), zeros(Names::words(3)));
        let map = Map::new(LockedWords(&table));
        let names = Names::new(LockedWords(&words), &map);
        let text = "ä".repeat(KEPT) + "x";
        let [one, other] = [0, 1].map(|odd| names.hold(&text[2 * odd..], NOT_RECENT));
        assert_eq!((one, other), (Ok(1), Ok(2)));
        let shown = names.text(1).expect("a name");
        assert_eq!(shown, "ä".repeat(KEPT / 2) + "...");
        assert_eq!(names.hold("short", NOT_RECENT), Ok(3));
        assert_eq!(names.text(3).as_deref(), Some("short"));
    }
}
