//! What PEs tell and ask the processes of far ones.

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{Question, Told},
};

impl Far {
    /// Tells the process of a PE something, at the next flush at the latest.
    pub(crate) fn tell(&self, to: Rank, told: &Told, data: impl FnOnce(&mut Vec<u64>)) {
        self.link().tell(self.process(to), told, data);
    }

    /// Tells the process of a PE that a block has a hold less, which is done before the next call:
    /// who allocates then finds what has been freed.
    pub(crate) fn release(&self, to: Rank, told: &Told) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count_release(process);
        link.tell(process, told, |_| ());
    }

    /// Tells the process of a PE something about memory that it has written there.
    pub(crate) fn write(&self, to: Rank, told: &Told, data: impl FnOnce(&mut Vec<u64>)) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count(process);
        link.tell(process, told, data);
    }

    /// Asks the process of a PE a question, at the next flush at the latest; returns its number.
    pub(crate) fn ask(
        &self,
        to: Rank,
        question: Question,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        self.link().ask(self.process(to), question, data)
    }

    /// Asks a process a question, at the next flush at the latest; returns its number.
    pub(super) fn ask_process(&self, process: u32, question: Question) -> u64 {
        self.link().ask(process, question, |_| ())
    }

    /// Asks the process of a PE for the words that a member of a group publishes, unless it has
    /// been asked and has not answered.
    pub(crate) fn ask_to_show(&self, to: Rank, group: u64, member: Rank) {
        let process = self.process(to);
        let mut link = self.link();
        if let Some(id) = link.questions.ask_to_show(group, member) {
            let question = Question::Show { group, member };
            link.tell(process, &Told::Asks { id, question }, |_| ());
        }
    }

    /// Asks all processes whose memory was written whether that is done, unless it surely is;
    /// returns the numbers of the questions.
    pub(crate) fn ask_whether_done(&self) -> Vec<u64> {
        let mut link = self.link();
        if link.is_closing {
            return Vec::new(); // all have ended
        }
        let pending = link.writes.pending().into_iter();
        let ask = |process| {
            let id = link.ask(process, Question::Done {}, |_| ());
            link.writes.ask(id, process);
            id
        };
        pending.map(ask).collect()
    }

    /// Whether memory was put, and that is not surely done.
    pub(crate) fn has_put(&self) -> bool {
        self.link().writes.have_put()
    }

    /// Whether memory was put as a transfer, and that is not surely done.
    pub(crate) fn has_pushed_long(&self) -> bool {
        self.link().writes.have_long()
    }

    /// Takes the reply to a request if it has arrived.
    pub(crate) fn answer(&self, id: u64) -> Option<Vec<u64>> {
        self.link().questions.take(id)
    }

    /// Drops a question, whose answer nobody waits for any more.
    pub(crate) fn forget(&self, id: u64) {
        self.link().questions.forget(id);
    }
}
