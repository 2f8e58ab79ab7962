//! The questions that a process has asked others, and what they have answered.

use std::collections::HashMap;

use consort_fabric::Rank;

/// Questions by their numbers.
#[derive(Default)]
pub(super) struct Questions {
    next: u64,
    /// Those whose answers nobody has had yet, and the answers that are there.
    answers: HashMap<u64, Option<Vec<u64>>>,
    /// The last question for what a member of a group publishes.
    shows: HashMap<(u64, Rank), u64>,
}

impl Questions {
    /// The number of a new question.
    pub(super) fn ask(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        self.answers.insert(id, None);
        id
    }

    /// The number of a new question for what a member of a group publishes; `None` if the last one
    /// has not been answered.
    pub(super) fn ask_to_show(&mut self, group: u64, member: Rank) -> Option<u64> {
        if let Some(&last) = self.shows.get(&(group, member))
            && self.take(last).is_none()
        {
            return None;
        }
        let id = self.ask();
        self.shows.insert((group, member), id);
        Some(id)
    }

    /// Drops the questions for what members of a group publish.
    pub(super) fn leave(&mut self, group: u64) {
        for (_, id) in self.shows.extract_if(|(of, _), _| *of == group) {
            self.answers.remove(&id);
        }
    }

    /// Keeps an answer, if somebody still waits for it.
    pub(super) fn keep(&mut self, id: u64, data: &[u64]) {
        if let Some(answer) = self.answers.get_mut(&id) {
            *answer = Some(data.to_vec());
        }
    }

    /// An answer, once it is there. It is had once.
    pub(super) fn take(&mut self, id: u64) -> Option<Vec<u64>> {
        let answer = self.answers.get_mut(&id)?.take()?;
        self.answers.remove(&id);
        Some(answer)
    }

    /// Drops a question, whose answer nobody waits for any more.
    pub(super) fn forget(&mut self, id: u64) {
        self.answers.remove(&id);
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
        assert!(questions.answers.is_empty());
        assert_eq!(questions.ask_to_show(5, Rank(1)), Some(3));
    }
}
