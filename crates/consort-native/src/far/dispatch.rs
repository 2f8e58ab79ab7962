//! Delivers packets in the process that receives them.

use std::sync::atomic::{
    Ordering::{Acquire, Release},
    fence,
};

use consort_fabric::Rank;

use super::{
    link::Link,
    packet::{self, FarMemory, Packet, Request, append_memory, memory_of},
};
use crate::{
    heap::{one_sided::OneSided, word::Width},
    inbox::geometry::{FINISHED, RECENT},
    launch::job::Job,
    memory::{extent::SharedExtent, region::Memory},
    progress::deadlock::describe::Description,
    team::memory::GroupMemory,
};

impl Job {
    /// Delivers the packets that have arrived from a process, up to the first that must wait for
    /// data that the process puts. `None` if a packet is not valid.
    pub(super) fn deliver_from(&self, link: &mut Link, from: u32) -> Option<()> {
        while let Some((frame, delivered)) = link.next_frame(from) {
            let mut rest = frame.get(delivered..)?;
            while !rest.is_empty() {
                let delivered = frame.len() - rest.len();
                let (packet, data) = packet::take(&mut rest)?;
                if link.is_pulling(from) && !matches!(packet, Packet::LongPut { .. }) {
                    link.stall(from, frame, delivered);
                    return Some(());
                }
                self.deliver(link, from, &packet, data)?;
            }
        }
        Some(())
    }

    fn deliver(&self, link: &mut Link, from: u32, packet: &Packet, data: &[u64]) -> Option<()> {
        link.count_received(packet);
        match *packet {
            Packet::Words { group, to, at } => match self.memory_of_group(link, group) {
                Some(memory) => self.store(&memory, to, at, data)?,
                None if link.memberships.is_late(group) => {}
                None => {
                    link.early.entry(group).or_default().push((*packet, data.to_vec()));
                }
            },
            Packet::Published { group, member, at } => {
                if let Some(memory) = self.memory_of_group(link, group) {
                    self.store(&memory, memory.in_world(member)?, at, data)?;
                }
            }
            Packet::Detached { group, owner, position } => {
                if let Some(memory) = self.memory_of_group(link, group) {
                    self.count_detach(&memory, owner, position)?;
                }
            }
            Packet::Put { place, at, bytes } => {
                let source = memory_of(data, bytes)?;
                // If the target is no longer exposed, its call has failed.
                if let Some(target) = self.memory_at(link, place, at, bytes, true) {
                    fence(Release); // a PE that sees a word of this put sees all earlier puts
                    target.copy_from(source);
                }
                if let FarMemory::Heap { pe } = place {
                    self.wake(pe);
                }
            }
            Packet::Signal { pe, word, width, how } => {
                self.near_word(pe, word, width)?.signal(pe, word, width, how);
            }
            Packet::Hold { group, number } => self.directory()?.hold((group, number)),
            Packet::Release { group, number } => self.directory()?.release((group, number)),
            Packet::ReleaseName { number } => self.directory()?.release_name(number),
            Packet::Failed {} => {
                self.claim(data);
            }
            Packet::Ended {} => link.ended += 1,
            Packet::Closing {} => link.closing += 1,
            Packet::LongGet { place, at, bytes, tag } => {
                let source = self.memory_at(link, place, at, bytes, false);
                link.push_for_get(from, tag, place, source);
            }
            Packet::LongPut { place, at, bytes, tag } => {
                let target = self.memory_at(link, place, at, bytes, true);
                link.pull_for_put(from, tag, place, bytes, target);
            }
            Packet::Refused { tag } => link.refuse(from, tag),
            Packet::Reply { id } => link.keep_reply(id, data),
            Packet::Request { id, request } => {
                let reply = self.reply(link, from, request, data)?;
                link.send(from, &Packet::Reply { id }, |frame| frame.extend(reply));
            }
        }
        Some(())
    }

    /// Records that a PE of this process has joined a group, and delivers the packets that arrived
    /// for the group before. `begun` comes from [`Self::join_group`].
    pub(crate) fn deliver_early(&self, group: u64, begun: Option<u64>) {
        let Some((far, begun)) = self.far().zip(begun) else { return };
        let mut link = far.link();
        link.memberships.end_joining(begun, Some(group));
        let early = link.early.remove(&group).unwrap_or_default();
        for (packet, data) in early {
            let memory = self.memory_of_group(&link, group);
            if let (Packet::Words { to, at, .. }, Some(memory)) = (packet, memory) {
                // Words out of range do not come from a PE of this library.
                let _ = self.store(&memory, to, at, &data);
            }
        }
    }

