//! A thread's incoming messages over cache lines, for machines without hardware message queues.
//!
//! A ring of lines with many senders and one receiver (Vyukov 2010). Lines are numbered in the
//! order of their use. Line `n` is line `n mod LINES` of the ring. Its last word is its state:
//!
//! | last word | line `n` |
//! | --- | --- |
//! | `2 (n / LINES)` | is free |
//! | `2 (n / LINES) + 1` | is full |
//!
//! A sender takes the numbers of all lines of its message with one atomic addition, so the lines
//! are consecutive. It waits until they are free and fills them. It publishes the first one last,
//! so a receiver that finds it full has the whole message. The receiver empties lines in order, and
//! puts messages for other queues aside. A message begins with its queue and its number of words.
//!
//! A reply has its own line: the word, and a flag that is 1 while the reply is there.
//!
//! Cost: one addition and the transfers of the lines; for a reply, one transfer.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use super::Until;
use super::{Line, Machine, Queue};

/// Lines of a ring; few in a loom model.
const LINES: usize = if cfg!(loom) { 2 } else { 64 };
/// The index of the word with a line's state. The data words come before it.
const STATE: usize = 7;
/// Words of a message's first line that carry its header rather than data.
const HEAD: usize = 2;
/// How long a sender waits for room before it takes in its own messages, in nanoseconds: the first
/// time and the longest. The time doubles with each wait. Otherwise hundreds of senders would keep
/// the system busy by waking so often.
const ROOM_NS: [u64; 2] = [100_000, 10_000_000];

/// Indexes of words in the line for answers.
const ANSWER: usize = 0;
const IS_THERE: usize = 1;

/// State that only the receiver uses, so reading and writing it is not an access to the machine.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ReceiverState {
    /// The number of the next line.
    next: AtomicU64,
    /// The number of messages that were put aside.
    put_aside: AtomicU64,
    aside: Mutex<VecDeque<(Queue, Vec<u64>)>>,
}

/// The memory for a thread's incoming messages and answers. Only the thread with this number
/// receives from it.
#[derive(Debug)]
pub struct Mailbox {
    /// Word 0: the number of lines that senders have taken so far.
    taken: Line,
    lines: Box<[Line]>,
    answer: Line,
    own: ReceiverState,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            taken: Line::default(),
            lines: (0..LINES).map(|_| Line::default()).collect(),
            answer: Line::default(),
            own: ReceiverState::default(),
        }
    }
}

impl Mailbox {
    /// The largest number of words in a message.
    pub const MESSAGE_WORDS: usize = LINES * STATE - HEAD;

