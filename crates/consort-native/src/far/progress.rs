//! Sending and delivering packets, and waits for replies.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use consort_fabric::Rank;

use super::{
    link::{Far, Link},
    packet::{Packet, Request},
};
use crate::launch::{failure::Failure, job::Job, reason};
use consort_machine::{system::clock, wait::spin_budget::nap_after};

/// How long processes wait for the others when they end in a failed job: first the process that
/// should report why the job has failed, then the other processes.
const SHUTDOWN_LIMITS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(4)];
/// A PE that begins a call looks for packets if no thread has done so for this many nanoseconds.
const DUE_NS: u64 = 20_000;
/// How long a thread yields before it naps between two looks for a reply.
const YIELDS: Duration = Duration::from_micros(200);

/// The result of a thread's look for packets of far PEs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Received {
    /// The thread has not looked, because another thread is looking.
    Busy,
    /// Nothing has arrived.
    #[default]
    Nothing,
    /// Something has arrived.
    Something,
}

/// The pauses of a thread between looks.
#[derive(Default)]
pub(super) struct PollBackoff(Option<Instant>);

impl PollBackoff {
    /// Returns how long the thread has waited.
    pub(super) fn waited(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    pub(super) fn pause(&mut self) {
        let waited = self.0.get_or_insert_with(Instant::now).elapsed();
        if waited < YIELDS { thread::yield_now() } else { thread::sleep(nap_after(waited)) }
    }
}

fn ns_since(then: &AtomicU64) -> u64 {
    clock::now_ns().saturating_sub(then.load(Relaxed))
}

/// Progress. Without far PEs there is nothing to do.
impl Job {
    /// Sends what is queued for far PEs, and delivers what they have sent, unless another thread is
    /// doing so.
    #[inline]
    pub(crate) fn serve(&self) {
        self.with_far(|far| self.serve_far(far, usize::MAX));
    }

    /// Like [`Self::serve`], but delivers only one frame, because its contents may end the wait of
    /// the PE that looks.
    pub(crate) fn look(&self) -> Received {
        self.with_far(|far| self.serve_far(far, 1))
    }

    /// Sends what is queued.
    #[inline]
    pub(crate) fn flush(&self) {
        self.with_far(Far::flush);
    }

    /// Like [`Self::flush`], unless another thread uses the link: that thread sends everything when
    /// it is done.
    pub(crate) fn flush_now(&self) {
        self.with_far(|far| far.try_link().map(|mut link| link.flush()));
    }

    /// Returns whether a PE that begins a call should look, because no thread has for a while.
    pub(crate) fn is_look_due(&self) -> bool {
        self.far().is_none_or(|far| ns_since(&far.looked_ns) > DUE_NS)
    }

    /// Returns when a thread last looked. A wait for a far PE is worth testing once after each
    /// look, which takes as long as the test.
    pub(crate) fn last_look(&self) -> u64 {
        self.with_far(|far| far.looked_ns.load(Relaxed))
    }

    /// Returns for how long nothing has arrived or been in flight, if there are far PEs.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.far().map(|far| Duration::from_nanos(ns_since(&far.heard_ns)))
    }

    /// Waits until `test` finds something, in a job with far PEs. Returns `None` in other jobs.
    #[inline]
    pub(crate) fn wait_far<R>(&self, test: impl Fn() -> Option<R>) -> Option<R> {
        self.far()?;
        let mut backoff = PollBackoff::default();
        loop {
            self.serve();
            if let Some(found) = test() {
                return Some(found);
            }
            backoff.pause();
        }
    }

    /// Waits until all puts to far PEs are complete.
    #[inline(always)]
    pub(crate) fn settle(&self) {
        self.with_far(|far| self.settle_far(far));
    }

    /// Like [`Self::settle`], but only if a long put may not be complete. Far PEs carry out
    /// everything else in order.
    #[inline(always)]
    pub(crate) fn settle_long(&self) {
        self.with_far(|far| {
            if far.link().writes.has_pending_long_puts() {
                self.settle_far(far);
            }
        });
    }
}

impl Job {
    /// Sends what is queued, and delivers up to `frames` frames.
    #[cold]
    fn serve_far(&self, far: &Far, frames: usize) -> Received {
        let Some(mut link) = far.try_link() else { return Received::Busy };
        let mut look = Received::Nothing;
        far.note_look();
        link.flush();
        for from in link.take_stalled() {
            self.deliver_or_fail(far, &mut link, from);
        }
        for _ in 0..frames {
            match link.receive() {
                Ok(None) => break,
                Ok(Some((from, frame))) => {
                    look = Received::Something;
                    far.note_arrival();
                    link.keep_frame(from, frame);
                    self.deliver_or_fail(far, &mut link, from);
                }
                Err(lost) => {
                    let reason = format!("its process cannot reach another: {lost}");
                    self.fail_for(far, &mut link, far.own(), reason);
                    self.abandon(&mut link);
                    break;
                }
            }
        }
        link.end_pushes();
        if link.transport.is_moving() {
            far.note_arrival(); // a transfer counts as an arrival: its progress needs further looks
        }
        link.flush(); // replies
        look
    }

