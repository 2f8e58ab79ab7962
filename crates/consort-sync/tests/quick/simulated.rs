//! Locks and delegation on simulated machines: the same code, in schedules that are rare on a real
//! machine.

use std::{
    cell::{Cell, RefCell},
    sync::atomic::Ordering::Relaxed,
};

use consort_machine::{Line, Machine as _, Thread};
use consort_sandbox::seeds::seeds;
use consort_sim::{SimulatedThread, Tally, ThreadSimulation, machines::Machine};
use consort_sync::{
    delegation::{
        Backoff, CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, Scheme, ServerScheme,
        Service, ShmServer,
    },
    locks::{
        Access, Clh, Cna, Handoff, Hapax, HybLock, Mcs, QueuedRwLock, QueuedSemaphore, RawLock,
        TestAndSet, Ticket,
    },
};

const MACHINES: [&str; 3] = ["tile-gx36", "xeon-e7-8867l-x8", "opteron-6176-x4"];
/// The operations of each thread.
const EACH: u64 = 15;

/// A counter whose increments are not atomic.
#[derive(Default)]
struct Counter {
    word: Line,
    inside: Cell<bool>,
    operations: RefCell<Vec<u64>>,
}

impl Service<SimulatedThread> for Counter {
    async fn serve(&self, m: &SimulatedThread, operation: u64, argument: u64) -> u64 {
        assert!(!self.inside.replace(true), "two threads are in the section");
        let old = m.load(&self.word[3], Relaxed).await;
        m.pause(m.random(50)).await;
        m.store(&self.word[3], old + argument, Relaxed).await;
        self.operations.borrow_mut().push(operation);
        self.inside.set(false);
        old
    }
}

fn simulation(machine: &str, threads: u32, seed: u64) -> ThreadSimulation {
    // Some threads share a core where cores have two hardware threads.
    let placement = (0..threads).map(|thread| thread * 5 % 36).collect();
    let machine = Machine::find(machine).expect("a machine that is shipped");
    ThreadSimulation::on(machine, 0).placed(placement).seed(seed)
}

/// Returns the results of a thread's operations, which are earlier values of the counter.
async fn client<S: Scheme>(m: &SimulatedThread, scheme: &S, counter: &Counter) -> Vec<u64> {
    let local = S::Local::default();
    let mut results = Vec::new();
    for number in 0..EACH {
        let operation = u64::from(m.thread().0) * EACH + number;
        let Ok(result) = scheme.apply(m, &local, counter, operation, 1).await;
        results.push(result);
        m.spin(m.random(200));
    }
    results
}

/// Asserts that each operation was executed once and saw a different value.
fn check(counter: &Counter, results: Vec<Vec<u64>>, first: u64, what: &str) {
    let mut seen: Vec<u64> = results.into_iter().flatten().collect();
    let count = seen.len() as u64;
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..count), "{what}: a value is missing or was seen twice");
    let mut executed = counter.operations.take();
    executed.sort_unstable();
    assert!(executed.into_iter().eq(first * EACH..first * EACH + count), "{what}");
}

fn excludes<S: Scheme>(make: impl Fn() -> S) {
    let seeds: Vec<u64> = seeds(12, 120, &[]).collect();
    for machine in MACHINES {
        for &seed in &seeds {
            for threads in [2, 3, 7] {
                let (scheme, counter) = (make(), Counter::default());
                let what = format!("{}, {machine}, seed {seed}, {threads} threads", S::NAME);
                let outcome = simulation(machine, threads, seed)
                    .explored()
                    .run(async |m: SimulatedThread| client(&m, &scheme, &counter).await)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                let results = outcome.results.into_iter().flatten().collect();
                check(&counter, results, 0, &what);
            }
        }
    }
}

fn serves<S: ServerScheme>(make: impl Fn(usize) -> S) {
    let seeds: Vec<u64> = seeds(12, 120, &[]).collect();
    for machine in MACHINES {
        for &seed in &seeds {
            for threads in [2, 3, 7] {
                let (scheme, counter) = (make(threads as usize + 1), Counter::default());
                let what = format!("{}, {machine}, seed {seed}, {threads} threads", S::NAME);
                let left = Cell::new(threads - 1);
                let outcome = simulation(machine, threads, seed)
                    .explored()
                    .run(async |m: SimulatedThread| {
                        if m.thread() == Thread(0) {
                            let Ok(()) = scheme.run(&m, &counter).await;
                            return Vec::new();
                        }
                        let results = client(&m, &scheme, &counter).await;
                        left.set(left.get() - 1);
                        if left.get() == 0 {
                            let Ok(()) = scheme.stop(&m).await;
                        }
                        results
                    })
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&counter, outcome.results.into_iter().flatten().collect(), 1, &what);
            }
        }
    }
}

fn locked<R: RawLock>() {
    excludes(|| Locked::with(R::default()));
}

#[test]
fn locks_exclude() {
    locked::<Handoff>();
    locked::<TestAndSet>();
    locked::<Ticket>();
    locked::<Mcs>();
    locked::<Clh>();
    locked::<Cna>();
    locked::<Hapax>();
    locked::<HybLock>();
}

