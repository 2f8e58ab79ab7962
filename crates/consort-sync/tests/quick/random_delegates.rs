//! Random programs: short-lived threads use random chains of delegates of all schemes, nested in
//! one order; some closures panic, and some data is poisoned meanwhile.
//!
//! `TEST_SEED=N` runs one program only; see `consort_sandbox::seeds`.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use consort_fabric::splitmix64;
use consort_sandbox::seeds::seeds;
use consort_sync::{
    Continuations, Delegate, Pending, Server,
    delegation::{
        CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, ServerScheme, Serverless,
        ShmServer,
    },
    locks::{Clh, HybLock, Mcs, Ticket},
};

use crate::schemes::Applies;

/// A program takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(60);
const STEPS: u64 = 100;
const KINDS: u64 = 13;

/// Two numbers that are equal unless a thread is between the two additions.
type Twins = (u64, u64);

struct OnPurpose;

/// Data under any scheme.
trait Any: Sync {
    /// Uses the data, and returns the closure's text.
    fn with(&self, use_it: &mut (dyn FnMut(&mut Twins) -> String + Send)) -> String;
    fn clear_poison(&self);
    fn detach(&self, use_it: Work);
    fn submit(&self, use_it: Work) -> Pending<()>;
    fn detach_all(&self, uses: Vec<Work>);
    fn apply_then<'s>(
        &'s self,
        continuations: &Continuations<'s, '_>,
        use_it: Work,
        then: Then<'s>,
    );
}

type Work = Box<dyn FnOnce(&mut Twins) + Send>;
type Then<'s> = Box<dyn FnOnce(()) + 's>;

impl<D: Applies<Twins>> Any for D {
    fn with(&self, use_it: &mut (dyn FnMut(&mut Twins) -> String + Send)) -> String {
        self.apply(use_it)
    }

    fn clear_poison(&self) {
        Applies::clear_poison(self);
    }

    fn detach(&self, use_it: Work) {
        Applies::detach(self, use_it);
    }

    fn submit(&self, use_it: Work) -> Pending<()> {
        Applies::submit(self, use_it)
    }

    fn detach_all(&self, uses: Vec<Work>) {
        let mut batch = self.batch();
        uses.into_iter().for_each(|use_it| batch.push(use_it));
    }

    fn apply_then<'s>(
        &'s self,
        continuations: &Continuations<'s, '_>,
        use_it: Work,
        then: Then<'s>,
    ) {
        Applies::apply_then(self, continuations, use_it, then);
    }
}

fn delegate(kind: u64, drawn: u64) -> Box<dyn Any> {
    fn either(data: impl Applies<Twins> + 'static, drawn: u64) -> Box<dyn Any> {
        Box::new(if drawn.is_multiple_of(4) { data.poisoning() } else { data })
    }
    fn of<S>(scheme: S, drawn: u64) -> Box<dyn Any>
    where
        S: Serverless<Local: Send> + Sync + 'static,
    {
        either(Delegate::with(scheme, (0, 0)), drawn)
    }
    fn served<S>(scheme: S, drawn: u64) -> Box<dyn Any>
    where
        S: ServerScheme<Local: Send> + Send + Sync + 'static,
    {
        either(Server::with(scheme, (0, 0)).expect("a thread"), drawn)
    }
    let most = [0, 1, 3, 200, u64::MAX][(drawn >> 8) as usize % 5];
    match kind % KINDS {
        0 => of(Locked::new(), drawn),
        1 => of(Locked::with(Mcs::new()), drawn),
        2 => of(Locked::with(Clh::new()), drawn),
        3 => of(Locked::with(HybLock::new()), drawn),
        4 => of(Locked::with(Ticket::new()), drawn),
        5 | 6 => of(CcSynch::new().with_max_ops(most), drawn),
        7 => of(HSynch::new(2, most, |thread| thread.0 as usize), drawn),
        8 | 9 => of(HybComb::new().with_max_ops(most), drawn),
        10 => served(MpServer::new(), drawn),
        11 => served(FallbackServer::new(), drawn),
        _ => served(ShmServer::new(1 + (drawn >> 16) as usize % 8), drawn),
    }
}

/// Delegates, and how often each was used.
struct Program {
    delegates: Vec<(Box<dyn Any>, Arc<AtomicU64>)>,
    /// One in this many closures panics.
    panics: u64,
}

impl Program {
    fn new(random: &mut u64) -> Self {
        let mut below = |end| splitmix64(random) % end;
        // Of one kind, or of all kinds.
        let (kind, step) = (below(KINDS), below(2));
        let make = |number| (delegate(kind + step * number, below(1 << 32)), Arc::default());
        Self { delegates: (0..=KINDS / 2).map(make).collect(), panics: 500 + kind * 100 }
    }

