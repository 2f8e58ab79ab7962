//! Counts the writes of a process to the memory of other processes, and how many of them are
//! certainly complete. Releases of memory count as writes, because other PEs may get the memory
//! next.

use std::collections::HashMap;

/// The writes to a process's memory.
#[derive(Clone, Copy, Default)]
struct WriteCounts {
    times: u64,
    /// The number of the last write that was a put or a signal, and of the last that was a
    /// transfer.
    put: u64,
    long: u64,
    /// The number of writes that are certainly complete.
    done: u64,
}

/// The writes to the memory of each process.
#[derive(Default)]
pub(super) struct Writes {
    by_process: Vec<WriteCounts>,
    /// The requests whether writes to a process are complete, and the number of writes before each.
    requests: HashMap<u64, (u32, u64)>,
}

impl Writes {
    pub(super) fn new(processes: u32) -> Self {
        Self {
            by_process: vec![WriteCounts::default(); processes as usize],
            requests: HashMap::new(),
        }
    }

    /// Counts a write to a process's memory.
    pub(super) fn count(&mut self, process: u32) {
        self.count_release(process);
        let written = &mut self.by_process[process as usize];
        written.put = written.times;
    }

    /// Counts a message to a process about memory that this process has released.
    pub(super) fn count_release(&mut self, process: u32) {
        self.by_process[process as usize].times += 1;
    }

    /// Counts a write by a transfer.
    pub(super) fn count_long(&mut self, process: u32) {
        self.count(process);
        let written = &mut self.by_process[process as usize];
        written.long = written.times;
    }

    /// Returns the processes whose writes may not all be complete.
    pub(super) fn pending(&self) -> Vec<u32> {
        let processes = (0..).zip(&self.by_process);
        processes.filter(|(_, all)| all.times > all.done).map(|(process, _)| process).collect()
    }

    /// Returns whether some put or signal may not be complete.
    pub(super) fn has_pending_puts(&self) -> bool {
        self.by_process.iter().any(|written| written.put > written.done)
    }

    /// Returns whether some transfer may not be complete.
    pub(super) fn has_pending_long_puts(&self) -> bool {
        self.by_process.iter().any(|written| written.long > written.done)
    }

    /// Records a request that asks a process whether its writes are complete.
    pub(super) fn note_request(&mut self, id: u64, process: u32) {
        self.requests.insert(id, (process, self.by_process[process as usize].times));
    }

    /// Records that a request has been replied to.
    pub(super) fn note_reply(&mut self, id: u64) {
        if let Some((process, times)) = self.requests.remove(&id) {
            let done = &mut self.by_process[process as usize].done;
            *done = times.max(*done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_completes_only_earlier_writes() {
        let mut writes = Writes::new(3);
        writes.count(1);
        writes.count_long(2);
        assert_eq!((writes.pending(), writes.has_pending_long_puts()), (vec![1, 2], true));
        assert!(writes.has_pending_puts());
        writes.note_request(7, 2);
        writes.count_release(2);
        writes.note_reply(7);
        assert_eq!((writes.pending(), writes.has_pending_long_puts()), (vec![1, 2], false));
        writes.note_request(6, 1);
        writes.note_reply(6);
        assert!(!writes.has_pending_puts());
        writes.note_request(8, 2);
        writes.count_long(2);
        writes.note_reply(8);
        assert_eq!((writes.pending(), writes.has_pending_long_puts()), (vec![2], true));
    }
}