/// Threads arrive at intervals of 10 000 cycles, take the lock once, and hold it for `section`
/// cycles. Returns the order in which they get it.
#[expect(unsafe_code, reason = "releases a raw lock by hand")]
fn order<R: RawLock>(placement: &[u32], section: u64) -> Vec<u32> {
    let (lock, served) = (R::default(), RefCell::new(Vec::new()));
    let machine = Machine::find("opteron-6176-x4").expect("a machine that is shipped");
    let run = ThreadSimulation::on(machine, 0).placed(placement.to_vec());
    let outcome = run.run(async |m: SimulatedThread| {
        m.pause(10_000 * u64::from(m.thread().0)).await;
        let Ok(token) = lock.acquire(&m).await;
        served.borrow_mut().push(m.thread().0);
        m.pause(section).await;
        // SAFETY: the thread holds the lock, with this token.
        let Ok(()) = unsafe { lock.release(&m, token) }.await;
    });
    outcome.expect("the simulation ends");
    served.into_inner()
}

#[test]
fn queue_locks_serve_threads_in_the_order_of_arrival() {
    let placement = [0, 6, 1, 12, 7, 2, 13];
    let expected: Vec<u32> = (0..7).collect();
    for section in [35_000, 75_000] {
        assert_eq!(order::<Ticket>(&placement, section), expected);
        assert_eq!(order::<Mcs>(&placement, section), expected);
        assert_eq!(order::<Clh>(&placement, section), expected);
        assert_eq!(order::<Hapax>(&placement, section), expected);
        assert_eq!(order::<HybLock>(&placement, section), expected);
    }
}

/// Six cores share a NUMA node. All threads arrive in the first section. Threads 1, 3 and 4 wait in
/// the remote queue while node 0 has the lock. That turn was short, so no search follows at first.
#[test]
fn cna_serves_the_threads_of_a_numa_node_together() {
    let placement = [0, 6, 1, 12, 7, 2, 13];
    assert_eq!(order::<Cna>(&placement, 75_000), [0, 2, 5, 1, 3, 4, 6]);
    let one_node = [0, 1, 2, 3, 4, 5];
    assert_eq!(order::<Cna>(&one_node, 75_000), [0, 1, 2, 3, 4, 5]);
}

/// Threads of a NUMA node want the lock all the time, and one of another wants it as often as it
/// gets it.
#[test]
fn cna_passes_the_lock_on_after_63_hand_overs() {
    let counter = Counter::default();
    let scheme = Locked::with(Cna::new());
    let machine = Machine::find("opteron-6176-x4").expect("a machine that is shipped");
    let run = ThreadSimulation::on(machine, 0).placed(vec![0, 1, 2, 6]);
    let most = Cell::new(0);
    let outcome = run.run(async |m: SimulatedThread| {
        let is_remote = m.thread().0 == 3;
        for _ in 0..if is_remote { 5 } else { 400 } {
            let begun = counter.operations.borrow().len();
            let Ok(_) = scheme.apply(&m, &(), &counter, 0, 1).await;
            if is_remote {
                let passed = counter.operations.borrow().len() - begun;
                most.set(most.get().max(passed));
            }
        }
    });
    outcome.expect("the simulation ends");
    // The hand-overs before it is moved to the remote queue count, too.
    assert!((60..=66).contains(&most.get()), "{}", most.get());
}

/// The number of threads that are inside with each access.
#[derive(Default)]
struct Inside([Cell<u64>; 3]);

impl Inside {
    fn count(&self, access: Access) -> &Cell<u64> {
        &self.0[access as usize]
    }

    /// Stays inside for a while.
    async fn stay(&self, m: &SimulatedThread, access: Access) {
        self.count(access).update(|count| count + 1);
        let [readers, upgradable, writers] = self.0.each_ref().map(Cell::get);
        assert!(writers == 0 || (readers, upgradable, writers) == (0, 0, 1));
        assert!(upgradable <= 1);
        m.rest(m.random(300)).await;
        self.count(access).update(|count| count - 1);
    }
}

/// Enters in a random way, may change the access, and leaves.
#[expect(unsafe_code, reason = "releases a raw lock by hand")]
async fn visit(m: &SimulatedThread, lock: &QueuedRwLock, inside: &Inside) {
    let mut access = match m.random(5) {
        0 => Access::Write,
        1 | 2 => Access::UpgradableRead,
        _ => Access::Read,
    };
    if !lock.enter(m, access).await {
        let Ok(()) = lock.wait(m, access).await;
    }
    inside.stay(m, access).await;
    if access == Access::UpgradableRead && m.random(2) == 0 {
        // SAFETY: the thread is inside, with this access.
        let Ok(()) = unsafe { lock.upgrade(m) }.await;
        access = Access::Write;
        inside.stay(m, access).await;
    }
    if access != Access::Read && m.random(2) == 0 {
        // SAFETY: the thread is inside, with this access, which excludes all that a reader
        // excludes.
        unsafe { lock.change(m, access, Some(Access::Read)) }.await;
        access = Access::Read;
        inside.stay(m, access).await;
    }
    // SAFETY: the thread is inside, with this access.
    unsafe { lock.change(m, access, None) }.await;
}

