//! Cache lines: which words are on a line, which cores have copies, and which value of a word other
//! threads see.
//!
//! A line is identified by its address. Lines are numbered when they are first touched, and nothing
//! depends on the addresses themselves. So runs are the same with memory at any address. Only the
//! lines of a *region*, an array that the program has announced, have neighbours.
//!
//! A word's value is in the program's memory from the moment of the store. While the store is in
//! the store buffer, the line keeps the value that others see.

use std::{
    cell::{RefCell, RefMut},
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    sync::atomic::Ordering::Relaxed,
};

use consort_machine::Word;

use crate::engine::Time;

/// Bytes in a line.
const LINE_BYTES: usize = 64;

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cores([u64; 4]);

impl Cores {
    /// The largest number of cores of a machine.
    pub(super) const MOST: u32 = 256;

    pub(super) const fn only(core: u32) -> Self {
        let mut set = [0; 4];
        set[core as usize / 64] = 1 << (core % 64);
        Self(set)
    }

    pub(super) const fn has(&self, core: u32) -> bool {
        self.0[core as usize / 64] >> (core % 64) & 1 == 1
    }

    pub(super) const fn insert(&mut self, core: u32) {
        self.0[core as usize / 64] |= 1 << (core % 64);
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn each(self) -> impl Iterator<Item = u32> {
        (0..).zip(self.0).flat_map(|(part, bits)| {
            let mut left: u64 = bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(part * 64 + bit)
            })
        })
    }
}

/// A word with stores that only their threads see.
#[derive(Debug)]
struct Late {
    place: u8,
    /// The value that others see.
    seen: u64,
    /// The stores, in the order in which they were issued: the thread and the value.
    stores: VecDeque<(u32, u64)>,
    /// The value in memory, from the last store that was issued.
    last: u64,
}

/// A line.
#[derive(Debug, Default)]
pub(super) struct LineState {
    /// The cores that have a copy.
    pub(super) holders: Cores,
    /// The core that has the only copy and may write it. Nobody owns a line whose home executes the
    /// writes.
    pub(super) owner: Option<u32>,
    /// Whether a cache has it, including the cache of its home.
    pub(super) cached: bool,
    /// The core nearest to its home.
    pub(super) home: u32,
    /// The time when the operation that occupies it ends.
    pub(super) free: Time,
    /// The transactions that wait for that operation.
    pub(super) queue: VecDeque<u32>,
    /// The threads that sleep until their copy is invalid.
    pub(super) spinners: Vec<u32>,
    /// The number of threads that spin on it.
    pub(super) spinning: u32,
    /// Its place in its region, and the number of lines in the region.
    pub(super) place: Option<(u32, u32)>,
    late: Vec<Late>,
}

impl LineState {
    /// Returns the value of a word as a thread sees it.
    pub(super) fn value(&mut self, place: u8, word: &Word, thread: u32) -> u64 {
        let Some(index) = self.late.iter().position(|late| late.place == place) else {
            return word.atomic().load(Relaxed);
        };
        if let Some(value) = self.own_store(place, thread) {
            return value;
        }
        let late = &self.late[index];
        let seen = late.seen;
        if late.stores.is_empty() {
            word.atomic().store(seen, Relaxed);
            self.late.swap_remove(index);
        }
        seen
    }

    /// Returns the value of a thread's own store to a word, if others do not see it yet.
    pub(super) fn own_store(&self, place: u8, thread: u32) -> Option<u64> {
        let late = self.late.iter().find(|late| late.place == place)?;
        late.stores.iter().rfind(|(by, _)| *by == thread).map(|(_, value)| *value)
    }

    /// Writes a word so that all threads see it at once.
    pub(super) fn set(&mut self, place: u8, word: &Word, value: u64) {
        match self.late.iter().position(|late| late.place == place) {
            Some(index) if self.late[index].stores.is_empty() => {
                self.late.swap_remove(index);
                word.atomic().store(value, Relaxed);
            }
            Some(index) => self.late[index].seen = value,
            None => word.atomic().store(value, Relaxed),
        }
    }

    /// Writes a word. Only this thread sees it until [`LineState::publish`].
    pub(super) fn issue(&mut self, place: u8, word: &Word, value: u64, thread: u32) {
        let index = self.late.iter().position(|late| late.place == place).unwrap_or_else(|| {
            let seen = word.atomic().load(Relaxed);
            self.late.push(Late { place, seen, stores: VecDeque::new(), last: value });
            self.late.len() - 1
        });
        self.late[index].stores.push_back((thread, value));
        self.late[index].last = value;
        word.atomic().store(value, Relaxed);
    }

    /// Makes the first store of this thread to a word visible to all threads.
    pub(super) fn publish(&mut self, place: u8, thread: u32) {
        let Some(index) = self.late.iter().position(|late| late.place == place) else { return };
        let late = &mut self.late[index];
        let Some(first) = late.stores.iter().position(|(by, _)| *by == thread) else { return };
        if let Some((_, value)) = late.stores.remove(first) {
            late.seen = value;
        }
        // If the values differ, stores of two threads became visible in another order than they
        // were issued. The next access to the word corrects the memory.
        if late.stores.is_empty() && late.seen == late.last {
            self.late.swap_remove(index);
        }
    }
}

