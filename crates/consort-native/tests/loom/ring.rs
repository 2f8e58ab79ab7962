//! A thread's incoming messages: two senders and a receiver, on a ring of two lines. Three lines
//! come, so one is used again.
//!
//! Loom runs loads in the order of the program, so no model can show that a line must be emptied
//! with release and be found free with acquire: that a receiver reads before others overwrite.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use consort_native::Ring;
use loom::thread::{self, Thread};

/// The last word of a full line in its first and in its second turn.
const FULL: [u64; 2] = [1, 3];
const LINES: u64 = 2;

/// What a sender or the receiver does otherwise than it should.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    PublishesRelaxed,
    PublishesInOrder,
    FindsFullRelaxed,
    WaitsForNoRoom,
    ForgetsToEmpty,
}
use Change::{
    FindsFullRelaxed, ForgetsToEmpty, Nothing, PublishesInOrder, PublishesRelaxed, WaitsForNoRoom,
};

fn state_if_full(line: u64) -> u64 {
    if line < LINES { FULL[0] } else { FULL[1] }
}

/// The ring, and what loom does not see of it: the newest state of each line, and who sleeps.
#[derive(Default)]
struct Model {
    ring: Ring,
    newest: [AtomicU64; 2],
    sleepers: Mutex<Vec<Thread>>,
}

impl Model {
    fn newest(&self, line: u64) -> &AtomicU64 {
        &self.newest[usize::from(!line.is_multiple_of(LINES))]
    }

    /// A line has a new state: wakes all sleepers.
    fn changed(&self, line: u64, state: u64) {
        self.newest(line).store(state, Relaxed);
        self.sleepers.lock().expect("no panic").drain(..).for_each(|thread| thread.unpark());
    }

    /// Waits until a line is seen in a state, and sleeps while it is not in it. Of two threads that
    /// yielded, loom would run one and the other for ever.
    fn until(&self, line: u64, state: u64, is_seen: impl Fn() -> bool) {
        while !is_seen() {
            if self.newest(line).load(Relaxed) == state {
                thread::yield_now(); // and load a newer state
            } else {
                self.sleepers.lock().expect("no panic").push(thread::current());
                thread::park();
            }
        }
    }

    /// Sends a message, each of whose lines is its value and the number of lines that follow.
    fn send(&self, value: u64, lines: u64, change: Change) {
        let ring = &self.ring;
        let first = ring.take(lines);
        for line in first..first + lines {
            if change != WaitsForNoRoom {
                self.until(line, state_if_full(line) - 1, || ring.is_free(line));
            }
            ring.fill(line, &[value, first + lines - line - 1]);
        }
        let publish = |line| {
            if change == PublishesRelaxed {
                ring.state(line).atomic().store(state_if_full(line), Relaxed);
            } else {
                ring.publish(line);
            }
            self.changed(line, state_if_full(line));
        };
        if change == PublishesInOrder {
            (first..first + lines).for_each(publish);
        } else {
            (first..first + lines).rev().for_each(publish);
        }
    }

    /// Takes the next message, whose first line has this number. Returns its value and lines.
    fn receive(&self, first: u64, change: Change) -> (u64, u64) {
        let (ring, full) = (&self.ring, state_if_full(first));
        self.until(first, full, || {
            if change == FindsFullRelaxed {
                ring.state(first).atomic().load(Relaxed) == full
            } else {
                ring.is_full(first)
            }
        });
        let [value, more, ..] = ring.read(first);
        for line in first + 1..=first + more {
            let [of_line, rest, ..] = ring.read(line);
            assert_eq!((of_line, rest), (value, first + more - line), "another payload");
        }
        if change != ForgetsToEmpty {
            for line in first..=first + more {
                ring.empty(line);
                self.changed(line, state_if_full(line) + 1);
            }
        }
        (value, more + 1)
    }

    /// Takes messages of two senders, and as many lines as they have sent.
    fn receive_all(&self, lines: [&[u64]; 2], change: Change) {
        let (mut next, mut taken) = (0, [0, 0]);
        while next < lines.concat().iter().sum() {
            let (value, of_message) = self.receive(next, change);
            let sender = usize::from(value >= 20);
            let number = value.checked_sub(10 * (sender as u64 + 1)).expect("another payload");
            assert_eq!(number, taken[sender], "another message");
            let expected = lines[sender].get(usize::try_from(number).expect("a number"));
            assert_eq!(Some(&of_message), expected, "another payload");
            taken[sender] += 1;
            next += of_message;
        }
        assert!(!self.ring.is_full(next));
    }
}

/// Each of two senders sends messages of these lines.
fn two_senders(lines: [&'static [u64]; 2], change: Change) {
    loom::model(move || {
        let model = Arc::new(Model::default());
        let of_receiver = Arc::clone(&model);
        let receiver = thread::spawn(move || of_receiver.receive_all(lines, change));
        let send = move |model: &Model, sender: usize| {
            for (number, &lines) in lines[sender].iter().enumerate() {
                model.send(10 * (sender as u64 + 1) + number as u64, lines, change);
            }
        };
        let of_other = Arc::clone(&model);
        let other = thread::spawn(move || send(&of_other, 1));
        send(&model, 0);
        receiver.join().expect("it ends well");
        other.join().expect("it ends well");
    });
}

#[test]
fn messages_of_two_senders_arrive_once_and_whole() {
    two_senders([&[1, 1], &[1]], Nothing);
    two_senders([&[2], &[1]], Nothing);
    two_senders([&[1, 2], &[]], Nothing);
    two_senders([&[2, 2], &[]], Nothing);
}

#[test]
#[should_panic(expected = "another payload")]
fn a_relaxed_state_shows_a_stale_payload() {
    two_senders([&[1], &[1]], PublishesRelaxed);
}

#[test]
#[should_panic(expected = "another payload")]
fn a_state_that_is_read_relaxed_shows_a_stale_payload() {
    two_senders([&[1], &[1]], FindsFullRelaxed);
}

/// The receiver empties the second line before the sender says that it is full. The sender then
/// waits for ever, and the model does not end.
#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn a_first_line_before_the_others_leaves_a_line_full() {
    two_senders([&[2, 2], &[]], PublishesInOrder);
}

#[test]
#[should_panic(expected = "another")]
fn without_room_a_message_is_overwritten() {
    two_senders([&[1, 1], &[1]], WaitsForNoRoom);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_line_that_is_not_emptied_is_not_used_again() {
    two_senders([&[1, 1], &[1]], ForgetsToEmpty);
}