    /// Delivers the packets that have arrived from a process.
    fn deliver_or_fail(&self, far: &Far, link: &mut Link, from: u32) {
        if self.deliver_from(link, from).is_none() {
            let reason = "its process sent what another does not understand";
            self.fail_for(far, link, from, reason.to_owned());
        }
        link.note_stalled(from);
        link.take_woken().into_iter().for_each(|pe| self.wake(pe));
    }

    /// Fails the job, with the link locked, because of what a process has done. The failure names
    /// the process's first PE.
    fn fail_for(&self, far: &Far, link: &mut Link, process: u32, reason: String) {
        let rank = Rank(far.processes().members(process, self.config().pes).first);
        let words = reason::encode(&Failure::Pe { rank, reason });
        if self.claim(&words) {
            link.send_to_all(&Packet::Failed {}, &words);
        }
    }

    /// Waits for the reply to a request. `None` if the job fails first.
    fn await_reply(&self, far: &Far, id: u64) -> Option<Vec<u64>> {
        let mut backoff = PollBackoff::default();
        loop {
            self.serve();
            if let Some(reply) = far.take_reply(id) {
                return Some(reply);
            }
            if self.is_poisoned() {
                far.forget_request(id);
                return None;
            }
            backoff.pause();
        }
    }

    /// Sends a request to the process of a PE, and waits for the reply.
    pub(super) fn request(
        &self,
        far: &Far,
        pe: Rank,
        request: Request,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> Option<Vec<u64>> {
        let id = far.request(pe, request, data);
        self.await_reply(far, id)
    }

    /// Waits until far PEs have carried out everything that this process has sent them.
    #[cold]
    pub(super) fn settle_far(&self, far: &Far) {
        for id in far.request_fences() {
            if self.await_reply(far, id).is_none() {
                return;
            }
        }
    }

    /// Reports to the other processes why this one has failed.
    pub(crate) fn announce_failure(&self, reason: &[u64]) {
        self.with_far(|far| far.link().send_to_all(&Packet::Failed {}, reason));
    }

    /// Reports, once, that the programs of this process have ended.
    pub(crate) fn announce_end(&self) {
        let Some(link) = self.link() else { return };
        let mut link = link.link();
        if !std::mem::replace(&mut link.has_ended, true) {
            link.send_to_all(&Packet::Ended {}, &[]);
        }
    }

    /// Ends all processes with an exit status, if a transport connects them. For a program whose
    /// process exits at once. Does nothing otherwise, or if a thread keeps the link locked for
    /// long.
    pub fn abort(&self, status: u8) {
        let Some(link) = self.link() else { return };
        let mut backoff = PollBackoff::default();
        while backoff.waited() < SHUTDOWN_LIMITS[0] {
            if let Some(mut link) = link.try_link() {
                return link.transport.abort(status);
            }
            backoff.pause();
        }
    }

    /// Closes the transport, which ends all processes, because the job has failed.
    #[cold]
    pub(super) fn abandon(&self, link: &mut Link) {
        let failure = self.failure().map(|failure| failure.to_string());
        link.close(Some(failure.as_deref().unwrap_or("the job has failed for an unknown reason")));
    }

    /// Returns how long this process waits for the others when it ends, in a job that has failed.
    /// The process of the PE that has failed gives up first, so that it alone reports why.
    fn shutdown_limit(&self, far: &Far) -> Duration {
        let speaks = match self.failure() {
            Some(Failure::Pe { rank, .. } | Failure::Ended { rank, .. }) => far.is_own(rank),
            _ => far.own() == 0,
        };
        SHUTDOWN_LIMITS[usize::from(!speaks)]
    }

    /// Waits until the programs of all processes have ended, and closes the transport, if there is
    /// one. In a job that has failed, it waits only for a while.
    ///
    /// Then each process announces that it sends nothing more, and waits for the announcements of
    /// all others. It has received everything that was sent before them.
    pub(crate) fn shut_down(&self) {
        let Some(far) = self.link() else { return };
        let (mut backoff, mut since_failure) = (PollBackoff::default(), None);
        loop {
            self.serve_far(far, usize::MAX);
            if self.is_poisoned() {
                since_failure.get_or_insert_with(Instant::now);
            }
            let is_abandoned =
                since_failure.is_some_and(|since| since.elapsed() > self.shutdown_limit(far));
            let mut link = far.link();
            let others = link.transport.processes() - 1;
            if link.ended == others && !link.is_closing {
                link.send_to_all(&Packet::Closing {}, &[]);
                link.is_closing = true;
            }
            let is_over = link.closing == others && link.is_closing && link.is_flushed();
            if is_over {
                return link.close(None);
            }
            if is_abandoned {
                return self.abandon(&mut link);
            }
            drop(link);
            backoff.pause();
        }
    }
}
