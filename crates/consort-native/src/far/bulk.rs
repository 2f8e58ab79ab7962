//! Serves transfers of long data that other processes begin, and waits for transfers. `transfers`
//! describes the protocol.

#![expect(unsafe_code, reason = "stores addresses of memory that calls keep valid")]

use std::time::Duration;

use consort_fabric::Rank;

use super::{
    link::{Far, Link},
    packet::{Exposure, FarMemory, Packet},
    progress::PollBackoff,
    transfers::{ActiveTransfer, Inbound, PendingGet},
    transport::{Frame, Transfer, TransferBuffer, TransportError},
};
use crate::{
    launch::{failure::Failure, job::Job},
    memory::region::Memory,
};

/// How long a process waits for its transfers in a job that has failed.
const TRANSFER_LIMIT: Duration = Duration::from_secs(10);

impl Link {
    /// Returns a transfer that has begun. If it could not begin, returns `None`, keeps the error,
    /// and the next look fails the job.
    pub(super) fn keep_error(
        &mut self,
        begun: Result<Transfer, TransportError>,
    ) -> Option<Transfer> {
        begun.map_err(|lost| self.lost.get_or_insert(lost).clone()).ok()
    }

    /// Returns whether a transfer is done. It is forgotten then.
    pub(super) fn is_done(&mut self, transfer: Transfer) -> bool {
        self.transport.is_done(transfer).unwrap_or_else(|lost| {
            self.lost.get_or_insert(lost); // the next receive fails the job
            true // a transfer that has failed accesses nothing any more
        })
    }

    /// Returns whether transfers that are done have really moved their bytes.
    pub(super) fn has_lost_nothing(&self) -> bool {
        self.lost.is_none() && !self.is_closed()
    }

    fn are_pushes_done(&mut self, of: impl Fn(&FarMemory) -> bool) -> bool {
        let mut pushes = std::mem::take(&mut self.transfers.pushes);
        let mut is_left = false;
        pushes.retain(|push| {
            let is_kept = !of(&push.place) || !self.is_done(push.transfer);
            is_left |= is_kept && of(&push.place);
            is_kept
        });
        self.transfers.pushes = pushes;
        !is_left
    }

    /// Forgets the first pushes if they are done. Nothing may wait for them.
    pub(super) fn end_pushes(&mut self) {
        while let Some(ActiveTransfer { transfer, .. }) = self.transfers.pushes.front()
            && self.is_done(*transfer)
        {
            self.transfers.pushes.pop_front();
        }
    }

    /// Returns whether nothing is being pushed.
    pub(super) fn are_all_pushes_done(&mut self) -> bool {
        self.are_pushes_done(|_| true)
    }

    /// Returns whether no transfer reads or writes the exposures of a member of a group in its call
    /// at a window position.
    fn are_exposures_idle(&mut self, group: u64, owner: Rank, position: usize) -> bool {
        let is_of_call = |place: &FarMemory| match place {
            FarMemory::Exposed { exposure: Exposure { group: g, owner: o, position: p, .. } } => {
                (*g, *o, *p) == (group, owner, position)
            }
            FarMemory::Heap { .. } => false,
        };
        let mut is_pulled = true;
        for process in self.transfers.stalled.clone() {
            self.end_pulls(process);
            let pulls = &self.transfers.inbound[process as usize].pulls;
            is_pulled &= !pulls.iter().any(|pull| is_of_call(&pull.place));
        }
        is_pulled && self.are_pushes_done(is_of_call)
    }

    /// Forgets the pulls from a process that are done.
    fn end_pulls(&mut self, process: u32) {
        let mut pulls = std::mem::take(&mut self.transfers.inbound[process as usize].pulls);
        pulls.retain(|pull| {
            let is_done = self.is_done(pull.transfer);
            if let (true, FarMemory::Heap { pe }) = (is_done, pull.place) {
                self.transfers.woken.push(pe);
            }
            !is_done
        });
        self.transfers.inbound[process as usize].pulls = pulls;
    }

    /// Returns, after the pull of a get has ended, whether the data has arrived. If not, the job
    /// fails.
    pub(super) fn poll_get(&mut self, get: &PendingGet) -> Option<bool> {
        if self.is_done(get.transfer) {
            return Some(self.has_lost_nothing());
        }
        let is_refused = self.transfers.refused.remove(&(get.process, get.tag));
        if is_refused {
            self.transport.cancel(get.transfer);
        }
        is_refused.then_some(false)
    }

    /// Keeps a frame until it can be delivered.
    pub(super) fn keep_frame(&mut self, from: u32, frame: Frame) {
        self.transfers.inbound[from as usize].frames.push_back((frame, 0));
    }

    /// Returns the next frame from a process, and how many of its words were delivered.
    pub(super) fn next_frame(&mut self, from: u32) -> Option<(Frame, usize)> {
        self.transfers.inbound[from as usize].frames.pop_front()
    }

