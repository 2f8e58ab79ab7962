//! A line carries two messages in turn, the second sent when the first is acknowledged, or those of
//! two successive calls, side by side.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_native::line::{Line, PAYLOAD_WORDS};

use crate::until;

fn payload(message: u64) -> [u64; 2] {
    [10 * message, 10 * message + 1]
}

/// Sends two messages through one line; `publish` stores the sequence word.
fn two_messages(publish: fn(&Line, u64), awaits_acknowledgement: bool) {
    loom::model(move || {
        let lines = Arc::new([Line::default(), Line::default()]);
        let of_sender = Arc::clone(&lines);
        let sender = loom::thread::spawn(move || {
            let [data, taken] = &*of_sender;
            for message in [1, 2] {
                if awaits_acknowledgement {
                    until(|| taken.word() == message - 1);
                }
                for (index, word) in payload(message).into_iter().enumerate() {
                    data.write(index, word);
                }
                publish(data, message);
            }
        });
        let [data, taken] = &*lines;
        for message in [1, 2] {
            until(|| data.word() >= message);
            assert_eq!([data.read(0), data.read(1)], payload(message), "another payload");
            assert_eq!(data.word(), message, "another message");
            taken.publish(message);
        }
        sender.join().expect("it ends well");
    });
}

#[test]
fn payload_matches_its_sequence_word() {
    two_messages(Line::publish, true);
}

#[test]
#[should_panic(expected = "another payload")]
fn a_relaxed_sequence_word_shows_a_stale_payload() {
    two_messages(|line, word| line.counter(PAYLOAD_WORDS).store(word, Relaxed), true);
}

#[test]
#[should_panic(expected = "another")]
fn without_acknowledgement_a_message_is_overwritten() {
    two_messages(Line::publish, false);
}

/// Sends messages of two successive calls, each in a separate short slot: its payload, then its
/// sequence word.
fn two_slots_of_a_line(publish_at: fn(&Line, usize, u64)) {
    loom::model(move || {
        let line = Arc::new(Line::default());
        let of_sender = Arc::clone(&line);
        let sender = loom::thread::spawn(move || {
            for (slot, call) in [(0, 1), (2, 2)] {
                of_sender.write(slot, 10 * call);
                publish_at(&of_sender, slot + 1, call);
            }
        });
        for (slot, call) in [(0, 1), (2, 2)] {
            until(|| line.word_at(slot + 1) == call);
            assert_eq!(line.read(slot), 10 * call, "another payload");
        }
        sender.join().expect("it ends well");
    });
}

#[test]
fn messages_of_successive_calls_share_a_line() {
    two_slots_of_a_line(Line::publish_at);
}

#[test]
#[should_panic(expected = "another payload")]
fn a_relaxed_sequence_word_of_a_short_slot_shows_a_stale_payload() {
    two_slots_of_a_line(|line, index, word| line.counter(index).store(word, Relaxed));
}