    /// Uses a random set of the delegates from number `from` on, one within the other.
    fn chain(&self, from: usize, random: &mut u64) -> String {
        let drawn = splitmix64(random);
        if drawn.is_multiple_of(self.panics) {
            resume_unwind(Box::new(OnPurpose));
        }
        let Some((delegate, uses)) = self.delegates.get(from) else {
            return String::new();
        };
        if !drawn.is_multiple_of(3) {
            return self.chain(from + 1, random);
        }
        delegate.with(&mut |twins| {
            uses.fetch_add(1, Relaxed);
            twins.0 += 1;
            if (drawn >> 16).is_multiple_of(4) {
                thread::yield_now();
            }
            twins.1 += 1;
            assert_eq!(twins.0, twins.1, "two threads at once");
            let inner = self.chain(from + 1, random);
            format!("{inner} {from}")
        })
    }

    /// Returns a closure for a delegate, which another thread may execute. Sometimes it panics.
    fn work(&self, number: usize, random: &mut u64) -> Work {
        let (uses, drawn) = (Arc::clone(&self.delegates[number].1), splitmix64(random));
        let panics = drawn.is_multiple_of(self.panics);
        Box::new(move |twins| {
            uses.fetch_add(1, Relaxed);
            twins.0 += 1;
            twins.1 += 1;
            assert_eq!(twins.0, twins.1, "two threads at once");
            if panics {
                resume_unwind(Box::new(OnPurpose));
            }
        })
    }

    /// Calls delegates, whose continuations use others. Returns the text of one of them.
    fn call(&self, random: &mut u64) -> String {
        let last = RefCell::new(String::new());
        Continuations::scope(|continuations| {
            for _ in 0..splitmix64(random) % 20 {
                let number = (splitmix64(random) >> 8) as usize % self.delegates.len();
                let (work, mut random) = (self.work(number, random), splitmix64(random));
                let last = &last;
                let then = move |()| *last.borrow_mut() = self.chain(0, &mut random);
                self.delegates[number].0.apply_then(continuations, work, Box::new(then));
            }
        });
        last.into_inner()
    }

    /// Detaches closures or a batch, or submits a closure and waits for it.
    fn detach(&self, random: &mut u64) -> String {
        let drawn = splitmix64(random);
        let number = (drawn >> 8) as usize % self.delegates.len();
        let (delegate, _) = &self.delegates[number];
        match drawn % 3 {
            0 => delegate.detach(self.work(number, random)),
            1 => {
                let count = (drawn >> 16) % 100;
                delegate.detach_all((0..count).map(|_| self.work(number, random)).collect());
            }
            _ => {
                let pending = delegate.submit(self.work(number, random));
                let inner = self.chain(0, random);
                pending.wait();
                return inner;
            }
        }
        String::new()
    }

    fn any(&self, random: &mut u64) -> String {
        match splitmix64(random) % 12 {
            0..4 => self.detach(random),
            4 => self.call(random),
            _ => self.chain(0, random),
        }
    }

    /// Like [`any`](Self::any), but clears poison.
    fn step(&self, random: &mut u64) {
        match catch_unwind(AssertUnwindSafe(|| self.any(random))) {
            Ok(text) => assert!(text.split_whitespace().rev().is_sorted(), "{text}"),
            Err(panic) if panic.is::<OnPurpose>() => {}
            Err(panic) => {
                let text = panic.downcast_ref::<String>();
                let is_poison = text.is_some_and(|text| text.contains("the data is poisoned"));
                if !is_poison {
                    resume_unwind(panic);
                }
                self.delegates.iter().for_each(|(delegate, _)| delegate.clear_poison());
            }
        }
    }
}

fn play(seed: u64) {
    let mut random = seed;
    let program = Program::new(&mut random);
    let (threads, lives) = (2 + splitmix64(&mut random) % 15, 1 + splitmix64(&mut random) % 4);
    thread::scope(|scope| {
        for number in 0..threads {
            let (program, mut random) = (&program, seed ^ (number << 32));
            scope.spawn(move || {
                for _ in 0..lives {
                    let mut life = splitmix64(&mut random);
                    let thread = scope.spawn(move || {
                        (0..STEPS).for_each(|_| program.step(&mut life));
                    });
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                }
            });
        }
    });
    for (number, (delegate, uses)) in program.delegates.iter().enumerate() {
        // A server executes detached closures before this. They may panic, so that it is refused.
        let drain = || delegate.with(&mut |_| String::new());
        let _ = catch_unwind(AssertUnwindSafe(drain));
        delegate.clear_poison();
        delegate.with(&mut |twins| {
            // Read only here: until now a server may have been executing detached closures.
            let uses = uses.load(Relaxed);
            assert_eq!(*twins, (uses, uses), "delegate {number}");
            String::new()
        });
    }
}

#[test]
fn random_programs() {
    for seed in seeds(40, 400, &[]) {
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
