//! Messages and requests of PEs to the processes of far PEs.

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{Packet, Request},
};

impl Far {
    /// Sends a message to the process of a PE, at the next flush at the latest.
    pub(crate) fn send(&self, to: Rank, packet: &Packet, data: impl FnOnce(&mut Vec<u64>)) {
        self.link().send(self.process(to), packet, data);
    }

    /// Sends the process of a PE the message that a block has one hold less. This is carried out
    /// before the next call, so that a PE that allocates then finds the freed memory.
    pub(crate) fn release(&self, to: Rank, packet: &Packet) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count_release(process);
        link.send(process, packet, |_| ());
    }

    /// Sends the process of a PE a message that writes to memory there.
    pub(crate) fn write(&self, to: Rank, packet: &Packet, data: impl FnOnce(&mut Vec<u64>)) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count(process);
        link.send(process, packet, data);
    }

    /// Sends a request to the process of a PE, at the next flush at the latest. Returns the
    /// request's number.
    pub(crate) fn request(
        &self,
        to: Rank,
        request: Request,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        self.link().request(self.process(to), request, data)
    }

    /// Sends a request to a process, at the next flush at the latest. Returns the request's number.
    pub(super) fn request_from_process(&self, process: u32, request: Request) -> u64 {
        self.link().request(process, request, |_| ())
    }

    /// Requests the words that a member of a group publishes from the process of PE `to`, unless
    /// the reply to the previous request is still missing.
    pub(crate) fn request_published(&self, to: Rank, group: u64, member: Rank) {
        let process = self.process(to);
        let mut link = self.link();
        if let Some(id) = link.requests.begin_published(group, member) {
            let request = Request::Published { group, member };
            link.send(process, &Packet::Request { id, request }, |_| ());
        }
    }

    /// Asks all processes whose memory was written whether the writes are complete, unless they
    /// certainly are. Returns the numbers of the requests.
    pub(crate) fn request_fences(&self) -> Vec<u64> {
        let mut link = self.link();
        if link.is_closing {
            return Vec::new(); // all have ended
        }
        let pending = link.writes.pending().into_iter();
        let ask = |process| {
            let id = link.request(process, Request::Fence {}, |_| ());
            link.writes.note_request(id, process);
            id
        };
        pending.map(ask).collect()
    }

    /// Returns whether there are puts that may not be complete.
    pub(crate) fn has_pending_puts(&self) -> bool {
        self.link().writes.has_pending_puts()
    }

    /// Returns whether there are puts by transfers that may not be complete.
    pub(crate) fn has_pending_long_puts(&self) -> bool {
        self.link().writes.has_pending_long_puts()
    }

    /// Takes the reply to a request if it has arrived.
    pub(crate) fn take_reply(&self, id: u64) -> Option<Vec<u64>> {
        self.link().requests.take(id)
    }

    /// Drops a request whose reply is no longer awaited.
    pub(crate) fn forget_request(&self, id: u64) {
        self.link().requests.forget(id);
    }
}
