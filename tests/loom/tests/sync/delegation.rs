//! Threads that apply operations: each is served once and alone, and its reply reaches the caller.

#![expect(unsafe_code, reason = "loom's cells return pointers")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use consort_machine::Machine;
use consort_sync::delegation::{
    CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, Scheme, ServerScheme, Service,
    ShmServer,
};
use consort_sync::locks::Ticket;
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// The number of operations that each thread applies, and loom's limit on preemptions.
#[derive(Clone, Copy)]
struct Script {
    /// The most operations of others that a thread serves, or the number of a scheme's slots.
    max_ops: u64,
    /// The threads that each apply an operation before all others, in this order.
    first: &'static [usize],
    threads: &'static [u64],
    preemptions: usize,
}

/// A scheme, and the server next to the threads of the script, if any.
trait Modelled: Scheme + Sized + 'static {
    const HAS_SERVER: bool = false;
    /// Whether an operation is posted at the end.
    const POSTS: bool = false;
    /// Whether exchanged words are also stored to.
    const STORES_EXCHANGE: bool = false;

    fn new(max_ops: u64) -> Self;

    fn run(&self, _: &LoomMachine, _: &Served) {}
    fn stop(&self, _: &LoomMachine) {}
}

impl Modelled for Locked<Ticket> {
    fn new(_: u64) -> Self {
        Self::with(Ticket::default())
    }
}

impl Modelled for CcSynch {
    fn new(max_ops: u64) -> Self {
        Self::default().with_max_ops(max_ops)
    }
}

/// Threads 0 and 2 form a group.
impl Modelled for HSynch {
    fn new(max_ops: u64) -> Self {
        Self::new(2, max_ops, |thread| thread.0 as usize % 2)
    }
}

impl Modelled for HybComb {
    const STORES_EXCHANGE: bool = true;

    fn new(max_ops: u64) -> Self {
        Self::default().with_max_ops(max_ops)
    }
}

impl Modelled for MpServer {
    const HAS_SERVER: bool = true;

    fn new(_: u64) -> Self {
        Self::default()
    }

    fn run(&self, m: &LoomMachine, service: &Served) {
        let Ok(()) = block_on(ServerScheme::run(self, m, service));
    }

    fn stop(&self, m: &LoomMachine) {
        let Ok(()) = block_on(ServerScheme::stop(self, m));
    }
}

impl Modelled for FallbackServer<Ticket> {
    const HAS_SERVER: bool = true;
    const POSTS: bool = true;
    const STORES_EXCHANGE: bool = true;

    fn new(_: u64) -> Self {
        Self::default()
    }

    fn run(&self, m: &LoomMachine, service: &Served) {
        let Ok(()) = block_on(ServerScheme::run(self, m, service));
    }

    fn stop(&self, m: &LoomMachine) {
        let Ok(()) = block_on(ServerScheme::stop(self, m));
    }
}

/// With `max_ops` slots.
impl Modelled for ShmServer {
    const HAS_SERVER: bool = true;
    const STORES_EXCHANGE: bool = true;

    fn new(max_ops: u64) -> Self {
        Self::new(usize::try_from(max_ops).expect("few slots"))
    }

    fn run(&self, m: &LoomMachine, service: &Served) {
        let Ok(()) = block_on(ServerScheme::run(self, m, service));
    }

    fn stop(&self, m: &LoomMachine) {
        let Ok(()) = block_on(ServerScheme::stop(self, m));
    }
}

/// The served operations, in order. Loom panics when two accesses to a cell are not ordered.
struct Served {
    operations: UnsafeCell<Vec<(u64, u64)>>,
    /// Used by a thread before and after each operation, and by the thread that serves it.
    of_threads: Vec<UnsafeCell<()>>,
    /// Whether a thread has served another one in any interleaving.
    for_others: Arc<AtomicBool>,
}

impl Served {
    fn new(threads: usize, for_others: &Arc<AtomicBool>) -> Self {
        let of_threads = (0..threads).map(|_| UnsafeCell::default()).collect();
        Self {
            operations: UnsafeCell::new(Vec::new()),
            of_threads,
            for_others: Arc::clone(for_others),
        }
    }

    fn use_cell(&self, thread: usize) {
        self.of_threads[thread].with_mut(|_| ());
    }
}

impl Service<LoomMachine> for Served {
    /// The operation is the thread's number plus one, the argument its index in the thread. The
    /// result contains both, and how many were served before.
    async fn serve(&self, m: &LoomMachine, operation: u64, argument: u64) -> u64 {
        let operation = operation - 1;
        self.use_cell(usize::try_from(operation).expect("a thread"));
        if u64::from(Machine::thread(m).0) != operation {
            self.for_others.store(true, Relaxed);
        }
        self.operations.with_mut(|operations| {
            // SAFETY: loom panics when another thread uses the cell.
            let operations = unsafe { &mut *operations };
            operations.push((operation, argument));
            result(operation, argument, operations.len())
        })
    }
}