#[test]
fn readers_and_writers_exclude() {
    for machine in MACHINES {
        for seed in seeds(40, 400, &[]) {
            for threads in [2, 3, 7] {
                let (lock, inside) = (QueuedRwLock::new(), Inside::default());
                let run = simulation(machine, threads, seed).explored();
                let outcome = run.run(async |m: SimulatedThread| {
                    for _ in 0..EACH {
                        visit(&m, &lock, &inside).await;
                    }
                    lock.is_held(&m).await
                });
                let what = format!("{machine}, seed {seed}, {threads} threads");
                let held = outcome.unwrap_or_else(|error| panic!("{what}: {error}")).results;
                assert!(held.contains(&Some(false)), "{what}: the last thread leaves a free lock");
            }
        }
    }
}

/// Takes some permits, mostly with a time limit, and gives them back after a while.
async fn borrow(m: &SimulatedThread, semaphore: &QueuedSemaphore, free: &Cell<u64>) {
    let count = 1 + m.random(4);
    let at_ns = (m.random(4) > 0).then(|| m.now_ns() + m.random(50_000));
    let Ok(has_taken) = semaphore.acquire(m, count, at_ns).await;
    if has_taken {
        free.set(free.get().checked_sub(count).expect("more permits are out than exist"));
        m.rest(m.random(20_000)).await;
        free.update(|free| free + count);
        semaphore.release(m, count).await;
    }
}

#[test]
fn semaphore_gives_the_permits_that_it_has() {
    const PERMITS: u64 = 5;
    for machine in MACHINES {
        for seed in seeds(40, 400, &[]) {
            for threads in [2, 3, 7] {
                let (semaphore, free) = (QueuedSemaphore::new(PERMITS), Cell::new(PERMITS));
                let left = Cell::new(threads);
                let run = simulation(machine, threads, seed).explored();
                let outcome = run.run(async |m: SimulatedThread| {
                    for _ in 0..EACH {
                        borrow(&m, &semaphore, &free).await;
                    }
                    left.update(|left| left - 1);
                    if left.get() > 0 {
                        return true;
                    }
                    semaphore.permits(&m).await == PERMITS
                        && semaphore.try_acquire(&m, PERMITS).await
                });
                let what = format!("{machine}, seed {seed}, {threads} threads");
                let fine = outcome.unwrap_or_else(|error| panic!("{what}: {error}")).results;
                assert!(!fine.contains(&Some(false)), "{what}: a permit is lost or made up");
            }
        }
    }
}

/// Threads arrive one after the other, and each needs another number of permits. Meanwhile permits
/// come one by one.
#[test]
fn semaphore_serves_threads_in_the_order_of_arrival() {
    const THREADS: u32 = 7;
    for machine in MACHINES {
        for seed in seeds(40, 400, &[]) {
            let (semaphore, served) = (QueuedSemaphore::new(0), RefCell::new(Vec::new()));
            let run = simulation(machine, THREADS, seed).run(async |m: SimulatedThread| {
                let number = u64::from(m.thread().0);
                if number == u64::from(THREADS) - 1 {
                    for _ in 0..3 * number {
                        m.pause(m.random(60_000)).await;
                        semaphore.release(&m, 1).await;
                    }
                    return;
                }
                m.pause(100_000 * number).await;
                let count = 1 + (seed + number) % 5;
                let Ok(has_taken) = semaphore.acquire(&m, count, None).await;
                assert!(has_taken);
                served.borrow_mut().push(number);
                semaphore.release(&m, count).await;
            });
            run.unwrap_or_else(|error| panic!("{machine}, seed {seed}: {error}"));
            let order: Vec<u64> = (0..u64::from(THREADS) - 1).collect();
            assert_eq!(served.into_inner(), order, "{machine}, seed {seed}");
        }
    }
}

#[test]
fn combiners_exclude() {
    for most in [0, 2, 200] {
        excludes(|| CcSynch::new().with_max_ops(most));
        excludes(|| HybComb::new().with_max_ops(most));
        excludes(|| HSynch::new(2, most, |thread| thread.0 as usize));
    }
}

#[test]
fn servers_execute_each_request_once() {
    serves(|_| MpServer::new());
    serves(|_| FallbackServer::new());
    serves(ShmServer::new);
    // Threads share a slot.
    serves(|_| ShmServer::new(2));
    serves(|slots| {
        ShmServer::new(slots).with_every_second_line().with_backoff(Backoff::Every(300))
    });
    serves(|slots| ShmServer::new(slots).with_streaming());
}

#[test]
fn same_seed_gives_the_same_run() {
    let tallies = |seed| -> Vec<Tally> {
        let (scheme, counter) = (HybComb::new().with_max_ops(5), Counter::default());
        let run = simulation(MACHINES[0], 8, seed).run(async |m: SimulatedThread| {
            client(&m, &scheme, &counter).await;
        });
        run.expect("the simulation ends").tallies
    };
    assert_eq!(tallies(3), tallies(3));
    assert_ne!(tallies(3), tallies(4));
}
