//! Hardware message queues. A thread's buffer has queues of incoming messages and one queue of
//! answers.
//!
//! A message is a release, so a fence precedes it, except around [private
//! sections](super::PrivateSections).
//!
//! If the buffer has no room for a message, the message waits in the network. Its sender does not
//! send the next message until the first one has entered the buffer. The model leaves out that
//! queues share the ways of a buffer, and that messages meet on the links.

use super::{
    costs::MessageCosts,
    tally::Stall,
    traffic::{Message, TrafficItem},
    world::{ThreadState, WaitsFor, World},
};
use crate::engine::Time;

impl World {
    /// Sends a message. The engine is at the thread's clock.
    pub(super) async fn post(
        &self,
        costs: &MessageCosts,
        (from, to): (u32, u32),
        queue: Option<u64>,
        words: Vec<u64>,
    ) {
        if self.sections.is_none() {
            self.release(from).await;
            self.drain(from, Stall::Fence, |state| state.unseen.borrow().is_empty()).await;
        }
        let state = self.thread(from);
        self.idle(from, WaitsFor::Room(to), |state| (state.backed_up.get() == 0).then_some(()))
            .await;
        let issue = (words.len() as Time + 1) * costs.word;
        state.clock.set(state.clock.get() + issue);
        let hops = self.costs.distance(state.core, self.thread(to).core) as Time;
        let at = state.clock.get() + costs.network + hops * costs.hop;
        self.dispatch(TrafficItem::Message(Message { from, to, queue, words }), at);
        state.tally.borrow_mut().messages += 1;
    }

    /// Delivers a message that has arrived at its receiver.
    pub(super) fn deliver(&self, number: u32) {
        let TrafficItem::Message(message) = self.traffic.borrow_mut().take(number) else { return };
        let (from, to) = (self.thread(message.from), message.to);
        let mut inbox = self.thread(to).inbox.borrow_mut();
        let most = self.costs.messages.as_ref().map_or(0, |costs| costs.buffer_words);
        let room = inbox.words + message.words.len() <= most;
        if room && inbox.backed_up.is_empty() {
            inbox.admit(message);
            self.engine.wake(to);
        } else {
            from.backed_up.set(from.backed_up.get() + 1);
            inbox.backed_up.push_back(message);
        }
    }

    /// Waits for the next message of a queue and takes it. The engine is at the thread's clock.
    pub(super) async fn take_message(
        &self,
        costs: &MessageCosts,
        me: u32,
        queue: Option<u64>,
    ) -> Vec<u64> {
        let waits = queue.map_or(WaitsFor::Answer, WaitsFor::Message);
        let next = |state: &ThreadState| {
            state.inbox.borrow_mut().queues.get_mut(&queue).and_then(|queue| queue.pop_front())
        };
        let words = self.idle(me, waits, next).await;
        let state = self.thread(me);
        state.clock.set(state.clock.get() + words.len() as Time * costs.word);
        let mut inbox = state.inbox.borrow_mut();
        inbox.words -= words.len();
        while let Some(next) = inbox.backed_up.front() {
            if inbox.words + next.words.len() > costs.buffer_words {
                break;
            }
            let Some(message) = inbox.backed_up.pop_front() else { break };
            let from = self.thread(message.from);
            from.backed_up.set(from.backed_up.get() - 1);
            self.engine.wake(message.from);
            inbox.admit(message);
        }
        words
    }

    /// Makes the thread idle until there is a value.
    pub(super) async fn idle<T>(
        &self,
        me: u32,
        waits: WaitsFor,
        test: impl Fn(&ThreadState) -> Option<T>,
    ) -> T {
        let state = self.thread(me);
        if let Some(value) = test(state) {
            return value;
        }
        state.waits_for.set(Some(waits));
        let value = self.engine.wait(|| test(state)).await;
        state.waits_for.set(None);
        let time = self.engine.now().saturating_sub(state.clock.get());
        state.clock.set(state.clock.get() + time);
        state.tally.borrow_mut().idle += time;
        value
    }
}
