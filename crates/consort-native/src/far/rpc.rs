//! Messages and requests to the processes of PEs.

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{Packet, Request},
};

impl Far {
    /// Sends a message to the process of a PE, at the next flush at the latest.
    pub(super) fn send(&self, to: Rank, packet: &Packet, data: impl FnOnce(&mut Vec<u64>)) {
        self.link().send(self.process(to), packet, data);
    }

    /// Sends the process of a PE the message that a block has one hold less. This is carried out
    /// before the next call, so that a PE that allocates then finds the freed memory.
    pub(super) fn release(&self, to: Rank, packet: &Packet) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count_release(process);
        link.send(process, packet, |_| ());
    }

    /// Sends the process of a PE a message that writes to memory there.
    pub(super) fn write(&self, to: Rank, packet: &Packet, data: impl FnOnce(&mut Vec<u64>)) {
        let process = self.process(to);
        let mut link = self.link();
        link.writes.count(process);
        link.send(process, packet, data);
    }

    /// Sends a request to the process of a PE, at the next flush at the latest. Returns the
    /// request's number.
    pub(super) fn request(
        &self,
        to: Rank,
        request: Request,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        self.link().request(self.process(to), request, data)
    }

    /// Asks all processes whose memory was written whether the writes are complete, unless they
    /// certainly are. Returns the numbers of the requests.
    pub(super) fn request_fences(&self) -> Vec<u64> {
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

    /// Takes the reply to a request if it has arrived.
    pub(super) fn take_reply(&self, id: u64) -> Option<Vec<u64>> {
        self.link().requests.take(id)
    }

    /// Drops a request whose reply is no longer awaited.
    pub(super) fn forget_request(&self, id: u64) {
        self.link().requests.forget(id);
    }
}
