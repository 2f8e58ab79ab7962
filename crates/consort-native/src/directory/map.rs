//! A hash table in flat memory: keys of three words, values of four.
//!
//! Entries with the same hash are chained (Knuth, volume 3, section 6.4, algorithm C, with separate
//! lists). An entry is a cache line. Removed entries are reused first, so the table never touches
//! more memory than its entries have needed at one time. No key begins with 0.

use super::locked_words::LockedWords;

pub(super) type Key = [u64; 3];
pub(super) type Value = [u64; 4];

/// The number of words in an entry: key, value, and the number of the next entry of its chain.
const ENTRY: usize = 8;
const KEY: usize = 0;
const VALUE: usize = 3;
const NEXT: usize = 7;

/// The number of words before all others: the first spare entry, and the highest entry ever used.
const HEAD: usize = 8;
const SPARE: usize = 0;
const HIGHEST: usize = 1;

/// The number of chains, a power of two.
const CHAINS: usize = 1 << 15;

/// The entry number that means no entry.
const NONE: usize = 0;

/// The table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapFull;

pub(super) struct Map<'d> {
    words: LockedWords<'d>,
}

impl<'d> Map<'d> {
    /// Returns the number of words for a table of `entries`.
    pub(super) const fn words(entries: usize) -> usize {
        HEAD + CHAINS + entries * ENTRY
    }

    /// Returns the table in these words. All zeros are an empty table.
    pub(super) fn new(words: LockedWords<'d>) -> Self {
        Self { words }
    }

    /// Returns the capacity, in entries.
    pub(super) fn most(&self) -> usize {
        (self.words.len() - HEAD - CHAINS) / ENTRY
    }

    /// Returns the index of a word of an entry. Entries are numbered from 1.
    fn at(entry: usize, word: usize) -> usize {
        HEAD + CHAINS + (entry - 1) * ENTRY + word
    }

    /// Returns the index of the word that holds the first entry of a key's chain.
    fn chain(key: &Key) -> usize {
        let mix = |hash: u64, &word: &u64| {
            let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ (hash >> 29)
        };
        HEAD + super::locked_words::size(key.iter().fold(0, mix) % CHAINS as u64)
    }

    /// Returns the index of the word that holds the number of a key's entry. It holds `NONE` if
    /// there is no entry.
    fn link(&self, key: &Key) -> usize {
        let mut link = Self::chain(key);
        loop {
            let entry = self.words.size(link);
            if entry == NONE || self.key(entry) == *key {
                return link;
            }
            link = Self::at(entry, NEXT);
        }
    }

    fn key(&self, entry: usize) -> Key {
        self.words.array(Self::at(entry, KEY))
    }

    fn value(&self, entry: usize) -> Value {
        self.words.array(Self::at(entry, VALUE))
    }

    pub(super) fn get(&self, key: &Key) -> Option<Value> {
        let entry = self.words.size(self.link(key));
        (entry != NONE).then(|| self.value(entry))
    }

    /// Inserts an entry, or replaces its value.
    ///
    /// # Errors
    /// When the table is full.
    pub(super) fn put(&self, key: &Key, value: &Value) -> Result<(), MapFull> {
        assert!(key[0] != 0, "a key must not begin with 0");
        let link = self.link(key);
        let mut entry = self.words.size(link);
        if entry == NONE {
            entry = self.spare().ok_or(MapFull)?;
            self.words.set_array(Self::at(entry, KEY), key);
            self.words.set_size(Self::at(entry, NEXT), NONE);
            self.words.set_size(link, entry);
        }
        self.words.set_array(Self::at(entry, VALUE), value);
        Ok(())
    }

    fn spare(&self) -> Option<usize> {
        let (spare, highest) = (self.words.size(SPARE), self.words.size(HIGHEST));
        if spare != NONE {
            self.words.set(SPARE, self.words.get(Self::at(spare, NEXT)));
            return Some(spare);
        }
        (highest < self.most()).then(|| {
            self.words.set_size(HIGHEST, highest + 1);
            highest + 1
        })
    }

    pub(super) fn remove(&self, key: &Key) {
        let link = self.link(key);
        let entry = self.words.size(link);
        if entry != NONE {
            self.words.set(link, self.words.get(Self::at(entry, NEXT)));
            self.words.set(Self::at(entry, KEY), 0);
            self.words.set(Self::at(entry, NEXT), self.words.get(SPARE));
            self.words.set_size(SPARE, entry);
        }
    }

    /// Returns all entries whose keys begin with `kind`.
    pub(super) fn of_kind(&self, kind: u64) -> impl Iterator<Item = (Key, Value)> {
        (1..=self.words.size(HIGHEST))
            .map(|entry| (self.key(entry), self.value(entry)))
            .filter(move |(key, _)| key[0] == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::locked_words::tests::zeros;
    use proptest::{collection::vec, prelude::*};
    use std::collections::BTreeMap;

    /// Returns two keys in one chain.
    fn neighbours() -> [Key; 2] {
        let first = [1, 1, 7];
        let other =
            (2..).map(|word| [1, word, 7]).find(|key| Map::chain(key) == Map::chain(&first));
        [first, other.expect("chains are fewer than keys")]
    }

    proptest! {
        #[test]
        fn map_matches_a_btree_map(steps in vec((0_u64..20, 0_u64..3), 0..200)) {
            let words = zeros(Map::words(12));
            let map = Map::new(LockedWords(&words));
            let [one, other] = neighbours();
            let key = |word: u64| match word {
                0 => one,
                1 => other,
                _ => [1 + word % 2, word << 32, word],
            };
            let mut expected = BTreeMap::new();
            for (number, (word, what)) in (0..).zip(steps) {
                if what == 0 {
                    map.remove(&key(word));
                    expected.remove(&key(word));
                } else {
                    let value = [number, 1, 2, word];
                    let full = !expected.contains_key(&key(word)) && expected.len() == 12;
                    let put = map.put(&key(word), &value);
                    prop_assert_eq!(put, if full { Err(MapFull) } else { Ok(()) });
                    if !full {
                        expected.insert(key(word), value);
                    }
                }
                for word in 0..20 {
                    prop_assert_eq!(map.get(&key(word)), expected.get(&key(word)).copied());
                }
            }
            let mut all: Vec<_> = [1, 2].iter().flat_map(|&kind| map.of_kind(kind)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
