//! Flow control: a window of four calls, each a quarter of it. A PE sends a message in each call
//! and may enter call `n` once its peer's credit says that it has left call `n - 4`.

use std::sync::Arc;

use consort_native::line::Line;

use crate::until;

const WINDOW: u64 = 4;

/// Enough calls to reuse one line of messages.
const CALLS: u64 = WINDOW + 1;

#[derive(Default)]
struct Window {
    messages: [Line; 4],
    /// Word 0: the number of quarters that the receiver has left.
    credits: Line,
}

impl Window {
    fn message(&self, call: u64) -> &Line {
        &self.messages[usize::try_from(call % WINDOW).expect("a small number")]
    }
}

/// The time at which the receiver gives its credit for a call.
#[derive(Clone, Copy)]
enum Given {
    Left,
    Entered,
}

fn calls_in_a_row(given: Given, awaits_credits: bool) {
    loom::model(move || {
        let window = Arc::new(Window::default());
        let of_sender = Arc::clone(&window);
        let sender = loom::thread::spawn(move || {
            for call in 0..CALLS {
                if awaits_credits && call >= WINDOW {
                    until(|| of_sender.credits.word_at(0) > call - WINDOW);
                }
                let line = of_sender.message(call);
                line.write(0, 100 + call);
                line.publish(1 + call);
            }
        });
        for call in 0..CALLS {
            let credit = || window.credits.publish_at(0, call + 1);
            if let Given::Entered = given {
                credit();
            }
            let line = window.message(call);
            until(|| line.word() > call);
            assert_eq!(line.read(0), 100 + call, "another call's message");
            if let Given::Left = given {
                credit();
            }
        }
        sender.join().expect("it ends well");
    });
}

#[test]
fn no_pe_is_a_window_ahead() {
    calls_in_a_row(Given::Left, true);
}

#[test]
#[should_panic(expected = "another call's message")]
fn without_credits_a_message_is_overwritten() {
    calls_in_a_row(Given::Left, false);
}

#[test]
#[should_panic(expected = "another call's message")]
fn early_credit_lets_a_message_be_overwritten() {
    calls_in_a_row(Given::Entered, true);
}
