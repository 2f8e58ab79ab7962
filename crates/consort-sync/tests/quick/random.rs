//! Random programs: short-lived threads lock random sets of mutexes of all kinds in one order, or
//! try to lock them; some threads panic while they hold mutexes.
//!
//! `TEST_SEED=N` runs one program only; see `consort_sandbox::seeds`.

use std::{
    panic::resume_unwind,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use consort_fabric::splitmix64;
use consort_sandbox::seeds::seeds;
use consort_sync::{
    Mutex,
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, RawLock, TestAndSet, Ticket},
};

/// A program takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(60);
const STEPS: u64 = 300;

/// Two numbers that are equal unless a thread is between the two additions.
type Twins = (u64, u64);

struct OnPurpose;

/// A mutex with any lock.
trait Any: Sync {
    /// Uses the data. Returns `false` if it only tries and fails to lock.
    fn with(&self, tries: bool, use_it: &mut dyn FnMut(&mut Twins)) -> bool;
    fn is_locked(&self) -> bool;
}

impl<R: RawLock + Sync> Any for Mutex<Twins, R> {
    fn with(&self, tries: bool, use_it: &mut dyn FnMut(&mut Twins)) -> bool {
        let guard = if tries { self.try_lock() } else { Some(self.lock()) };
        guard.is_some_and(|mut twins| {
            use_it(&mut twins);
            true
        })
    }

    fn is_locked(&self) -> bool {
        Mutex::is_locked(self)
    }
}

fn mutex(kind: u64) -> Box<dyn Any> {
    match kind % 8 {
        0 => Box::new(Mutex::with(Handoff::new(), Twins::default())),
        1 => Box::new(Mutex::with(TestAndSet::new(), Twins::default())),
        2 => Box::new(Mutex::with(Ticket::new(), Twins::default())),
        3 => Box::new(Mutex::with(Mcs::new(), Twins::default())),
        4 => Box::new(Mutex::with(Clh::new(), Twins::default())),
        5 => Box::new(Mutex::with(Cna::new(), Twins::default())),
        6 => Box::new(Mutex::with(Hapax::new(), Twins::default())),
        _ => Box::new(Mutex::with(HybLock::new(), Twins::default())),
    }
}

/// Mutexes, and how often each was used.
struct Program {
    mutexes: Vec<(Box<dyn Any>, AtomicU64)>,
    /// One in this many sections panics.
    panics: u64,
    /// One in this many acquisitions is an attempt.
    tries: u64,
}

impl Program {
    fn new(random: &mut u64) -> Self {
        let mut below = |end| splitmix64(random) % end;
        // Of one kind, or of all kinds.
        let (kind, step) = (below(8), below(3) / 2);
        let mutexes = (0..=below(6)).map(|number| (mutex(kind + step * number), AtomicU64::new(0)));
        Self { mutexes: mutexes.collect(), panics: 300 + below(2_000), tries: 1 + below(5) }
    }

    /// Locks a random set of the mutexes from number `from` on, and holds all of them at once.
    fn section(&self, from: usize, random: &mut u64) {
        let drawn = splitmix64(random);
        let Some((mutex, uses)) = self.mutexes.get(from) else {
            if drawn.is_multiple_of(self.panics) {
                resume_unwind(Box::new(OnPurpose));
            }
            return;
        };
        if drawn.is_multiple_of(3) {
            return self.section(from + 1, random);
        }
        let tries = (drawn >> 8).is_multiple_of(self.tries);
        let entered = mutex.with(tries, &mut |twins| {
            uses.fetch_add(1, Relaxed);
            twins.0 += 1;
            if (drawn >> 16).is_multiple_of(2) {
                thread::yield_now();
            }
            twins.1 += 1;
            assert_eq!(twins.0, twins.1, "two threads at once");
            self.section(from + 1, random);
        });
        if !entered {
            self.section(from + 1, random);
        }
    }
}

fn play(seed: u64) {
    let mut random = seed;
    let program = Program::new(&mut random);
    let (threads, lives) = (2 + splitmix64(&mut random) % 7, 1 + splitmix64(&mut random) % 4);
    thread::scope(|scope| {
        for number in 0..threads {
            let (program, mut random) = (&program, seed ^ (number << 32));
            scope.spawn(move || {
                for _ in 0..lives {
                    let mut life = splitmix64(&mut random);
                    let thread = scope.spawn(move || {
                        (0..STEPS).for_each(|_| program.section(0, &mut life));
                    });
                    if let Err(panic) = thread.join()
                        && !panic.is::<OnPurpose>()
                    {
                        resume_unwind(panic);
                    }
                }
            });
        }
    });
    for (number, (mutex, uses)) in program.mutexes.iter().enumerate() {
        assert!(!mutex.is_locked(), "mutex {number} is held");
        let uses = uses.load(Relaxed);
        let is_free = mutex.with(true, &mut |twins| assert_eq!(*twins, (uses, uses)));
        assert!(is_free, "mutex {number} is held");
    }
}

#[test]
fn random_programs() {
    for seed in seeds(60, 600, &[]) {
        let (ended, end) = mpsc::channel();
        let program = thread::spawn(move || {
            play(seed);
            let _ = ended.send(());
        });
        let outcome = end.recv_timeout(LIMIT);
        assert!(outcome.is_ok(), "TEST_SEED={seed} repeats this: {outcome:?}");
        program.join().expect("it has ended well");
    }
}
