//! Two givers and a listener, which acknowledges each message: the protocol of notifications.

use std::sync::Arc;

use consort_native::{doorbell::Doorbell, line::Line};

use crate::until;

const GIVERS: usize = 2;

#[derive(Default)]
struct Inbox {
    bell: Line,
    messages: [Line; GIVERS],
    acknowledgements: [Line; GIVERS],
}

/// The way in which a giver leaves its message.
#[derive(Clone, Copy)]
enum Given {
    Whole,
    WithoutRinging,
    NumberFirst,
}

fn give(inbox: &Inbox, giver: usize, number: u64, given: Given) {
    let (line, payload) = (&inbox.messages[giver], 10 * giver as u64 + number);
    match given {
        Given::Whole => Doorbell::give(&inbox.bell, line, &[payload], number),
        Given::WithoutRinging => {
            line.write(0, payload);
            line.publish(number);
        }
        Given::NumberFirst => {
            line.publish(number);
            line.write(0, payload);
            Doorbell::give(&inbox.bell, &Line::default(), &[], 0);
        }
    }
}

/// The first giver gives two messages, the second after the first was taken; the other gives one.
fn all_are_taken_once(given: Given) {
    loom::model(move || {
        let inbox = Arc::new(Inbox::default());
        let givers: Vec<_> = (0..GIVERS)
            .map(|giver| {
                let inbox = Arc::clone(&inbox);
                loom::thread::spawn(move || {
                    give(&inbox, giver, 1, given);
                    if giver == 0 {
                        until(|| inbox.acknowledgements[giver].word_at(0) == 1);
                        give(&inbox, giver, 2, given);
                    }
                })
            })
            .collect();
        let bell = Doorbell::new(GIVERS);
        let mut taken = [0; GIVERS];
        while taken != [2, 1] {
            let Some((giver, number)) = bell.take(&inbox.bell, |index| &inbox.messages[index])
            else {
                loom::thread::yield_now();
                continue;
            };
            assert_eq!(number, taken[giver] + 1, "each once, in order");
            assert_eq!(inbox.messages[giver].read(0), 10 * giver as u64 + number, "its own");
            taken[giver] = number;
            inbox.acknowledgements[giver].publish_at(0, number);
        }
        assert_eq!(bell.take(&inbox.bell, |index| &inbox.messages[index]), None);
        for giver in givers {
            giver.join().expect("it ends well");
        }
    });
}

#[test]
fn no_message_is_forgotten_or_taken_twice() {
    all_are_taken_once(Given::Whole);
}

#[test]
#[should_panic(expected = "its own")]
fn number_before_its_message_shows_another() {
    all_are_taken_once(Given::NumberFirst);
}

/// Nobody checks, and the model does not end.
#[test]
#[should_panic(expected = "exceeded maximum number of branches")]
fn a_message_without_a_ring_is_forgotten() {
    all_are_taken_once(Given::WithoutRinging);
}
