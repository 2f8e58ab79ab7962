//! Two PEs exchange values in a pair's line, call by call: each PE has two slots there, which it
//! uses in turn.

use std::sync::Arc;

use consort_native::line::Line;

use crate::until;

const CALLS: u64 = 3;

fn value(pe: usize, call: u64) -> u64 {
    10 * call + pe as u64
}

/// Calls of one PE, whose slots follow those of the other. It has as many of them as `turns`.
fn calls(line: &Line, pe: usize, turns: u64, publish_at: fn(&Line, usize, u64)) {
    for call in 1..=CALLS {
        let turn = usize::try_from(call % turns).expect("a small number");
        let [mine, others] = [pe, 1 - pe].map(|pe| 4 * pe + 2 * turn);
        line.write(mine, value(pe, call));
        publish_at(line, mine + 1, call);
        until(|| line.word_at(others + 1) >= call);
        assert_eq!(line.word_at(others + 1), call, "another call");
        assert_eq!(line.read(others), value(1 - pe, call), "another value");
    }
}

fn both_make_calls(turns: u64, publish_at: fn(&Line, usize, u64)) {
    loom::model(move || {
        let line = Arc::new(Line::default());
        let of_other = Arc::clone(&line);
        let other = loom::thread::spawn(move || calls(&of_other, 1, turns, publish_at));
        calls(&line, 0, turns, publish_at);
        other.join().expect("it ends well");
    });
}

#[test]
fn each_gets_the_others_value_of_the_same_call() {
    both_make_calls(2, Line::publish_at);
}

#[test]
#[should_panic(expected = "another")]
fn with_one_slot_a_pe_that_is_ahead_overwrites_it() {
    both_make_calls(1, Line::publish_at);
}

#[test]
#[should_panic(expected = "another value")]
fn a_relaxed_sequence_word_shows_a_stale_value() {
    use std::sync::atomic::Ordering::Relaxed;
    both_make_calls(2, |line, index, word| line.counter(index).store(word, Relaxed));
}