/// Hashes an address by multiplying its bits (Knuth 1973, section 6.4).
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0.rotate_left(5) ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// The lines of a simulation.
#[derive(Default)]
pub(super) struct Lines {
    numbers: RefCell<HashMap<usize, u32, BuildHasherDefault<AddressHasher>>>,
    states: RefCell<Vec<LineState>>,
    /// The number of cores at which lines are at home, in turn. It is 0 for machines whose lines
    /// are at home where they are first touched.
    homes: u32,
}

impl Lines {
    /// Creates lines whose homes are spread over this many tiles. With 0, their home is where they
    /// are first touched.
    pub(super) fn new(homes: u32) -> Self {
        Self { homes, ..Self::default() }
    }

    /// Returns the number of a word's line, and the word's place on it. The home of a new line is
    /// `core` unless homes are spread.
    pub(super) fn find(&self, word: &Word, core: u32) -> (u32, u8) {
        let address = std::ptr::from_ref(word).addr();
        let place = address % LINE_BYTES / size_of::<Word>();
        let line = self.number(address / LINE_BYTES, core);
        (line, u8::try_from(place).unwrap_or(0))
    }

    fn number(&self, at: usize, core: u32) -> u32 {
        *self.numbers.borrow_mut().entry(at).or_insert_with(|| {
            let mut states = self.states.borrow_mut();
            let number = u32::try_from(states.len()).expect("a simulation has few lines");
            // Lines with neighbouring numbers are far apart, as if hashed.
            let spread = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let spread = u32::try_from(spread).unwrap_or(0);
            let home = if self.homes == 0 { core } else { spread % self.homes };
            states.push(LineState { home, ..LineState::default() });
            number
        })
    }

    /// Announces consecutive lines. Their home is `core` unless homes are spread.
    pub(super) fn add_region(&self, lines: &[consort_machine::Line], core: u32) {
        let count = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        for (place, line) in (0..count).zip(lines) {
            let number = self.number(std::ptr::from_ref(line).addr() / LINE_BYTES, core);
            let mut state = self.at(number);
            assert!(state.place.is_none(), "a line is in one region");
            state.place = Some((place, count));
        }
    }

    /// Returns the state of a line.
    pub(super) fn at(&self, number: u32) -> RefMut<'_, LineState> {
        RefMut::map(self.states.borrow_mut(), |states| &mut states[number as usize])
    }

    /// Returns the number of the line `by` places further in the region, if it is on the same page
    /// of `page_lines` lines.
    pub(super) fn neighbour(&self, number: u32, by: i64, page_lines: u32) -> Option<u32> {
        let (place, count) = self.at(number).place?;
        let to = u32::try_from(i64::from(place) + by).ok()?;
        let near = to < count && to / page_lines == place / page_lines;
        near.then(|| u32::try_from(i64::from(number) + by).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use consort_machine::Line;

    use super::*;

    #[test]
    fn store_is_late_only_for_others() {
        let (word, mut line) = (Word::new(1), LineState::default());
        line.issue(0, &word, 2, 7);
        assert_eq!([7, 8].map(|thread| line.value(0, &word, thread)), [2, 1]);
        line.publish(0, 7);
        assert_eq!(line.value(0, &word, 8), 2);
        assert!(line.late.is_empty());
    }

    #[test]
    fn last_store_to_become_visible_stays() {
        let (word, mut line) = (Word::new(1), LineState::default());
        line.issue(0, &word, 2, 7);
        line.issue(0, &word, 3, 8);
        line.publish(0, 8);
        assert_eq!([7, 8, 9].map(|thread| line.value(0, &word, thread)), [2, 3, 3]);
        line.publish(0, 7);
        assert_eq!([7, 8, 9].map(|thread| line.value(0, &word, thread)), [2, 2, 2]);
        assert_eq!(word.atomic().load(Relaxed), 2);
    }

    #[test]
    fn atomic_operation_is_seen_until_an_earlier_store_is() {
        let (word, mut line) = (Word::new(1), LineState::default());
        line.issue(0, &word, 2, 7);
        line.set(0, &word, 9);
        assert_eq!([7, 8].map(|thread| line.value(0, &word, thread)), [2, 9]);
        line.publish(0, 7);
        assert_eq!(line.value(0, &word, 8), 2);
    }

    #[test]
    fn only_lines_of_a_region_have_neighbours_on_their_page() {
        let (lines, slots) = (Lines::new(0), [const { Line::new() }; 6]);
        let (alone, _) = lines.find(&Word::new(0), 3);
        assert_eq!(lines.neighbour(alone, 1, 4), None);
        lines.add_region(&slots, 1);
        let (third, place) = lines.find(&slots[2][5], 2);
        assert_eq!((place, lines.at(third).home), (5, 1));
        let neighbours = [1, 2, -2, -3].map(|by| lines.neighbour(third, by, 4));
        assert_eq!(neighbours, [Some(third + 1), None, Some(third - 2), None]);
    }

    #[test]
    fn set_of_cores_lists_its_members_in_order() {
        let mut cores = Cores::only(70);
        cores.insert(3);
        assert_eq!(cores.each().collect::<Vec<_>>(), [3, 70]);
        assert!(cores.has(70) && !cores.has(6) && !cores.is_empty());
    }
}