    /// Returns all lines that several threads use.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().chain([&self.taken, &self.answer])
    }

    /// Returns the line with this number, and the value of its state while it is free.
    #[inline(always)]
    fn line(&self, number: u64) -> (&Line, u64) {
        let place = usize::try_from(number % LINES as u64).unwrap_or(0);
        (&self.lines[place], number / LINES as u64 * 2)
    }

    fn aside(&self) -> MutexGuard<'_, VecDeque<(Queue, Vec<u64>)>> {
        self.own.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to this mailbox. The caller takes in messages to `mine`, its own mailbox,
    /// while it waits for room, because the receiver may itself be waiting for room there.
    ///
    /// # Errors
    /// When the wait ends early.
    ///
    /// # Panics
    /// When the message has more than [`Mailbox::MESSAGE_WORDS`] words.
    #[inline]
    pub async fn send<'m, M: Machine>(
        &self,
        m: &M,
        mine: impl Fn() -> &'m Self,
        queue: Queue,
        message: &[u64],
    ) -> Result<(), M::Stop> {
        let (count, most) = (message.len(), Self::MESSAGE_WORDS);
        assert!(count <= most, "a message has {count} words; at most {most} fit the queue");
        let lines = (HEAD + count).div_ceil(STATE) as u64;
        let first = m.fetch_add(&self.taken[0], lines, Relaxed).await;
        let mut words = [queue.0, count as u64].into_iter().chain(message.iter().copied());
        for number in first..first + lines {
            let (line, free) = self.line(number);
            let [mut room_ns, longest] = ROOM_NS;
            // Pairs with the release in `take`.
            while m.load(&line[STATE], Acquire).await != free {
                mine().take_in(m).await;
                let at = m.now_ns() + room_ns;
                room_ns = (2 * room_ns).min(longest);
                m.wait_until_time(&line[STATE], Until::Equals(free), at).await?;
            }
            for (place, word) in line[..STATE].iter().zip(words.by_ref()) {
                m.store(place, word, Relaxed).await;
            }
        }
        for number in (first..first + lines).rev() {
            let (line, free) = self.line(number);
            m.store(&line[STATE], free + 1, Release).await; // pairs with the receiver's acquire
        }
        m.wake(&self.line(first).0[STATE]);
        Ok(())
    }

    /// Returns the number of the next line.
    #[inline(always)]
    fn next(&self) -> u64 {
        self.own.next.load(Relaxed)
    }

    /// Returns the queue of the next message in the ring, if there is one.
    #[inline(always)]
    async fn next_queue<M: Machine>(&self, m: &M) -> Option<Queue> {
        let (line, free) = self.line(self.next());
        if m.load(&line[STATE], Acquire).await != free + 1 {
            return None;
        }
        Some(Queue(m.load(&line[0], Relaxed).await))
    }

    /// Takes the next message from the ring. Passes its words to `keep` and returns their number.
    #[inline(always)]
    async fn take<M: Machine>(&self, m: &M, mut keep: impl FnMut(u64)) -> usize {
        let mut number = self.next();
        let (mut line, mut free) = self.line(number);
        let count = usize::try_from(m.load(&line[1], Relaxed).await).unwrap_or(0);
        let (mut begin, mut left) = (HEAD, count);
        loop {
            let here = left.min(STATE - begin);
            for word in &line[begin..begin + here] {
                keep(m.load(word, Relaxed).await);
            }
            m.store(&line[STATE], free + 2, Release).await; // pairs with the acquire in `send`
            m.wake(&line[STATE]);
            number += 1;
            left -= here;
            if left == 0 {
                self.own.next.store(number, Relaxed);
                return count;
            }
            (line, free) = self.line(number);
            begin = 0;
        }
    }

    /// Puts the next message in the ring aside.
    #[cold]
    async fn put_aside<M: Machine>(&self, m: &M, queue: Queue) {
        let mut words = Vec::new();
        self.take(m, |word| words.push(word)).await;
        let mut aside = self.aside();
        aside.push_back((queue, words));
        self.own.put_aside.store(aside.len() as u64, Relaxed);
    }

    /// Puts all messages in the ring aside.
    async fn take_in<M: Machine>(&self, m: &M) {
        while let Some(queue) = self.next_queue(m).await {
            self.put_aside(m, queue).await;
        }
    }

    /// Takes a message for this queue that was put aside.
    #[cold]
    fn take_aside(&self, queue: Queue) -> Option<Vec<u64>> {
        let mut aside = self.aside();
        let index = aside.iter().position(|(to, _)| *to == queue)?;
        let (_, words) = aside.remove(index)?;
        self.own.put_aside.store(aside.len() as u64, Relaxed);
        Some(words)
    }

    #[inline(always)]
    fn has_aside(&self) -> bool {
        self.own.put_aside.load(Relaxed) != 0
    }

    /// Waits for the next message of a queue and takes it.
    ///
    /// # Errors
    /// When the wait ends early.
    ///
    /// # Panics
    /// When the message does not have `WORDS` words.
    #[inline]
    pub async fn receive<M: Machine, const WORDS: usize>(
        &self,
        m: &M,
        queue: Queue,
    ) -> Result<[u64; WORDS], M::Stop> {
        if self.has_aside()
            && let Some(words) = self.take_aside(queue)
        {
            let count = words.len();
            return Ok(words.try_into().unwrap_or_else(|_| wrong(count)));
        }
        loop {
            let (line, free) = self.line(self.next());
            m.wait_until(&line[STATE], Until::Equals(free + 1)).await?;
            let to = Queue(m.load(&line[0], Relaxed).await);
            if to != queue {
                self.put_aside(m, to).await;
                continue;
            }
            let (mut message, mut places) = ([0; WORDS], 0..WORDS);
            let keep = |word| {
                if let Some(place) = places.next() {
                    message[place] = word;
                }
            };
            let count = self.take(m, keep).await;
            return Ok(if count == WORDS { message } else { wrong(count) });
        }
    }

    /// Returns whether there is no message for this queue.
    #[inline]
    pub async fn is_empty<M: Machine>(&self, m: &M, queue: Queue) -> bool {
        while let Some(to) = self.next_queue(m).await {
            if to == queue {
                return false;
            }
            self.put_aside(m, to).await;
        }
        !self.has_aside() || self.aside().iter().all(|(to, _)| *to != queue)
    }

    /// Answers the thread that owns this mailbox. That thread waits for the answer, or is about to.
    #[inline]
    pub async fn answer<M: Machine>(&self, m: &M, value: u64) {
        m.store(&self.answer[ANSWER], value, Relaxed).await;
        m.store(&self.answer[IS_THERE], 1, Release).await; // pairs with `receive_answer`
        m.wake(&self.answer[IS_THERE]);
    }

    /// Waits for the answer and takes it.
    ///
    /// # Errors
    /// When the wait ends early.
    #[inline]
    pub async fn receive_answer<M: Machine>(&self, m: &M) -> Result<u64, M::Stop> {
        m.wait_until(&self.answer[IS_THERE], Until::Equals(1)).await?;
        let value = m.load(&self.answer[ANSWER], Relaxed).await;
        // The next answer follows a later message of this thread, which releases this store.
        m.store(&self.answer[IS_THERE], 0, Relaxed).await;
        Ok(value)
    }
}

#[cold]
fn wrong<const WORDS: usize>(count: usize) -> [u64; WORDS] {
    panic!("a message has {count} words; its receiver takes {WORDS}")
}