const fn result(thread: u64, argument: u64, served: usize) -> u64 {
    thread << 32 | argument << 16 | served as u64
}

/// A thread of the script.
struct Caller<C: Scheme> {
    thread: u64,
    m: LoomMachine,
    local: C::Local,
    results: Vec<u64>,
}

impl<C: Modelled> Caller<C> {
    fn new(thread: usize, shared: &Arc<Shared>) -> Self {
        let m = LoomMachine::new(thread, shared);
        Self { thread: thread as u64, m, local: C::Local::default(), results: Vec::new() }
    }

    fn apply(&mut self, scheme: &C, service: &Served) {
        let argument = self.results.len() as u64;
        service.use_cell(self.thread as usize);
        let applied = scheme.apply(&self.m, &self.local, service, self.thread + 1, argument);
        let Ok(result) = block_on(applied);
        service.use_cell(self.thread as usize);
        self.results.push(result);
    }

    fn play(mut self, operations: u64, scheme: &C, service: &Served) -> Self {
        (0..operations).for_each(|_| self.apply(scheme, service));
        self
    }
}

/// Runs one interleaving. At its end, each operation was served once, in its thread's order; each
/// result belongs to its operation; each line has one owner.
fn interleaving<C: Modelled>(script: Script, shared: Shared, for_others: &Arc<AtomicBool>) {
    let shared = Arc::new(shared);
    let threads = script.threads.len();
    let both = Arc::new((C::new(script.max_ops), Served::new(threads + 1, for_others)));
    let mut callers: Vec<_> = (0..threads).map(|it| Caller::<C>::new(it, &shared)).collect();
    script.first.iter().for_each(|&thread| callers[thread].apply(&both.0, &both.1));
    let server = C::HAS_SERVER.then(|| {
        let (both, m) = (Arc::clone(&both), LoomMachine::new(threads, &shared));
        loom::thread::spawn(move || {
            both.0.run(&m, &both.1);
            m.into_lines()
        })
    });
    let mut playing = callers.into_iter().zip(script.threads);
    let (mine, operations) = playing.next().expect("a thread");
    let others: Vec<_> = playing
        .map(|(caller, operations)| {
            let both = Arc::clone(&both);
            loom::thread::spawn(move || caller.play(*operations, &both.0, &both.1))
        })
        .collect();
    let mut callers = vec![mine.play(*operations, &both.0, &both.1)];
    callers.extend(others.into_iter().map(|other| other.join().expect("it ends well")));
    if C::POSTS {
        both.1.use_cell(threads);
        let posted = both.0.post(&callers[0].m, threads as u64 + 1, 0);
        assert_eq!(block_on(posted), Ok(true));
    }
    let of_server = server.map(|server| {
        both.0.stop(&callers[0].m);
        server.join().expect("it ends well")
    });
    let (mut scheme, served) = Arc::into_inner(both).expect("the threads have ended");
    let operations = served.operations.into_inner();
    for caller in &callers {
        let mine =
            operations.iter().enumerate().filter(|(_, (thread, _))| *thread == caller.thread);
        let expected: Vec<_> = (0..)
            .zip(mine)
            .map(|(argument, (before, _))| result(caller.thread, argument, before + 1))
            .collect();
        assert_eq!(caller.results, expected, "each operation once, in order, with its result");
    }
    let is_posted = |(thread, _): &&(u64, u64)| *thread == threads as u64;
    assert_eq!(operations.iter().filter(is_posted).count(), usize::from(C::POSTS));
    scheme.retire(&callers[0].m);
    let of_callers = callers.into_iter().map(|mut caller| {
        C::retire_local(&caller.m, &mut caller.local);
        caller.m.into_lines()
    });
    LoomMachine::check_lines(of_callers.chain(of_server));
}

fn model<C: Modelled>(script: Script, change: Option<Change>, possible: &Changes) {
    let for_others = Arc::new(AtomicBool::default());
    let is_for_others = Arc::clone(&for_others);
    let threads = script.threads.len() + usize::from(C::HAS_SERVER);
    let play = move |shared| interleaving::<C>(script, shared, &for_others);
    let memory = (threads, C::STORES_EXCHANGE);
    changes::explore(script.preemptions, memory, change, possible, play);
    assert_eq!(is_for_others.load(Relaxed), script.max_ops > 0, "a thread serves others");
}

const fn script(max_ops: u64, first: &'static [usize], threads: &'static [u64]) -> Script {
    Script { max_ops, first, threads, preemptions: 2 }
}

#[test]
fn locked() {
    model::<Locked<Ticket>>(script(0, &[], &[2, 2]), None, &Changes::default());
}

#[test]
fn cc_synch() {
    let scripts = [
        script(0, &[], &[2, 2]),
        script(1, &[], &[2, 2]),
        script(2, &[0], &[2, 2]),
        script(2, &[], &[1, 1, 1]),
    ];
    changes::check(&scripts, model::<CcSynch>, &[]);
}

