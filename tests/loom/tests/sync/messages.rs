//! Messages over cache lines: each arrives once, whole, in its sender's order, and the receiver
//! sees what its sender did before. A mailbox has two lines here, so a third line reuses one.

use std::sync::Arc;

use consort_machine::{Machine, Queue, Thread};
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// The words of a message of one line, and of one of two lines.
const SHORT: usize = 1;
const LONG: usize = 6;

/// The words of the messages of two senders. The receiver takes the first sender's messages first.
#[derive(Clone, Copy)]
struct Script {
    messages: [&'static [usize]; 2],
    preemptions: usize,
}

/// Uses the cell: the sender before each message, and the receiver after it. Loom panics when
/// neither happens before the other.
fn use_cell(cell: &UnsafeCell<()>) {
    cell.with_mut(|_| ());
}

/// The state that all threads of a model share. Thread 2 receives.
struct Model {
    shared: Arc<Shared>,
    /// One for each message.
    cells: [Vec<UnsafeCell<()>>; 2],
}

impl Model {
    fn new(script: Script, shared: Shared) -> Self {
        let cells = script.messages.map(|all| all.iter().map(|_| UnsafeCell::default()).collect());
        Self { shared: Arc::new(shared), cells }
    }

    fn send(&self, sender: usize, messages: &[usize]) {
        let m = LoomMachine::new(sender, &self.shared);
        for (number, &words) in messages.iter().enumerate() {
            use_cell(&self.cells[sender][number]);
            let message = vec![number as u64 + 1; words];
            let Ok(()) = block_on(m.send(Thread(2), Queue(sender as u64), &message));
        }
    }

    fn receive<const WORDS: usize>(&self, m: &LoomMachine, sender: usize, number: usize) {
        let Ok(message) = block_on(m.receive::<WORDS>(Queue(sender as u64)));
        assert_eq!(message, [number as u64 + 1; WORDS]);
        use_cell(&self.cells[sender][number]);
    }

    fn receive_all(&self, messages: [&[usize]; 2]) {
        let m = LoomMachine::new(2, &self.shared);
        for (sender, messages) in messages.into_iter().enumerate() {
            for (number, &words) in messages.iter().enumerate() {
                if words == SHORT {
                    self.receive::<SHORT>(&m, sender, number);
                } else {
                    self.receive::<LONG>(&m, sender, number);
                }
            }
            assert!(block_on(m.is_empty(Queue(sender as u64))));
        }
    }
}

fn two_senders(script: Script, change: Option<Change>, possible: &Changes) {
    let possible = Arc::clone(possible);
    let builder = changes::explorer(script.preemptions, change);
    builder.check(move || {
        let shared = Shared::of_messages(3, change, &possible);
        let model = Arc::new(Model::new(script, shared));
        let [of_receiver, of_other] = [Arc::clone(&model), Arc::clone(&model)];
        let receiver = loom::thread::spawn(move || of_receiver.receive_all(script.messages));
        let other = loom::thread::spawn(move || of_other.send(1, script.messages[1]));
        model.send(0, script.messages[0]);
        receiver.join().expect("it ends well");
        other.join().expect("it ends well");
    });
}

/// A thread sends two requests to another one. Both write to the cell in turn.
fn asks(questions: u64, change: Option<Change>, possible: &Changes) {
    let possible = Arc::clone(possible);
    loom::model(move || {
        let shared = Arc::new(Shared::of_messages(2, change, &possible));
        let (cell, of_server) = (Arc::new(UnsafeCell::new(())), Arc::clone(&shared));
        let cell_of_server = Arc::clone(&cell);
        let server = loom::thread::spawn(move || {
            let m = LoomMachine::new(1, &of_server);
            for _ in 0..questions {
                let Ok([client, question]) = block_on(m.receive(Queue(0)));
                use_cell(&cell_of_server);
                let client = Thread(u32::try_from(client).expect("a thread"));
                block_on(m.answer(client, question + 10));
            }
        });
        let m = LoomMachine::new(0, &shared);
        for question in 0..questions {
            use_cell(&cell);
            let Ok(()) = block_on(m.send(Thread(1), Queue(0), &[0, question]));
            let Ok(answer) = block_on(m.receive_answer());
            assert_eq!(answer, question + 10);
            use_cell(&cell);
        }
        server.join().expect("it ends well");
    });
}

const fn script(first: &'static [usize], second: &'static [usize]) -> Script {
    Script { messages: [first, second], preemptions: 2 }
}

/// The wait for room ends by itself, and the wake only makes that sooner.
#[test]
fn messages_arrive_once_and_whole() {
    let scripts = [
        script(&[SHORT, SHORT], &[SHORT]),
        script(&[LONG], &[SHORT]),
        script(&[SHORT, LONG], &[]),
        script(&[LONG, LONG], &[]),
    ];
    changes::check(&scripts, two_senders, &["Whole: m.wake(&line[STATE]);"]);
}

/// No line is reused.
#[test]
fn answers_arrive_once() {
    let emptied =
        "m.store(&line[STATE], free + 2, Release).await; // pairs with the acquire in `send`";
    let not_needed = [
        "Acquire: while m.load(&line[STATE], Acquire).await != free {",
        &format!("Release: {emptied}"),
        &format!("Whole: {emptied}"),
        "Whole: m.wake(&line[STATE]);",
    ];
    changes::check(&[2], asks, &not_needed);
}
