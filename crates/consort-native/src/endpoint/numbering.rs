//! How calls are numbered and begun.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::sync::{Arc, atomic::Ordering::Release};

use super::identity::Endpoint;
use crate::{
    call::{
        operands::Operands,
        started::{CallContext, StartedCall},
        view::Call,
    },
    inbox::geometry::{SEQUENCE_BITS, SEQUENCE_MASK},
};

/// What the numbers of calls are rolled into one by: odd, so that of two histories that differ in
/// one call none becomes equal.
const ROLL: u64 = 0x9e37_79b9_7f4a_7c15;

impl Endpoint {
    /// Begins the next collective call of the team: every PE must make the same, with the same
    /// number of the call, by its name, and `steps`.
    ///
    /// # Safety
    /// The call is dropped before this PE makes another, and one future at a time drives it: its
    /// scratch memory is the PE's, and [`Call`] is `Sync` only so that such a future may move.
    #[inline(always)]
    pub unsafe fn begin<'c>(
        &'c self,
        name: u64,
        steps: u64,
        operands: &'c Operands<'c>,
    ) -> Call<'c> {
        let (_, position, word) = self.number(name, steps);
        let (job, group, scratch) = (&self.job, self.group(), &self.pe.scratch);
        Call::new(job, group, position, word, scratch, operands)
    }

    /// Begins the next collective call of the team, to be driven by an operation while other calls
    /// are made. It must end before the PE is a window ahead.
    pub fn start(&self, name: u64, steps: u64) -> StartedCall {
        // Before it has a number: who panics, since there is no memory, has not begun the call.
        let scratch = Some(self.pe.engine.scratch(self.pe.scratch.bytes()));
        let (number, _, word) = self.number(name, steps);
        self.pending_calls.start(number);
        let context =
            Arc::clone(self.context.borrow_mut().get_or_insert_with(|| self.new_context()));
        StartedCall { context, number, word, scratch }
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

    /// The number of the next call, its place in the window, and the word of its messages. Peers
    /// can see it from now on, by its name.
    #[inline(always)]
    fn number(&self, name: u64, steps: u64) -> (u64, usize, u64) {
        let call = self.calls.get();
        let sequence = self.sequence.get();
        // Messages carry the numbers of all calls so far: after one that did not match, none does.
        let rolled = self.rolled.get().wrapping_mul(ROLL).wrapping_add(name);
        self.calls.set(call + 1);
        self.sequence.set(sequence + steps);
        self.rolled.set(rolled);
        let group = self.group();
        let position = group.memory.geometry.position(call);
        let own = name << SEQUENCE_BITS | sequence & SEQUENCE_MASK;
        // Release: pairs with the acquire in `check_peers`, which may look up the call's name.
        group.own_recent(call).store(own, Release);
        (call, position, (rolled << SEQUENCE_BITS).wrapping_add(sequence))
    }

    /// A view outside of any collective, for giving and awaiting credits.
    ///
    /// # Safety
    /// As [`Endpoint::begin`].
    pub unsafe fn view<'c>(&'c self, operands: &'c Operands<'c>) -> Call<'c> {
        Call::new(&self.job, self.group(), 0, 0, &self.pe.scratch, operands)
    }
}
