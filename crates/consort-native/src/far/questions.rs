//! The requests that a process has sent to others, and their replies.

use std::collections::HashMap;

use consort_fabric::Rank;

/// A request whose reply has not been taken yet.
struct Asked {
    /// Whether the reply may end a PE's wait.
    ends_wait: bool,
    /// The reply, if it has arrived.
    answer: Option<Vec<u64>>,
}

#[derive(Default)]
pub(super) struct Questions {
    next: u64,
    asked: HashMap<u64, Asked>,
    /// The last request for what a member of a group publishes, by group and member.
    shows: HashMap<(u64, Rank), u64>,
}

impl Questions {
    /// Returns the number of a new request. `ends_wait` means that its reply may end a PE's wait.
    pub(super) fn ask(&mut self, ends_wait: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        self.asked.insert(id, Asked { ends_wait, answer: None });
        id
    }

    /// Returns whether a reply is awaited that may end a PE's wait.
    pub(super) fn await_any(&self) -> bool {
        self.asked.values().any(|asked| asked.ends_wait && asked.answer.is_none())
    }

    /// Returns the number of a new request for what a member of a group publishes. `None` if there
    /// is no reply to the previous one yet.
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

    /// Drops the requests for what members of a group publish.
    pub(super) fn leave(&mut self, group: u64) {
        for (_, id) in self.shows.extract_if(|(of, _), _| *of == group) {
            self.asked.remove(&id);
        }
    }

    /// Keeps a reply, if it is still awaited.
    pub(super) fn keep(&mut self, id: u64, data: &[u64]) {
        if let Some(asked) = self.asked.get_mut(&id) {
            asked.answer = Some(data.to_vec());
        }
    }

    /// Takes the reply to a request if it has arrived.
    pub(super) fn take(&mut self, id: u64) -> Option<Vec<u64>> {
        let answer = self.asked.get_mut(&id)?.answer.take()?;
        self.asked.remove(&id);
        Some(answer)
    }

    /// Drops a request whose reply is no longer awaited.
    pub(super) fn forget(&mut self, id: u64) {
        self.asked.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_is_asked_once_until_it_replies() {
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
