//! Lock-free stacks and queues: each value is taken once, in order, by a thread that sees
//! everything that happened before it was put.

use std::sync::Arc;

use consort_sync::{
    delegation::Locked,
    locks::Ticket,
    objects::{Container, Lcrq, Queue, Treiber},
};
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// A step of a thread.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Put,
    Take,
}
use Step::{Put, Take};

/// The steps of each thread, the number of values that the first one has put before the others
/// start, and loom's limit on preemptions.
#[derive(Clone, Copy)]
struct Script {
    threads: &'static [&'static [Step]],
    first: u64,
    preemptions: usize,
}

trait Modelled: Container + 'static {
    /// Whether exchanged words are also stored to.
    const STORES_EXCHANGE: bool;
    const IS_QUEUE: bool;

    fn new(m: &LoomMachine) -> Self;
}

impl Modelled for Treiber {
    const STORES_EXCHANGE: bool = false;
    const IS_QUEUE: bool = false;

    fn new(_: &LoomMachine) -> Self {
        Self::default()
    }
}

/// With rings of one cell.
impl Modelled for Lcrq {
    const STORES_EXCHANGE: bool = true;
    const IS_QUEUE: bool = true;

    fn new(_: &LoomMachine) -> Self {
        Self::packed(1)
    }
}

impl Modelled for Queue<Locked<Ticket>> {
    const STORES_EXCHANGE: bool = false;
    const IS_QUEUE: bool = true;

    fn new(m: &LoomMachine) -> Self {
        Self::with_two(m, Locked::with(Ticket::default()), Locked::with(Ticket::default()))
    }
}

/// A container, and the data that its values stand for.
struct Both<C> {
    container: C,
    values: Vec<UnsafeCell<()>>,
}

/// A thread of the script.
struct Caller<C: Container> {
    thread: u64,
    m: LoomMachine,
    local: C::Local,
    puts: u64,
    taken: Vec<u64>,
}

/// The number of values of a thread.
const EACH: u64 = 4;

impl<C: Modelled> Caller<C> {
    fn new(thread: usize, shared: &Arc<Shared>) -> Self {
        let m = LoomMachine::new(thread, shared);
        Self { thread: thread as u64, m, local: C::Local::default(), puts: 0, taken: Vec::new() }
    }

    fn put(&mut self, both: &Both<C>) {
        let value = self.thread * EACH + self.puts;
        self.puts += 1;
        both.values[usize::try_from(value).expect("few values")].with_mut(|_| ());
        let Ok(()) = block_on(both.container.put(&self.m, &self.local, value));
    }

    /// Returns whether there was a value.
    fn take(&mut self, both: &Both<C>) -> bool {
        let Ok(value) = block_on(both.container.take(&self.m, &self.local));
        if let Some(value) = value {
            let index = usize::try_from(value).expect("few values");
            both.values.get(index).expect("a value that was put").with_mut(|_| ());
            self.taken.push(value);
        }
        value.is_some()
    }

    fn play(mut self, steps: &[Step], both: &Both<C>) -> Self {
        for step in steps {
            match step {
                Put => self.put(both),
                Take => drop(self.take(both)),
            }
        }
        self
    }
}

/// Runs one interleaving. At its end, each value was taken once (in a queue, another thread takes
/// those of a thread in order), and each line has one owner.
fn interleaving<C: Modelled>(script: Script, shared: Shared) {
    let shared = Arc::new(shared);
    let threads = script.threads;
    let values = (0..threads.len() as u64 * EACH).map(|_| UnsafeCell::default()).collect();
    let mut callers: Vec<_> =
        (0..threads.len()).map(|thread| Caller::<C>::new(thread, &shared)).collect();
    let both = Arc::new(Both { container: C::new(&callers[0].m), values });
    (0..script.first).for_each(|_| callers[0].put(&both));
    let mut playing = callers.into_iter().zip(threads);
    let (mine, steps) = playing.next().expect("a thread");
    let others: Vec<_> = playing
        .map(|(caller, steps)| {
            let both = Arc::clone(&both);
            loom::thread::spawn(move || caller.play(steps, &both))
        })
        .collect();
    let mut callers = vec![mine.play(steps, &both)];
    callers.extend(others.into_iter().map(|other| other.join().expect("it ends well")));
    while callers[0].take(&both) {}
    for caller in callers.iter().filter(|_| C::IS_QUEUE) {
        for thread in 0..threads.len() as u64 {
            let of_thread = caller.taken.iter().filter(|&&value| value / EACH == thread);
            assert!(of_thread.is_sorted(), "values in their order");
        }
    }
    let mut taken: Vec<u64> = callers.iter().flat_map(|it| it.taken.iter().copied()).collect();
    taken.sort_unstable();
    let put = callers.iter().flat_map(|it| (0..it.puts).map(|number| it.thread * EACH + number));
    assert!(taken.into_iter().eq(put), "each value once");
    let mut container = Arc::into_inner(both).expect("the threads have ended").container;
    for caller in &mut callers {
        C::retire_local(&caller.m, &mut caller.local);
    }
    container.retire(&callers[0].m);
    LoomMachine::check_lines(callers.into_iter().map(|caller| caller.m.into_lines()));
}

fn model<C: Modelled>(script: Script, change: Option<Change>, possible: &Changes) {
    let memory = (script.threads.len(), C::STORES_EXCHANGE);
    let play = move |shared| interleaving::<C>(script, shared);
    changes::explore(script.preemptions, memory, change, possible, play);
}

const fn script(threads: &'static [&'static [Step]], first: u64, preemptions: usize) -> Script {
    Script { threads, first, preemptions }
}

/// In the last one, a node is taken by one thread, and the one below it by another. The first node
/// is then put again, while a third thread is about to take it.
#[test]
fn treiber() {
    let scripts = [
        script(&[&[Put, Take], &[Put, Take]], 0, 3),
        script(&[&[Take, Put], &[Take], &[Take]], 2, 2),
    ];
    changes::check(&scripts, model::<Treiber>, &[]);
}

/// Threads that put and threads that take have separate locks.
#[test]
fn queue_of_two() {
    let scripts =
        [script(&[&[Put, Put], &[Take, Take]], 0, 2), script(&[&[Put], &[Put, Take]], 0, 2)];
    changes::check(&scripts, model::<Queue<Locked<Ticket>>>, &[]);
}

/// For most orderings, another one suffices here, so none is removed.
#[test]
fn lcrq() {
    for script in [
        script(&[&[Put, Put], &[Take, Take]], 0, 3),
        script(&[&[Put, Take], &[Put, Take]], 0, 3),
        script(&[&[Put, Put], &[Put], &[Take, Take]], 0, 1),
        script(&[&[Put, Put, Put], &[Put], &[Take, Take, Take]], 0, 1),
        script(&[&[Take, Take, Put, Put], &[Take]], 2, 2),
    ] {
        model::<Lcrq>(script, None, &Changes::default());
    }
}
