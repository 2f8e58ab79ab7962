//! Messages and requests of PEs to the processes of far PEs.

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{Question, Told},
};

impl Far {
    /// Sends a message to the process of a PE, at the next flush at the latest.
    pub(crate) fn tell(&self, to: Rank, told: &Told, data: impl FnOnce(&mut Vec<u64>)) {
        self.link().tell(self.process(to), told, data);
    }

    /// Sends the process of a PE the message that a block has one hold less. This is carried out
    /// before the next call, so that a PE that allocates then finds the freed memory.
    pub(crate) fn release(&self, to: Rank, told: &Told) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count_release(process);
        link.tell(process, told, |_| ());
    }

    /// Sends the process of a PE a message that writes to memory there.
    pub(crate) fn write(&self, to: Rank, told: &Told, data: impl FnOnce(&mut Vec<u64>)) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count(process);
        link.tell(process, told, data);
    }

    /// Sends a request to the process of a PE, at the next flush at the latest. Returns the
    /// request's number.
    pub(crate) fn ask(
        &self,
        to: Rank,
        question: Question,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        self.link().ask(self.process(to), question, data)
    }

    /// Sends a request to a process, at the next flush at the latest. Returns the request's number.
    pub(super) fn ask_process(&self, process: u32, question: Question) -> u64 {
        self.link().ask(process, question, |_| ())
    }

    /// Requests the words that a member of a group publishes from the process of PE `to`, unless
    /// there is no reply to the previous request yet.
    pub(crate) fn ask_to_show(&self, to: Rank, group: u64, member: Rank) {
        let process = self.process(to);
        let mut link = self.link();
        if let Some(id) = link.questions.ask_to_show(group, member) {
            let question = Question::Show { group, member };
            link.tell(process, &Told::Asks { id, question }, |_| ());
        }
    }

    /// Asks all processes whose memory was written whether the writes are complete, unless they
    /// certainly are. Returns the numbers of the requests.
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

    /// Returns whether there are puts that may not be complete.
    pub(crate) fn has_put(&self) -> bool {
        self.link().writes.have_put()
    }

    /// Returns whether there are puts by transfers that may not be complete.
    pub(crate) fn has_pushed_long(&self) -> bool {
        self.link().writes.have_long()
    }

    /// Takes the reply to a request if it has arrived.
    pub(crate) fn answer(&self, id: u64) -> Option<Vec<u64>> {
        self.link().questions.take(id)
    }

    /// Drops a request whose reply is no longer awaited.
    pub(crate) fn forget(&self, id: u64) {
        self.link().questions.forget(id);
    }
}
