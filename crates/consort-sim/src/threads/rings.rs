//! Messages on a machine without queues for them: over cache lines, as threads send them natively.
//!
//! Each thread has a ring of lines with many senders and one receiver (Vyukov 2010), and a line for
//! an answer. A sender takes numbers for the lines of its message by one addition, waits until they
//! are free, fills them, and publishes the first one last. The last word of line `n` is
//! `2 (n / LINES)` while it is free and one more while it is full.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_fabric::{Line, Machine, Until, Word};

use super::{
    thread::SimulatedThread,
    world::{LINE_WORDS, RING_LINES, Ring},
};

/// Words of a message's first line that are not the sender's: the queue and the number of words.
const HEAD: usize = 2;
/// How long a sender waits for room before it looks for messages of its own, in nanoseconds.
const PATIENCE_NS: u64 = 2000;

/// The line with a number, counted over all turns, and the value of its state while it is free.
fn line(ring: &Ring, number: u64) -> (&'static Line, u64) {
    let turn = number / RING_LINES as u64;
    let place = usize::try_from(number % RING_LINES as u64).unwrap_or(0);
    (ring.lines[place], 2 * turn)
}

impl SimulatedThread {
    fn state_word(line: &'static Line) -> &'static Word {
        &line[LINE_WORDS]
    }

    /// Sends a message to a thread's ring.
    pub(super) async fn send_over_lines(&self, to: u32, queue: u64, message: &[u64]) {
        let ring = self.ring_of(to);
        let count = (HEAD + message.len()).div_ceil(LINE_WORDS) as u64;
        let first = self.fetch_add(&ring.taken[0], count, Relaxed).await;
        let mut words = [queue, message.len() as u64].into_iter().chain(message.iter().copied());
        for number in first..first + count {
            let (line, free) = line(&ring, number);
            loop {
                let at = self.now_ns() + PATIENCE_NS;
                let until = Until::Equals(free);
                let Ok(room) = self.wait_until_time(Self::state_word(line), until, at).await;
                if room.is_some() {
                    break;
                }
                while self.take_over_lines(None).await.is_some() {}
            }
            for (place, value) in line[..LINE_WORDS].iter().zip(words.by_ref()) {
                self.store(place, value, Relaxed).await;
            }
        }
        for number in (first..first + count).rev() {
            let (line, free) = line(&ring, number);
            self.store(Self::state_word(line), free + 1, Release).await;
        }
    }

    /// Takes the next message from the thread's ring: returns it if it is for `queue`, and else
    /// keeps it. `None` if the ring is empty.
    async fn take_over_lines(&self, queue: Option<u64>) -> Option<Option<Vec<u64>>> {
        let ring = self.ring_of(self.number());
        let first = ring.next.get();
        let (head, free) = line(&ring, first);
        if self.load(Self::state_word(head), Acquire).await != free + 1 {
            return None;
        }
        let for_queue = self.load(&head[0], Relaxed).await;
        let count = usize::try_from(self.load(&head[1], Relaxed).await).unwrap_or(0);
        let mut words = Vec::with_capacity(count);
        let mut number = first;
        while number == first || words.len() < count {
            let (line, free) = line(&ring, number);
            let begin = if number == first { HEAD } else { 0 };
            for place in line[begin..LINE_WORDS].iter().take(count - words.len()) {
                words.push(self.load(place, Relaxed).await);
            }
            self.store(Self::state_word(line), free + 2, Release).await;
            number += 1;
        }
        ring.next.set(number);
        if Some(for_queue) == queue {
            return Some(Some(words));
        }
        self.keep_early(for_queue, words);
        Some(None)
    }

    /// Receives a message of a queue from the thread's ring.
    pub(super) async fn receive_over_lines(&self, queue: u64) -> Vec<u64> {
        loop {
            if let Some(words) = self.early(queue) {
                return words;
            }
            match self.take_over_lines(Some(queue)).await {
                Some(Some(words)) => return words,
                Some(None) => {}
                None => {
                    let ring = self.ring_of(self.number());
                    let (head, free) = line(&ring, ring.next.get());
                    let full = Until::Equals(free + 1);
                    let Ok(_) = self.wait_until(Self::state_word(head), full).await;
                }
            }
        }
    }

    /// Whether no message for a queue has come.
    pub(super) async fn is_empty_over_lines(&self, queue: u64) -> bool {
        while self.take_over_lines(None).await.is_some() {}
        !self.has_early(queue)
    }

    /// Answers over the line of a thread.
    pub(super) async fn answer_over_lines(&self, to: u32, value: u64) {
        let answer = self.ring_of(to).answer;
        self.store(&answer[0], value, Relaxed).await;
        self.store(&answer[1], 1, Release).await;
    }

    /// Takes the answer that has come.
    pub(super) async fn receive_answer_over_lines(&self) -> u64 {
        let answer = self.ring_of(self.number()).answer;
        let Ok(_) = self.wait_until(&answer[1], Until::Equals(1)).await;
        let value = self.load(&answer[0], Relaxed).await;
        self.store(&answer[1], 0, Relaxed).await;
        value
    }
}
