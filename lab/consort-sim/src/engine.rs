//! Discrete events in virtual time: decides which task runs next, and when.
//!
//! Time is counted in picoseconds. Simultaneous events occur in the order in which they were
//! created. In explored schedules, their order depends on the seed. A task is a PE's future: it
//! sleeps until a time, or waits until it is woken.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    future::{Future, poll_fn},
    task::Poll,
};

use consort_fabric::splitmix64;

/// Picoseconds since the start of the simulation.
pub(crate) type Time = u64;

/// Converts nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive")]
pub(crate) fn picoseconds(ns: f64) -> Time {
    (ns * 1e3).round() as Time
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// The task continues.
    Resume(u32),
    /// The parcel with this number arrives.
    Arrive(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Time,
    /// Orders simultaneous events.
    tie: u64,
    what: What,
}

/// The clock, the queue of events, and the random numbers.
pub(crate) struct Engine {
    now: Cell<Time>,
    made: Cell<u64>,
    happened: Cell<u64>,
    queue: RefCell<BinaryHeap<Reverse<Event>>>,
    dice: Cell<u64>,
    /// Whether simultaneous events occur in random order.
    shuffles: bool,
    /// No task continues beyond this time without an event.
    horizon: Cell<Time>,
    /// The running task.
    running: Cell<u32>,
    /// The tasks that wait to be woken.
    waiting: Box<[Cell<bool>]>,
}

impl Engine {
    pub(crate) fn new(tasks: u32, seed: u64, shuffles: bool) -> Self {
        Self {
            now: Cell::new(0),
            made: Cell::new(0),
            happened: Cell::new(0),
            queue: RefCell::default(),
            dice: Cell::new(seed),
            shuffles,
            horizon: Cell::new(Time::MAX),
            running: Cell::new(0),
            waiting: (0..tasks).map(|_| Cell::new(false)).collect(),
        }
    }

    /// Returns the present time.
    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    /// Returns the number of events so far.
    pub(crate) fn happened(&self) -> u64 {
        self.happened.get()
    }

    /// Returns the next random number.
    fn roll(&self) -> u64 {
        let mut state = self.dice.get();
        let number = splitmix64(&mut state);
        self.dice.set(state);
        number
    }

    /// Returns a random number below `bound`; 0 if `bound` is 0.
    pub(crate) fn roll_below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.roll() % bound }
    }

    /// Schedules `what` at the time `at`, or now if that time has passed.
    pub(crate) fn at(&self, at: Time, what: What) {
        let made = self.made.get();
        self.made.set(made + 1);
        let tie = if self.shuffles { self.roll() } else { made };
        let at = at.max(self.now.get());
        self.queue.borrow_mut().push(Reverse(Event { at, tie, what }));
    }

    /// Removes the next event and advances the clock to its time. Returns `None` if there is no
    /// event.
    pub(crate) fn next(&self) -> Option<What> {
        let Reverse(event) = self.queue.borrow_mut().pop()?;
        self.now.set(event.at);
        self.happened.set(self.happened.get() + 1);
        if let What::Resume(task) = event.what {
            self.running.set(task);
        }
        Some(event.what)
    }

    /// Wakes a task if it waits.
    pub(crate) fn wake(&self, task: u32) {
        if self.waiting[task as usize].replace(false) {
            self.at(self.now(), What::Resume(task));
        }
    }

    /// Makes the running task sleep until a time.
    pub(crate) fn sleep_until(&self, until: Time) -> impl Future<Output = ()> {
        let mut armed = false;
        poll_fn(move |_| {
            if self.now() >= until {
                return Poll::Ready(());
            }
            if !armed {
                armed = true;
                self.at(until, What::Resume(self.running.get()));
            }
            Poll::Pending
        })
    }

    /// Makes the running task sleep for a time.
    pub(crate) fn sleep(&self, time: Time) -> impl Future<Output = ()> {
        self.sleep_until(self.now() + time)
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.borrow().peek().map(|Reverse(event)| event.at)
    }

    /// Sets the time beyond which no task continues without an event.
    pub(crate) fn set_horizon(&self, horizon: Time) {
        self.horizon.set(horizon);
    }

    /// Makes the running task sleep until a time. If no other event comes before, the clock
    /// advances at once, without an event.
    pub(crate) fn reach(&self, until: Time) -> impl Future<Output = ()> {
        let mut armed = false;
        poll_fn(move |_| {
            if self.now() >= until {
                return Poll::Ready(());
            }
            if !armed {
                let first = self.next_at().is_none_or(|next| next > until);
                if first && until <= self.horizon.get() {
                    self.now.set(until);
                    return Poll::Ready(());
                }
                armed = true;
                self.at(until, What::Resume(self.running.get()));
            }
            Poll::Pending
        })
    }

    /// Makes the running task wait until `test` returns a value. It is tested each time the task is
    /// woken.
    pub(crate) fn wait<T>(&self, mut test: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        poll_fn(move |_| match test() {
            Some(value) => Poll::Ready(value),
            None => {
                self.waiting[self.running.get() as usize].set(true);
                Poll::Pending
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_creation() {
        let engine = Engine::new(3, 0, false);
        engine.at(20, What::Resume(0));
        engine.at(10, What::Resume(1));
        engine.at(20, What::Resume(2));
        let order: Vec<_> = std::iter::from_fn(|| engine.next()).collect();
        assert_eq!(order, [What::Resume(1), What::Resume(0), What::Resume(2)]);
        assert_eq!(engine.now(), 20);
    }

    #[test]
    fn seed_determines_order_of_simultaneous_events() {
        let order = |seed| {
            let engine = Engine::new(8, seed, true);
            (0..8).for_each(|task| engine.at(5, What::Resume(task)));
            std::iter::from_fn(|| engine.next()).collect::<Vec<_>>()
        };
        assert_eq!(order(7), order(7));
        assert!((0..20).any(|seed| order(seed) != order(7)));
    }

    #[test]
    fn lone_pe_needs_no_event() {
        let engine = Engine::new(2, 0, false);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut reach =
            |until| std::pin::pin!(engine.reach(until)).as_mut().poll(&mut context).is_ready();
        assert!(reach(10));
        engine.at(20, What::Resume(1));
        assert!(reach(19) && !reach(20));
        assert_eq!((engine.now(), engine.next()), (19, Some(What::Resume(1))));
        engine.set_horizon(25);
        assert!(!reach(26));
    }

    #[test]
    fn only_waiting_pe_is_woken() {
        let engine = Engine::new(2, 0, false);
        engine.wake(1);
        assert_eq!(engine.next(), None);
    }
}
