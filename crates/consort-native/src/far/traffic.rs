//! Counts the packets of each group that this process has sent and received. If the processes have
//! sent as many as they have received, none is in flight (Mattern 1987, "Algorithms for distributed
//! termination detection").

use std::collections::HashMap;

use super::packet::{Exposure, FarMemory, Packet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) received: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The calls of a group.
    Group(u64),
    /// Words of symmetric memory.
    Memory,
}

impl Subject {
    /// Returns the subject of a packet, if the packet may end a wait. Packets that bring replies
    /// are not counted, because a process knows itself whether it awaits any.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        match *packet {
            Packet::Words { group, .. } | Packet::Detached { group, .. } => {
                Some(Self::Group(group))
            }
            Packet::Put { place, .. } | Packet::LongPut { place, .. } => Some(match place {
                FarMemory::Exposed { exposure: Exposure { group, .. } } => Self::Group(group),
                FarMemory::Heap { .. } => Self::Memory,
            }),
            Packet::Signal { .. } => Some(Self::Memory),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// The group of the last packet. Its counts are not in `others`.
    group: u64,
    counts: Counts,
    others: HashMap<u64, Counts>,
    /// The counts of all packets, including those of forgotten groups.
    pub(super) all: Counts,
}

impl Traffic {
    fn counts(&mut self, group: u64) -> &mut Counts {
        if group != self.group {
            let counts = self.others.remove(&group).unwrap_or_default();
            self.others.insert(self.group, std::mem::replace(&mut self.counts, counts));
            self.group = group;
        }
        &mut self.counts
    }

    pub(super) fn count_sent(&mut self, subject: Subject) {
        self.all.sent += 1;
        if let Subject::Group(group) = subject {
            self.counts(group).sent += 1;
        }
    }

    /// Counts a packet that has arrived. A packet for a group that has been left counts in the
    /// group's record.
    pub(super) fn count_received(&mut self, subject: Subject, is_late: bool) {
        self.all.received += 1;
        if let Subject::Group(group) = subject
            && !is_late
        {
            self.counts(group).received += 1;
        }
    }

    pub(super) fn of(&mut self, group: u64) -> Counts {
        *self.counts(group)
    }

    /// Takes the counts of a group that all PEs of this process have left.
    pub(super) fn take(&mut self, group: u64) -> Counts {
        let counts = std::mem::take(self.counts(group));
        self.counts(0);
        self.others.remove(&group);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_by_group() {
        let mut traffic = Traffic::default();
        for group in [0, 1, 1, 0, 2] {
            traffic.count_sent(Subject::Group(group));
        }
        traffic.count_received(Subject::Group(1), false);
        traffic.count_received(Subject::Group(7), true);
        traffic.count_received(Subject::Memory, false);
        assert_eq!(traffic.of(0), Counts { sent: 2, received: 0 });
        assert_eq!(traffic.of(1), Counts { sent: 2, received: 1 });
        assert_eq!(traffic.of(7), Counts::default());
        assert_eq!(traffic.take(1), Counts { sent: 2, received: 1 });
        assert_eq!(traffic.take(7), Counts::default());
        assert_eq!(traffic.of(1), Counts::default());
        assert_eq!((traffic.of(2).sent, traffic.all), (1, Counts { sent: 5, received: 3 }));
    }
}