    /// Keeps the rest of a frame until the data that the process put before has arrived.
    pub(super) fn stall(&mut self, from: u32, frame: Frame, delivered: usize) {
        self.transfers.inbound[from as usize].frames.push_front((frame, delivered));
    }

    /// Returns whether data that a process has put is still arriving.
    pub(super) fn is_pulling(&mut self, from: u32) -> bool {
        if self.transfers.inbound[from as usize].pulls.is_empty() {
            return false;
        }
        self.end_pulls(from);
        !self.transfers.inbound[from as usize].pulls.is_empty()
    }

    /// Returns the PEs that may wait for data that has been pulled into their heaps.
    pub(super) fn take_woken(&mut self) -> Vec<Rank> {
        std::mem::take(&mut self.transfers.woken)
    }

    /// Returns the processes from which frames have arrived that were not delivered.
    pub(super) fn take_stalled(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.transfers.stalled)
    }

    /// Records whether frames have arrived from a process that were not delivered.
    pub(super) fn note_stalled(&mut self, from: u32) {
        let Inbound { pulls, frames } = &self.transfers.inbound[from as usize];
        let is_left = !pulls.is_empty() || !frames.is_empty();
        if is_left && !self.transfers.stalled.contains(&from) {
            self.transfers.stalled.push(from);
        }
    }

    /// Records that a process refuses a pull.
    pub(super) fn refuse(&mut self, process: u32, tag: u32) {
        self.transfers.refused.insert((process, tag));
    }

    /// Pushes memory to a process that pulls it. Refuses if there is no such memory.
    pub(super) fn push_for_get(
        &mut self,
        to: u32,
        tag: u32,
        place: FarMemory,
        source: Option<Memory>,
    ) {
        // SAFETY: the memory of a heap lives as long as the job. The memory of an exposure lives
        // until its call ends, and the call waits for its transfers.
        let push =
            source.map(|source| unsafe { self.transport.push(to, tag, TransferBuffer(source)) });
        match push.and_then(|push| self.keep_error(push)) {
            Some(transfer) => {
                self.transfers.pushes.push_back(ActiveTransfer {
                    transfer,
                    place,
                    _kept: Vec::new(),
                });
            }
            None => self.send(to, &Packet::Refused { tag }, |_| ()),
        }
    }

    /// Pulls data that a process puts into some memory, or drops the data if there is no such
    /// memory.
    pub(super) fn pull_for_put(
        &mut self,
        from: u32,
        tag: u32,
        place: FarMemory,
        bytes: usize,
        target: Option<Memory>,
    ) {
        let mut kept = Vec::new();
        let target = target.unwrap_or_else(|| {
            kept.resize(bytes.div_ceil(8), 0_u64);
            Memory::private(kept.as_mut_ptr().cast(), bytes)
        });
        // SAFETY: as in `push_for_get`. The kept buffer lives as long as the transfer.
        let pull = unsafe { self.transport.pull(from, tag, TransferBuffer(target)) };
        if let Some(transfer) = self.keep_error(pull) {
            let inbound = &mut self.transfers.inbound[from as usize];
            inbound.pulls.push(ActiveTransfer { transfer, place, _kept: kept });
        }
    }
}

impl Job {
    /// Ends the exposures of a member of a group in its call at a window position, when no transfer
    /// needs them any more.
    pub(crate) fn end_far_exposures(&self, group: u64, owner: Rank, position: usize) {
        let Some(far) = self.far() else { return };
        let mut link = far.link();
        link.exposures.end(group, owner, position);
        if !link.are_exposures_idle(group, owner, position) {
            drop(link);
            self.await_link(far, |link| link.are_exposures_idle(group, owner, position));
        }
    }

    /// Closes the transport, because an algorithm has forgotten the futures of operations that a
    /// call of PE `rank` began: nothing waits for them, and they may access memory of the call,
    /// which ends now.
    #[cold]
    pub(crate) fn end_forgotten(&self, rank: Rank) {
        let reason = "its algorithm forgot a put or a get that had not ended".to_owned();
        self.poison(&Failure::Pe { rank, reason });
        self.with_far(|far| self.abandon(&mut far.link()));
    }

    /// Waits for a condition that other processes make true, whatever fails. If they do not, in a
    /// job that has failed, the transport is closed: it then accesses nothing any more.
    pub(super) fn await_link(&self, far: &Far, is_so: impl Fn(&mut Link) -> bool) {
        let mut backoff = PollBackoff::default();
        loop {
            self.serve();
            let mut link = far.link();
            if link.is_closed() || is_so(&mut link) {
                return;
            }
            if self.is_poisoned() && backoff.waited() > TRANSFER_LIMIT {
                self.abandon(&mut link);
            }
            drop(link);
            backoff.pause();
        }
    }
}
