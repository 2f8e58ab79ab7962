//! Progress: work for the PE's nonblocking calls and for its peers.

#![expect(unsafe_code, reason = "declares requirements on its callers")]

use std::{
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    rc::Rc,
    sync::atomic::{Ordering::SeqCst, fence},
    time::Instant,
};

use consort_fabric::{Op, Poisoned};

use super::identity::Endpoint;
use crate::tally::Tally;

/// The number of calls of `progress` between two reads of the clock.
const VISITS_PER_GLANCE: u32 = 16;

impl Endpoint {
    /// Registers a future that this PE drives when it waits or calls `progress`, or that its helper
    /// thread drives. `also` counts the future until it is dropped.
    ///
    /// # Safety
    /// The future may be polled and dropped on any thread. What it borrows must live until the
    /// future is dropped: when it was ready, or at the latest in `Engine::clear`.
    pub unsafe fn launch<'f>(
        &self,
        operation: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Tally>,
    ) {
        // SAFETY: the caller's promise is what the engine requires.
        unsafe { self.pe.engine.launch(operation, also) };
    }

    /// Polls the operations, and now and then compares this PE's calls with its peers'. For a PE
    /// that is not in a call.
    ///
    /// # Panics
    /// When an operator panics. The job has then failed.
    pub fn progress(&self) {
        self.poll_operations();
        let visits = self.visits.get().wrapping_add(1);
        self.visits.set(visits);
        if !visits.is_multiple_of(VISITS_PER_GLANCE) {
            return; // reading the clock takes as long as the rest of a call of `progress`
        }
        let now = Instant::now();
        let since = self.glanced.get().unwrap_or(now);
        let is_due = now - since >= self.job.config().check_interval();
        self.glanced.set(Some(if is_due { now } else { since }));
        if is_due && self.pending_calls.first().is_some() && !self.job.is_poisoned() {
            self.check_peers();
        }
    }

    /// Like [`Self::progress`], for a PE that begins a call.
    pub fn begin_call(&self) {
        // Packets of different pairs of processes can overtake each other. So puts must be complete
        // before messages of a call can announce them.
        self.one_sided().settle();
        self.begin_one_sided();
    }

    /// Like [`Self::begin_call`], for an operation that does not need earlier puts to be complete.
    /// If only far PEs can be polled, it polls them only if no PE has looked for their packets for a
    /// while.
    pub fn begin_one_sided(&self) {
        if self.job.is_look_due() || !self.pe.engine.has_only(1) {
            self.progress();
        }
    }

    /// Polls all operations once, unless the helper thread is polling them. Returns whether this PE
    /// polled them.
    pub(super) fn poll_operations(&self) -> bool {
        self.pe.engine.poll().unwrap_or_else(|panic| {
            self.job.fail(self.pe.rank, &panic);
            resume_unwind(panic)
        })
    }

    /// Gives a credit as soon as all calls so far are complete.
    pub fn owe(&self, credit: u64) {
        let give = |credit| self.group().give_credit(credit);
        self.pending_calls.owe(self.calls.get(), credit, give);
    }

    /// Waits until all calls of this PE before number `end` are complete.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn await_own(&self, end: u64) -> Op {
        while let Some(first) = self.pending_calls.first().filter(|&first| first < end) {
            self.block_until(first, None, || {
                self.pending_calls.first().is_none_or(|now| now > first).then_some(())
            })?;
        }
        Ok(())
    }

    /// Waits until all near PEs of the team have begun this PE's last call. Does not wait for far
    /// PEs, because it is not known whether they have.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn await_peers(&self) -> Op {
        let Some(last) = self.calls.get().checked_sub(1) else { return Ok(()) };
        let group = self.group();
        self.block_until(last, None, || group.have_begun(last).then_some(())).map(drop)
    }

    /// Returns the number of this PE's first pending nonblocking call.
    pub fn first_under_way(&self) -> Option<u64> {
        self.pending_calls.first()
    }

    /// Registers a callback that runs now and then while this PE waits in any call, until the
    /// callback is dropped. It must not make calls and must not wait.
    pub fn add_progress_callback(&self, callback: &Rc<dyn Fn()>) {
        let mut callbacks = self.pe.callbacks.borrow_mut();
        callbacks.retain(|callback| callback.strong_count() > 0);
        callbacks.push(Rc::downgrade(callback));
    }

    /// Forgets all progress callbacks.
    pub fn forget_callbacks(&self) {
        self.pe.callbacks.borrow_mut().clear();
    }

    /// Returns a hash of all calls so far. It is equal on PEs that have made the same calls.
    pub fn fingerprint(&self) -> u64 {
        self.rolled.get() ^ self.sequence.get().rotate_left(32)
    }

    /// Records that this PE makes no more calls in this team. Peers that wait for such a call then
    /// fail.
    fn mark_finished(&self) {
        self.group().finish(self.sequence.get());
    }

    /// As [`Endpoint::finish`], until the next region, and without a comparison of calls. The
    /// caller passes the `number` of the current region, because another PE has just written the
    /// line that holds it.
    pub fn finish_region(&self, number: u64) {
        self.group().finish_region(number, self.sequence.get());
    }

    /// Compares this PE's recent calls with its peers'.
    pub(super) fn check_peers(&self) {
        self.group().check_peers(self.calls.get(), self.sequence.get());
    }

    /// Records that this PE makes no more calls in this team, and compares its calls with its peers'.
    /// Peers that wait for such a call then fail.
    ///
    /// # Errors
    /// When this PE is the first to detect that calls did not match, or that a finished peer has
    /// made fewer or more calls.
    pub fn finish(&self) -> Op {
        if self.job.is_poisoned() {
            return Ok(()); // the failure has been reported already
        }
        self.mark_finished();
        fence(SeqCst); // if two PEs finish at once, at least one sees the other's word
        self.check_peers();
        self.group().check_finished(self.sequence.get());
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::poll_fn,
        hint,
        panic::Location,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        },
        task::Poll,
        thread,
        time::Duration,
    };

    use consort_fabric::Rank;

    use super::*;
    use crate::{
        call::operands::Operands,
        launch::{config::Config, job::Job},
    };

    /// The peer sends the last message and finishes, between a poll of the operations and a check
    /// of this PE. Then this PE gets no core until the next check is due.
    #[test]
    fn message_sent_before_the_peer_finished_ends_the_wait() {
        let job = Job::new(Config::of_two()).expect("some memory");
        let [end, peer] =
            [0, 1].map(|rank| Endpoint::new(Arc::clone(&job), Rank(rank)).expect("memory"));
        let [has_come, is_over] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (comes, ends) = (Arc::clone(&has_come), Arc::clone(&is_over));
        let operation = poll_fn(move |_| {
            ends.store(comes.load(Relaxed), Relaxed);
            if comes.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
        });
        // SAFETY: the future owns everything that it uses, and any thread may use it.
        unsafe { end.launch(Box::pin(operation), None) };
        let pauses = Cell::new(0);
        let callback: Rc<dyn Fn()> = Rc::new(move || {
            if pauses.replace(pauses.get() + 1) == 1 {
                thread::sleep(3 * Config::of_two().check_interval());
                has_come.store(true, Relaxed);
                peer.mark_finished();
            }
        });
        end.add_progress_callback(&callback);
        let ended = end.block_until(0, None, || is_over.load(Relaxed).then_some(()));
        assert_eq!((ended, job.failure()), (Ok(Some(())), None));
    }

    /// A peer makes its last call and finishes while this PE compares its calls again and again.
    /// Its last call is the same.
    #[test]
    fn peer_that_finishes_during_a_comparison_has_made_its_calls() {
        const REGIONS: usize = 200_000;
        const LIMIT: Duration = Duration::from_secs(2); // on a busy machine
        let job = Job::new(Config::of_two()).expect("some memory");
        let (arrived, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let meet = |place: usize| {
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < 2 * (place + 1) {
                hint::spin_loop();
            }
        };
        let make_a_call = |end: &Endpoint| {
            // SAFETY: the call is dropped immediately, and has no symmetric operands.
            drop(unsafe { end.begin(1, 1, &Operands::NONE, Location::caller()) });
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let end = Endpoint::new(Arc::clone(&job), Rank(1)).expect("memory");
                for region in (0..REGIONS).take_while(|_| !is_over.load(SeqCst)) {
                    meet(2 * region);
                    make_a_call(&end);
                    end.mark_finished();
                    meet(2 * region + 1);
                }
            });
            let end = Endpoint::new(Arc::clone(&job), Rank(0)).expect("memory");
            let begun = Instant::now();
            for region in (0..REGIONS).take_while(|_| !is_over.load(SeqCst)) {
                make_a_call(&end);
                meet(2 * region);
                while !end.group().is_alone() {
                    end.check_peers();
                }
                is_over.store(job.is_poisoned() || begun.elapsed() > LIMIT, SeqCst);
                job.begin_region(region as u64 + 1);
                meet(2 * region + 1);
            }
        });
        assert_eq!(job.failure(), None);
    }
}
