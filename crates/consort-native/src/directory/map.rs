//! A hash table of fixed size in flat memory: keys of three words, values of five.
//!
//! Open addressing with linear probing (Knuth, volume 3, section 6.4, algorithms L and R): an entry
//! lies at the first free place from its own on, and removing one moves back those behind it that
//! may. An entry is a cache line. No key begins with 0.

use super::cells::Cells;

/// What an entry is found by.
pub(super) type Key = [u64; 3];
/// What it holds.
pub(super) type Value = [u64; 5];

/// Words of an entry.
const ENTRY: usize = 8;
/// The word that counts entries, on a line before them.
const COUNT: usize = 0;

/// Nothing more fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

pub(super) struct Map<'d> {
    cells: Cells<'d>,
    places: usize,
}

impl<'d> Map<'d> {
    /// The words that a table of `places` needs, a power of two.
    pub(super) const fn words(places: usize) -> usize {
        (places + 1) * ENTRY
    }

    /// The table in these words.
    pub(super) fn new(cells: Cells<'d>) -> Self {
        let places = cells.len() / ENTRY - 1;
        assert!(places.is_power_of_two(), "places are found by a mask");
        Self { cells, places }
    }

    /// Where an entry would lie that no other is in the way of.
    fn home(&self, key: &Key) -> usize {
        let mix = |hash: u64, &word: &u64| {
            let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ (hash >> 29)
        };
        let hash = key.iter().fold(0, mix);
        super::cells::size(hash & (self.places as u64 - 1))
    }

    fn at(place: usize) -> usize {
        (place + 1) * ENTRY
    }

    fn key(&self, place: usize) -> Key {
        self.cells.array(Self::at(place))
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places - 1)
    }

    /// The place of an entry, or the free one where it would be put.
    fn find(&self, key: &Key) -> (usize, bool) {
        let mut place = self.home(key);
        loop {
            let found = self.key(place);
            if found == *key {
                return (place, true);
            }
            if found[0] == 0 {
                return (place, false);
            }
            place = self.next(place);
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Value> {
        let (place, is_there) = self.find(key);
        is_there.then(|| self.cells.array(Self::at(place) + key.len()))
    }

    /// Puts an entry in, or changes it.
    ///
    /// # Errors
    /// When there is no room for another. A quarter of the places stays free.
    pub(super) fn put(&self, key: &Key, value: &Value) -> Result<(), Full> {
        assert!(key[0] != 0, "a key that begins with 0 is none");
        let (place, is_there) = self.find(key);
        if !is_there {
            let count = self.cells.size(COUNT);
            if count >= self.places / 4 * 3 {
                return Err(Full);
            }
            self.cells.set_size(COUNT, count + 1);
        }
        self.cells.set_array(Self::at(place), key);
        self.cells.set_array(Self::at(place) + key.len(), value);
        Ok(())
    }

    /// Takes an entry out, if it is there.
    pub(super) fn remove(&self, key: &Key) {
        let (mut hole, is_there) = self.find(key);
        if !is_there {
            return;
        }
        self.cells.set_size(COUNT, self.cells.size(COUNT) - 1);
        let mut place = hole;
        loop {
            place = self.next(place);
            let moved = self.key(place);
            if moved[0] == 0 {
                break;
            }
            // An entry may move to the hole if it is found from its home on before its own place.
            let distance = |from: usize| place.wrapping_sub(from) & (self.places - 1);
            if distance(self.home(&moved)) >= distance(hole) {
                let entry: [u64; ENTRY] = self.cells.array(Self::at(place));
                self.cells.set_array(Self::at(hole), &entry);
                hole = place;
            }
        }
        self.cells.set_array(Self::at(hole), &[0; ENTRY]);
    }

    /// All entries whose key begins with this.
    pub(super) fn of_kind(&self, kind: u64) -> impl Iterator<Item = (Key, Value)> {
        (0..self.places).filter_map(move |place| {
            let key = self.key(place);
            (key[0] == kind).then(|| (key, self.cells.array(Self::at(place) + key.len())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::cells::tests::zeros;
    use proptest::{collection::vec, prelude::*};
    use std::collections::BTreeMap;

    proptest! {
        /// Of a small table, so that entries are in each other's way and go round its end.
        #[test]
        fn it_holds_what_a_map_holds(steps in vec((0_u64..20, 0_u64..3), 0..200)) {
            let words = zeros(Map::words(16));
            let map = Map::new(Cells(&words));
            let mut expected = BTreeMap::new();
            for (number, (word, what)) in (0..).zip(steps) {
                let key = [1 + word % 2, word, 7];
                if what == 0 {
                    map.remove(&key);
                    expected.remove(&key);
                } else {
                    let value = [number, 1, 2, 3, word];
                    let full = !expected.contains_key(&key) && expected.len() >= 12;
                    prop_assert_eq!(map.put(&key, &value), if full { Err(Full) } else { Ok(()) });
                    if !full {
                        expected.insert(key, value);
                    }
                }
                for word in 0..20 {
                    let key = [1 + word % 2, word, 7];
                    prop_assert_eq!(map.get(&key), expected.get(&key).copied());
                }
            }
            let mut all: Vec<_> = [1, 2].iter().flat_map(|&kind| map.of_kind(kind)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
