//! The mail of a PE: signals, messages and exposures that have arrived and have not been taken yet.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use consort_fabric::{Channel, Credit, LINE_PAYLOAD_BYTES, Notification, Rank, Span, Step};

use crate::engine::Time;

/// A peer's exposed or symmetric memory.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    pub(crate) owner: Rank,
    pub(crate) span: Span,
    /// Whether it is symmetric memory. The owner does not expose it, and it needs no detach.
    pub(crate) reached: bool,
}

/// The state of one PE in asynchronous broadcasts.
#[derive(Debug, Default)]
pub(crate) struct Post {
    /// The buffer that peers read.
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// The notifications, with the times at which they arrived.
    pub(crate) notifications: RefCell<VecDeque<(Notification, Time)>>,
    /// The number of the latest of this PE's own notifications that each peer has acknowledged.
    pub(crate) acknowledged: RefCell<HashMap<Rank, u64>>,
}

/// A message that has arrived.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) from: Rank,
    pub(crate) call: u64,
    pub(crate) step: Step,
    pub(crate) data: Vec<u8>,
}

impl Message {
    fn lines(&self) -> u32 {
        u32::try_from(self.data.len().div_ceil(LINE_PAYLOAD_BYTES).max(1)).unwrap_or(u32::MAX)
    }
}

/// A call's position in the window, and a channel.
type Key = (u64, Channel);

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// The mail of one PE.
#[derive(Debug)]
pub(crate) struct Mail {
    /// The largest number of calls that may be pending at once.
    window: u64,
    /// The latest call and step signalled, and the sender.
    signals: Map<Key, (u64, Step, Rank)>,
    /// The messages, by the first of their lines.
    messages: BTreeMap<Key, Message>,
    exposures: Map<(u64, Rank, u32), Remote>,
    /// The number of messages of two-sided transfers that receivers have taken.
    pub(crate) taken: u64,
    pub(crate) detached: u64,
    /// The last quarter for which a peer has given a credit.
    credits: Map<(Rank, Credit), u64>,
}

impl Mail {
    /// Returns empty mail for a job with this window.
    pub(crate) fn new(window: u64) -> Self {
        Self {
            window,
            signals: Map::default(),
            messages: BTreeMap::new(),
            exposures: Map::default(),
            taken: 0,
            detached: 0,
            credits: Map::default(),
        }
    }

    /// Returns the largest number of calls that may be pending at once.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Records that the sender on `channel` has reached `step` of `call`.
    pub(crate) fn signal(&mut self, from: Rank, call: u64, channel: Channel, step: Step) {
        let seen = self.signals.entry((call % self.window, channel)).or_default();
        *seen = (*seen).max((call, step, from));
    }

    /// Returns the sender on `channel`, if it has reached `step` of `call`.
    pub(crate) fn signalled(&self, call: u64, channel: Channel, step: Step) -> Option<Rank> {
        let &(latest, reached, from) = self.signals.get(&(call % self.window, channel))?;
        assert!(latest <= call, "a signal of call {latest} arrived before call {call} was over");
        (latest == call && reached >= step).then_some(from)
    }

    /// Stores a message in the lines starting at `channel`, which must be free.
    pub(crate) fn put(&mut self, channel: Channel, message: Message) {
        let place = message.call % self.window;
        let end = channel.index() + message.lines();
        let last = (place, Channel::new(end - 1));
        let at_or_before = self.messages.range(..=last).next_back();
        if let Some((&(its_place, first), other)) = at_or_before {
            let free = its_place != place || first.index() + other.lines() <= channel.index();
            let Message { from, call, step, .. } = message;
            assert!(
                free,
                "message {step} of call {call} from PE {from} overwrites message {} of call {} \
                 from PE {}, which is not taken",
                other.step, other.call, other.from
            );
        }
        self.messages.insert((place, channel), message);
    }

    /// Takes the message of `step` of `call`.
    pub(crate) fn take(&mut self, call: u64, channel: Channel, step: Step) -> Option<Message> {
        let key = (call % self.window, channel);
        let is_it = |message: &Message| message.call == call && message.step == step;
        self.messages.get(&key).is_some_and(is_it).then(|| self.messages.remove(&key)).flatten()
    }

    pub(crate) fn expose(&mut self, call: u64, from: Rank, number: u32, remote: Remote) {
        self.exposures.insert((call, from, number), remote);
    }

    pub(crate) fn attach(&mut self, call: u64, from: Rank, number: u32) -> Option<Remote> {
        self.exposures.remove(&(call, from, number))
    }

    /// Records a peer's credit for a quarter. It also counts for all earlier quarters.
    pub(crate) fn credit(&mut self, from: Rank, credit: Credit, quarter: u64) {
        let last = self.credits.entry((from, credit)).or_default();
        *last = (*last).max(quarter);
    }

    /// Returns whether each of these peers has given this kind of credit for a quarter or a later
    /// one.
    pub(crate) fn has_credits(
        &self,
        mut from: impl Iterator<Item = Rank>,
        credit: Credit,
        quarter: u64,
    ) -> bool {
        from.all(|peer| self.credits.get(&(peer, credit)).is_some_and(|&last| last >= quarter))
    }
}

/// Hashes keys of a few small numbers, with a rotation and a multiplication for each number. No
/// adversary chooses the keys.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(call: u64, step: Step, bytes: usize) -> Message {
        Message { from: Rank(0), call, step, data: vec![0; bytes] }
    }

    #[test]
    fn message_is_taken_once_and_by_its_own_call() {
        let mut mail = Mail::new(16);
        mail.put(Channel::new(5), message(3, 1, 57));
        mail.put(Channel::new(7), message(3, 0, 0));
        mail.put(Channel::new(6), message(4, 0, 100));
        assert!(mail.take(3, Channel::new(5), 0).is_none());
        assert!(mail.take(3 + 16, Channel::new(5), 1).is_none());
        assert!(mail.take(3, Channel::new(5), 1).is_some());
        assert!(mail.take(3, Channel::new(5), 1).is_none());
    }

    #[test]
    #[should_panic(expected = "message 2 of call 1 from PE 0 overwrites message 0 of call 1")]
    fn a_line_is_not_overwritten_before_it_is_taken() {
        let mut mail = Mail::new(16);
        mail.put(Channel::new(5), message(1, 0, 57));
        mail.put(Channel::new(6), message(1, 2, 8));
    }

    #[test]
    #[should_panic(expected = "is not taken")]
    fn long_message_may_not_exceed_its_lines() {
        let mut mail = Mail::new(16);
        mail.put(Channel::new(6), message(1, 0, 8));
        mail.put(Channel::new(5), message(1, 2, 57));
    }

    #[test]
    fn credit_counts_for_its_quarter_and_earlier_ones() {
        let mut mail = Mail::new(16);
        let peers = [Rank(1), Rank(2)];
        let has =
            |mail: &Mail, credit, quarter| mail.has_credits(peers.into_iter(), credit, quarter);
        mail.credit(peers[0], Credit::Own, 1);
        assert!(!has(&mail, Credit::Own, 0));
        mail.credit(peers[1], Credit::Own, 0);
        assert!(has(&mail, Credit::Own, 0) && !has(&mail, Credit::Own, 1));
        assert!(!has(&mail, Credit::Group, 0), "each kind has its own quarters");
        mail.credit(peers[1], Credit::Own, 1);
        assert!(has(&mail, Credit::Own, 0) && has(&mail, Credit::Own, 1));
    }
}