    /// Returns the memory of a group that a PE of this process is in. The memory stays valid while
    /// the link is locked.
    fn memory_of_group(&self, link: &Link, group: u64) -> Option<GroupMemory> {
        if !link.memberships.is_in(group) {
            return None;
        }
        let (at, pes) = self.directory()?.group(group)?;
        self.group_memory(at, pes)
    }

    /// Stores words in the places where a far PE has stored them in its segment.
    fn store(&self, memory: &GroupMemory, to: Rank, at: usize, data: &[u64]) -> Option<()> {
        let places = memory.part(at, data.len())?;
        for (place, &value) in places.iter().zip(data) {
            place.store(value, Release); // pairs with the acquire of the wait for it
        }
        (to.0 < self.config().pes).then(|| self.wake(to))
    }

    /// Counts a detach, like a near PE that has attached a buffer.
    fn count_detach(&self, memory: &GroupMemory, owner: Rank, position: usize) -> Option<()> {
        let geometry = memory.geometry;
        if !memory.has(owner) || position >= geometry.window {
            return None;
        }
        let count = geometry.exposure_counts + position * geometry.per_count;
        memory.member(owner, count).fetch_add(1, Release); // pairs with `await_detached`
        self.wake(memory.in_world(owner)?);
        Some(())
    }

    /// Sends the words that a member of a group publishes, except those that its peers write. The
    /// words that record its end are sent only if the member has finished: replies to several
    /// processes of a node, which store them in the same memory, may overtake each other.
    fn show(&self, link: &mut Link, from: u32, group: u64, member: Rank) -> Option<()> {
        let Some(memory) = self.memory_of_group(link, group) else { return Some(()) };
        if !memory.has(member) {
            return None;
        }
        let has_finished = memory.has_finished(member, self.region());
        let first = if has_finished { FINISHED } else { RECENT };
        let at = memory.geometry.member(member, first);
        let words = memory.part(at, memory.geometry.credits - first)?;
        link.send(from, &Packet::Published { group, member, at }, |frame| {
            frame.extend(words.iter().map(|word| word.load(Acquire)));
        });
        Some(())
    }

    /// Returns the reply to a request of a process.
    fn reply(
        &self,
        link: &mut Link,
        from: u32,
        request: Request,
        data: &[u64],
    ) -> Option<Vec<u64>> {
        match request {
            Request::Fence {} => Some(Vec::new()),
            Request::Published { group, member } => {
                self.show(link, from, group, member).map(|()| Vec::new())
            }
            Request::Report {} => {
                let report = self.report(link);
                Some(report.map(|report| packet::words_of_field(&report)).unwrap_or_default())
            }
            Request::Describe { pe } => {
                let description = self.is_here(pe).then(|| Description::of(self, pe))?;
                let texts = description.map(|Description { place, awaited }| (place, awaited));
                Some(texts.map(|texts| packet::words_of_field(&texts)).unwrap_or_default())
            }
            Request::Get { place, at, bytes } => {
                // If the source is no longer exposed, its call has failed. The reply then has no
                // words.
                let source = self.memory_at(link, place, at, bytes, false);
                let mut words = Vec::new();
                source.into_iter().for_each(|source| append_memory(&mut words, source));
                Some(words)
            }
            Request::Atomic { pe, word, width, operation } => {
                let operations = self.near_word(pe, word, width)?;
                Some(vec![operations.atomic(pe, word, width, operation)])
            }
            Request::Number { .. }
            | Request::Name { .. }
            | Request::Block { .. }
            | Request::Group { .. } => self.decide(request, data),
        }
    }

    /// Returns memory that far PEs may access: of a heap, or exposed. `None` if it does not exist.
    fn memory_at(
        &self,
        link: &Link,
        place: FarMemory,
        at: usize,
        bytes: usize,
        writes: bool,
    ) -> Option<Memory> {
        match place {
            FarMemory::Heap { pe } => self.near_heap(pe, at, bytes),
            FarMemory::Exposed { exposure } => link.exposures.part(&exposure, at, bytes, writes),
        }
    }

    /// Returns a part of the heap of a PE of this process.
    fn near_heap(&self, pe: Rank, at: usize, bytes: usize) -> Option<Memory> {
        (self.is_here(pe) && self.has_in_memory(at, bytes)).then(|| {
            let at = self.heap(pe).wrapping_add(at);
            Memory { at, bytes, shared: Some(SharedExtent::WORDS) }
        })
    }

    /// Returns the operations on a word of the heap of a PE of this process, if there is such a
    /// word.
    fn near_word(&self, pe: Rank, word: usize, width: Width) -> Option<OneSided<'_>> {
        let is_aligned = word.is_multiple_of(width.bytes());
        self.near_heap(pe, word, width.bytes()).filter(|_| is_aligned)?;
        Some(OneSided::new(self, pe))
    }
}
