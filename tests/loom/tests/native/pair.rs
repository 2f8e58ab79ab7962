//! Two PEs exchange values in a pair's lines, call by call: each PE has two slots there, which it
//! uses alternately.

use std::sync::Arc;

use consort_native::line::Line;

use crate::until;

fn value(pe: usize, call: u64, word: usize) -> u64 {
    100 * call + 10 * pe as u64 + word as u64
}

/// The slots of a PE, and its use of them.
#[derive(Clone, Copy)]
struct Slots {
    /// The number of slots that are used in turn.
    turns: u64,
    /// Words of a value, before the sequence word. The slots of one-word values are all in one
    /// line; otherwise each turn has a line.
    words: usize,
    calls: u64,
    publish_at: fn(&Line, usize, u64),
}

const SHORT: Slots = Slots { turns: 2, words: 1, calls: 3, publish_at: Line::publish_at };
const WIDE: Slots = Slots { turns: 2, words: 3, calls: 3, publish_at: Line::publish_at };

impl Slots {
    /// Returns the line of a call, and the first words of this PE's slot and of the other's.
    fn at(self, pe: usize, call: u64) -> (usize, [usize; 2]) {
        let turn = usize::try_from(call % self.turns).expect("a small number");
        let (line, slot) = if self.words == 1 { (0, 2 * turn) } else { (turn, 0) };
        (line, [pe, 1 - pe].map(|pe| 4 * pe + slot))
    }

    /// Makes the calls of one PE.
    fn calls(self, lines: &[Line; 2], pe: usize) {
        for call in 1..=self.calls {
            let (line, [mine, others]) = self.at(pe, call);
            let line = &lines[line];
            for word in 0..self.words {
                line.write(mine + word, value(pe, call, word));
            }
            (self.publish_at)(line, mine + self.words, call);
            until(|| line.word_at(others + self.words) >= call);
            assert_eq!(line.word_at(others + self.words), call, "another call");
            for word in 0..self.words {
                assert_eq!(line.read(others + word), value(1 - pe, call, word), "another value");
            }
        }
    }

    fn both_make_calls(self) {
        loom::model(move || {
            let lines = Arc::new([Line::default(), Line::default()]);
            let of_other = Arc::clone(&lines);
            let other = loom::thread::spawn(move || self.calls(&of_other, 1));
            self.calls(&lines, 0);
            other.join().expect("it ends well");
        });
    }
}

#[test]
fn each_pe_gets_its_peers_value_of_the_call() {
    SHORT.both_make_calls();
}

#[test]
fn each_pe_gets_all_words_of_its_peer() {
    WIDE.both_make_calls();
}

#[test]
#[should_panic(expected = "another")]
fn pe_ahead_overwrites_a_single_slot() {
    Slots { turns: 1, ..SHORT }.both_make_calls();
}

#[test]
#[should_panic(expected = "another")]
fn pe_ahead_overwrites_a_single_wide_slot() {
    Slots { turns: 1, ..WIDE }.both_make_calls();
}

#[test]
#[should_panic(expected = "another value")]
fn a_relaxed_sequence_word_shows_a_stale_value() {
    use std::sync::atomic::Ordering::Relaxed;
    let publish_at = |line: &Line, index, word| line.counter(index).store(word, Relaxed);
    Slots { publish_at, ..SHORT }.both_make_calls();
}
