//! The questions that a process has asked others, and what they have answered.

use std::collections::HashMap;

use consort_fabric::Rank;

/// A question whose answer has not been taken yet.
struct Asked {
    /// Whether the answer may end a PE's wait.
    ends_wait: bool,
    /// The answer, if it is there.
    answer: Option<Vec<u64>>,
}

/// Questions by their numbers.
#[derive(Default)]
pub(super) struct Questions {
    next: u64,
    /// The questions whose answers have not been taken yet.
    asked: HashMap<u64, Asked>,
    /// The last question for what a member of a group publishes.
    shows: HashMap<(u64, Rank), u64>,
}

impl Questions {
    /// The number of a new question, whose answer may end a PE's wait or not.
    pub(super) fn ask(&mut self, ends_wait: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, Asked { ends_wait, answer: None });
        id
    }

    /// Whether an answer is awaited that may end a PE's wait.
    pub(super) fn await_any(&self) -> bool {
        self.asked.values().any(|asked| asked.ends_wait && asked.answer.is_none())
    }

    /// The number of a new question for what a member of a group publishes; `None` if the last one
    /// has not been answered.
    pub(super) fn ask_to_show(&mut self, group: u64, member: Rank) -> Option<u64> {
        if let Some(&last) = self.shows.get(&(group, member))
            && self.take(last).is_none()
        {
            return None;
        }
        let id = self.ask(false);
        self.shows.insert((group, member), id);
        Some(id)
    }

    /// Drops the questions for what members of a group publish.
    pub(super) fn leave(&mut self, group: u64) {
        for (_, id) in self.shows.extract_if(|(of, _), _| *of == group) {
            self.asked.remove(&id);
        }
    }

    /// Keeps an answer, if somebody still waits for it.
    pub(super) fn keep(&mut self, id: u64, data: &[u64]) {
        if let Some(asked) = self.asked.get_mut(&id) {
            asked.answer = Some(data.to_vec());
        }
    }

    /// An answer, once it is there. It is had once.
    pub(super) fn take(&mut self, id: u64) -> Option<Vec<u64>> {
        let answer = self.asked.get_mut(&id)?.answer.take()?;
        self.asked.remove(&id);
        Some(answer)
    }

    /// Drops a question, whose answer nobody waits for any more.
    pub(super) fn forget(&mut self, id: u64) {
        self.asked.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_publishes_is_asked_for_once_at_a_time() {
        let mut questions = Questions::default();
        assert_eq!(questions.ask_to_show(5, Rank(1)), Some(0));
        assert_eq!(questions.ask_to_show(5, Rank(1)), None);
        assert_eq!(questions.ask_to_show(5, Rank(2)), Some(1));
        questions.keep(0, &[]);
        assert_eq!(questions.ask_to_show(5, Rank(1)), Some(2));
        questions.leave(5);
        questions.keep(2, &[]);
        assert!(questions.asked.is_empty());
        assert_eq!(questions.ask_to_show(5, Rank(1)), Some(3));
    }

    #[test]
    fn question_that_ends_no_wait_is_not_awaited() {
        let mut questions = Questions::default();
        questions.ask_to_show(5, Rank(1));
        questions.ask(false);
        assert!(!questions.await_any());
        let id = questions.ask(true);
        assert!(questions.await_any());
        questions.keep(id, &[7]);
        assert!(!questions.await_any());
    }
}
