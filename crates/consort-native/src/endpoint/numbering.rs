//! Numbers calls and begins them.

#![expect(unsafe_code, reason = "declares requirements on its callers")]

use std::sync::{Arc, atomic::Ordering::Release};

use super::identity::Endpoint;
use crate::{
    call::{
        operands::Operands,
        started::{CallContext, StartedCall},
        view::CallView,
    },
    directory::blocks::HeapError,
    inbox::geometry::{SEQUENCE_BITS, SEQUENCE_MASK},
    launch::{form::refused, sites::Site},
};

/// The multiplier of the hash of all calls' name numbers. It is odd, so two histories that differ
/// in one call never have the same hash.
const ROLL: u64 = 0x9e37_79b9_7f4a_7c15;

impl Endpoint {
    /// Begins the next collective call of the team. Every PE must begin the same call, with the
    /// same `name` (the number of the call's name) and the same `steps`. Errors report that it was
    /// made at `site`.
    ///
    /// # Safety
    /// The call is dropped before this PE makes another, and one future at a time drives it. The
    /// call uses the PE's scratch memory, and [`CallView`] is `Sync` only so that such a future may
    /// move to another thread. Symmetric operands lie in this PE's heap of this job.
    #[inline(always)]
    pub unsafe fn begin<'c>(
        &'c self,
        name: u64,
        steps: u64,
        operands: &'c Operands<'c>,
        site: Site,
    ) -> CallView<'c> {
        let (_, position, word) = self.number(name, steps, site);
        let (job, group, scratch) = (&self.job, self.group(), &self.pe.scratch);
        CallView::new(job, group, position, word, scratch, operands)
    }

    /// Begins the next collective call of the team. An operation drives it while the PE makes other
    /// calls. It must be complete before the PE is a whole window of calls ahead.
    ///
    /// # Errors
    /// When there is no memory for its partial results. Then no call has begun.
    pub fn start(&self, name: u64, steps: u64, site: Site) -> Result<StartedCall, HeapError> {
        let scratch = self.pe.engine.scratch(self.pe.scratch.bytes());
        let scratch = Some(scratch.map_err(|reason| refused(self.job.config(), reason))?);
        let (number, _, word) = self.number(name, steps, site);
        self.pending_calls.start(number);
        let context =
            Arc::clone(self.context.borrow_mut().get_or_insert_with(|| self.new_context()));
        Ok(StartedCall { context, number, word, scratch })
    }

    #[cold]
    fn new_context(&self) -> Arc<CallContext> {
        Arc::new(CallContext {
            job: Arc::clone(&self.job),
            group: Arc::clone(self.group()),
            engine: Arc::clone(&self.pe.engine),
            pending_calls: Arc::clone(&self.pending_calls),
        })
    }

    /// Returns the number of the next call, its window position, and the word of its messages. From
    /// then on, peers can see the call's name.
    #[inline(always)]
    fn number(&self, name: u64, steps: u64, site: Site) -> (u64, usize, u64) {
        let call = self.calls.get();
        let sequence = self.sequence.get();
        // The word includes a hash of all calls so far: after a mismatch no message matches.
        let rolled = self.rolled.get().wrapping_mul(ROLL).wrapping_add(name);
        self.calls.set(call + 1);
        self.sequence.set(sequence + steps);
        self.rolled.set(rolled);
        let group = self.group();
        let position = group.memory.geometry.position(call);
        let own = name << SEQUENCE_BITS | sequence & SEQUENCE_MASK;
        let recent = group.own_recent(call);
        group.own_sites.note(call, site);
        // Release: pairs with the acquire in `check_peers`, which may look up the call's name.
        recent.store(own, Release);
        (call, position, (rolled << SEQUENCE_BITS).wrapping_add(sequence))
    }

    /// Returns a view outside of any collective call, for giving and awaiting credits.
    ///
    /// # Safety
    /// Same as [`Endpoint::begin`].
    pub unsafe fn view<'c>(&'c self, operands: &'c Operands<'c>) -> CallView<'c> {
        CallView::new(&self.job, self.group(), 0, 0, &self.pe.scratch, operands)
    }
}