#[test]
fn h_synch() {
    for script in [script(0, &[], &[2, 2]), script(1, &[], &[1, 1, 1])] {
        model::<HSynch>(script, None, &Changes::default());
    }
}

/// Two threads read a node that later belongs to another thread. New lines of the models contain
/// neither a free number of operations nor the state of a departed node, unlike used ones. The
/// release of the swap makes combining last longer.
#[test]
fn hybcomb() {
    let scripts = [
        script(0, &[], &[2, 2]),
        script(1, &[0], &[1, 2]),
        script(2, &[], &[2, 2]),
        script(1, &[0], &[1, 2, 1]),
    ];
    let not_needed = [
        "Whole: m.store(&ops[0], max_ops, Relaxed).await;",
        "Whole: m.store(&done[0], 0, Relaxed).await;",
        "Release: let total = m.swap(ops, self.max_ops, Release).await.min(self.max_ops);",
    ];
    changes::check(&scripts, model::<HybComb>, &not_needed);
}

/// Messages carry everything that happened before them, but waits always acquire.
#[test]
fn mp_server() {
    let scripts = [script(1, &[], &[2]), script(1, &[], &[1, 1])];
    let wait =
        "Acquire: let server = m.wait_until(&self.server[SERVER], Until::Differs(0)).await?;";
    // No script has a second server.
    let first =
        "Whole: let first = m.compare_exchange(&self.server[SERVER], 0, me, Relaxed).await;";
    changes::check(&scripts, model::<MpServer>, &[wait, first]);
}

/// The exchange after the wait for a slot acquires it. The sleep of the server ends by itself, and
/// the bell only makes that sooner. Nothing is applied when the server gets the request to end.
#[test]
fn shm_server() {
    let scripts = [script(2, &[], &[1]), script(2, &[], &[2]), script(1, &[], &[1, 1])]
        .map(|it| Script { preemptions: 1, ..it });
    let not_needed = [
        "Acquire: m.wait_until(&slot[OWNER], Until::Equals(0)).await?;",
        "Release: m.store(&self.server[BELL], 1, Release).await;",
        "Whole: m.store(&self.server[BELL], 1, Release).await;",
        "Whole: m.wake(&self.server[BELL]);",
        "Whole: m.store(&self.server[SLEEPS], 0, Relaxed).await;",
        "Acquire: if m.load(&self.server[ENDS], Acquire).await != 0 {",
        "Whole: m.store(&self.server[BELL], 0, Relaxed).await;",
        "Acquire: m.swap(&self.server[SLEEPS], 1, AcqRel).await;",
        "Release: m.swap(&self.server[SLEEPS], 1, AcqRel).await;",
        "Whole: m.store(&self.server[SLEEPS], 0, Relaxed).await;",
        "Release: m.store(&self.server[ENDS], 1, Release).await;",
        "Release: m.store(&self.server[BELL], 1, Release).await;",
        "Whole: m.store(&self.server[BELL], 1, Release).await;",
        "Whole: m.wake(&self.server[BELL]);",
    ];
    changes::check(&scripts, model::<ShmServer>, &not_needed);
}

/// Threads execute their own operations until the server serves. Its turn ends by itself, or by a
/// thread that has waited. In a model the second turn of the threads lasts until the end.
///
/// Waits for a limited time need nobody to wake them. Without the bell, what was posted is executed
/// at the end. If the turn does not end, waiting threads still take the place of the server. Counts
/// only determine who executes operations. Loom lets nobody see a store before an earlier release.
/// After the waits for `NEXT` and `last`, another operation acquires. In the models, nobody posts
/// while a node is unlinked. A unit test does.
#[test]
fn fallback_server() {
    let scripts =
        [script(1, &[], &[1]), script(1, &[], &[3]), script(1, &[], &[2]), script(1, &[], &[1, 1])];
    let not_needed = [
        "Acquire: m.load(&self.mode[MODE], Acquire).await == SERVES",
        "Whole: m.store(&self.executed, executed.wrapping_add(1), Relaxed).await;",
        "Whole: m.wake(&request[STATE]);",
        "Acquire: m.wait_until(&node(first)[NEXT], Until::Differs(0)).await?;",
        "Whole: m.wait_until(&node(first)[NEXT], Until::Differs(0)).await?;",
        "Whole: m.store(&self.mode[MODE], LOCKS, Relaxed).await;",
        "Acquire: m.wait_until(&first[NEXT], Until::Differs(0)).await?;",
        "Release: m.store(&self.mode[MODE], SERVES, Release).await; // pairs with the acquire in \
         `serves`",
        "Acquire: m.swap(&self.bell[0], 0, Acquire).await;",
        "Release: m.swap(&self.bell[0], 1, Release).await;",
        "Whole: m.wake(&self.bell[0]);",
        "Acquire: m.wait_until(&self.last[0], Until::Differs(0)).await?;",
    ];
    changes::check(&scripts, model::<FallbackServer<Ticket>>, &not_needed);
}
