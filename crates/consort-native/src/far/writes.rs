//! What a process has written in the memory of others, and what of it is surely done. That it has
//! let go of memory counts, too, for those that give it to others.

use std::collections::HashMap;

/// How often a process's memory was written.
#[derive(Clone, Copy, Default)]
struct Written {
    times: u64,
    /// The last time that was a put or a signal, and the last that was by a transfer.
    put: u64,
    long: u64,
    /// How many of the times are surely done.
    done: u64,
}

/// How often the memory of each process was written.
#[derive(Default)]
pub(super) struct Writes {
    by_process: Vec<Written>,
    /// The questions whether a process is done, and how often it was written before.
    asked: HashMap<u64, (u32, u64)>,
}

impl Writes {
    pub(super) fn new(processes: u32) -> Self {
        Self { by_process: vec![Written::default(); processes as usize], asked: HashMap::new() }
    }

    /// Counts a write to a process's memory.
    pub(super) fn count(&mut self, process: u32) {
        self.count_release(process);
        let written = &mut self.by_process[process as usize];
        written.put = written.times;
    }

    /// Counts that a process was told of memory that this one has let go of.
    pub(super) fn count_release(&mut self, process: u32) {
        self.by_process[process as usize].times += 1;
    }

    /// Counts a write by a transfer.
    pub(super) fn count_long(&mut self, process: u32) {
        self.count(process);
        let written = &mut self.by_process[process as usize];
        written.long = written.times;
    }

    /// The processes where not all is surely done.
    pub(super) fn pending(&self) -> Vec<u32> {
        let processes = (0..).zip(&self.by_process);
        processes.filter(|(_, all)| all.times > all.done).map(|(process, _)| process).collect()
    }

    /// Whether some put or signal is not surely done.
    pub(super) fn have_put(&self) -> bool {
        self.by_process.iter().any(|written| written.put > written.done)
    }

    /// Whether some transfer is not surely done.
    pub(super) fn have_long(&self) -> bool {
        self.by_process.iter().any(|written| written.long > written.done)
    }

    /// Notes that a question asks a process whether all is done.
    pub(super) fn ask(&mut self, id: u64, process: u32) {
        self.asked.insert(id, (process, self.by_process[process as usize].times));
    }

    /// Notes that a question has been answered.
    pub(super) fn answer(&mut self, id: u64) {
        if let Some((process, times)) = self.asked.remove(&id) {
            let done = &mut self.by_process[process as usize].done;
            *done = times.max(*done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_what_was_written_before_the_question() {
        let mut writes = Writes::new(3);
        writes.count(1);
        writes.count_long(2);
        assert_eq!((writes.pending(), writes.have_long()), (vec![1, 2], true));
        assert!(writes.have_put());
        writes.ask(7, 2);
        writes.count_release(2);
        writes.answer(7);
        assert_eq!((writes.pending(), writes.have_long()), (vec![1, 2], false));
        writes.ask(6, 1);
        writes.answer(6);
        assert!(!writes.have_put());
        writes.ask(8, 2);
        writes.count_long(2);
        writes.answer(8);
        assert_eq!((writes.pending(), writes.have_long()), (vec![2], true));
    }
}
