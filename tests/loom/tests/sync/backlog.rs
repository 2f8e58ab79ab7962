//! Detached operations: each is executed once and alone, in its thread's order, and none is left.

#![expect(unsafe_code, reason = "loom's cells return pointers")]

use std::sync::Arc;

use consort_sync::{
    delegation::{Backlog, Locked, Scheme, Service},
    locks::Ticket,
};
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// The number of operations that each thread detaches.
type Script = &'static [u64];

/// The state that all threads of a model share.
struct Model {
    shared: Arc<Shared>,
    scheme: Locked<Ticket>,
    backlog: Backlog,
    /// The operations that were executed.
    executed: UnsafeCell<Vec<(u64, u64)>>,
    /// Used by a thread before it detaches an operation, and by the thread that executes it. Loom
    /// panics when neither happens before the other.
    of_operations: Vec<Vec<UnsafeCell<()>>>,
}

impl Service<LoomMachine> for Model {
    async fn serve(&self, _: &LoomMachine, thread: u64, number: u64) -> u64 {
        let of_thread = usize::try_from(thread).expect("a thread");
        let number = usize::try_from(number).expect("a number");
        self.of_operations[of_thread][number].with_mut(|_| ());
        // SAFETY: loom panics when another thread uses the cell.
        self.executed.with_mut(|it| unsafe { &mut *it }.push((thread, number as u64)));
        0
    }
}

/// An operation that executes the detached ones.
struct Catches<'m>(&'m Model);

impl Service<LoomMachine> for Catches<'_> {
    async fn serve(&self, m: &LoomMachine, _: u64, _: u64) -> u64 {
        if !self.0.backlog.is_empty(m).await {
            self.0.backlog.execute(m, self.0).await;
        }
        0
    }
}

impl Model {
    fn new(script: Script, shared: Shared) -> Self {
        let cells = |&count: &u64| (0..count).map(|_| UnsafeCell::default()).collect();
        Self {
            shared: Arc::new(shared),
            scheme: Locked::with(Ticket::default()),
            backlog: Backlog::default(),
            executed: UnsafeCell::default(),
            of_operations: script.iter().map(cells).collect(),
        }
    }

    fn detach_all(&self, thread: usize) {
        let m = LoomMachine::new(thread, &self.shared);
        for (number, cell) in self.of_operations[thread].iter().enumerate() {
            cell.with_mut(|_| ());
            let before = block_on(self.backlog.push(&m, thread as u64, number as u64));
            if before == 0 {
                let Ok(_) = block_on(self.scheme.apply(&m, &(), &Catches(self), 0, 0));
            }
        }
    }
}

fn model(script: Script, change: Option<Change>, possible: &Changes) {
    let play = move |shared| {
        let model = Arc::new(Model::new(script, shared));
        let others: Vec<_> = (1..script.len())
            .map(|thread| {
                let model = Arc::clone(&model);
                loom::thread::spawn(move || model.detach_all(thread))
            })
            .collect();
        model.detach_all(0);
        others.into_iter().for_each(|other| other.join().expect("it ends well"));
        let model = Arc::into_inner(model).expect("the threads have ended");
        let executed = model.executed.into_inner();
        for (thread, &count) in (0..).zip(script) {
            let mine = executed.iter().filter(|(by, _)| *by == thread);
            assert!(mine.map(|(_, number)| *number).eq(0..count), "each once, in order");
        }
    };
    changes::explore(2, (script.len(), true), change, possible, play);
}

/// The change in `not_needed` affects only the limit on operations, which is in the thousands.
#[test]
fn detached_operations_are_executed_once() {
    let not_needed = ["Whole: m.store(&mine[BEFORE], before, Relaxed).await;"];
    changes::check::<Script>(&[&[2, 1], &[1, 1, 1]], model, &not_needed);
}
